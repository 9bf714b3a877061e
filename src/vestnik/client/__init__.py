"""Clients: an asynchronous face over the pure session, and a synchronous one over that."""
