"""What happened: the one schema that observers read."""
