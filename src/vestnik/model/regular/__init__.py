"""Regular sets of strings: patterns to expressions, expressions to one canonical automaton for each set."""
