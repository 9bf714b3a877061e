"""Exhaustive exploration: every interleaving of a few operations, over the real cores and sessions."""
