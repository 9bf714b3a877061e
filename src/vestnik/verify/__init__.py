"""Is it right: checkers that read traces and tables."""
