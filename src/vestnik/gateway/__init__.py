"""A web edge: what clients do, over HTTP and WebSocket."""
