"""Compositions: a broker inside a program."""
