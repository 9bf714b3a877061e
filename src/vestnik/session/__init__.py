"""One client: what to send next, given what was heard."""
