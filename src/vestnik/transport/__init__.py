"""Bytes on their way: the two ends of a connection, in memory or over TCP."""
