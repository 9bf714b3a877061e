"""Experiments: what the papers report, and what is right."""
