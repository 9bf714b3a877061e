"""What the strings of a pattern begin with, end with or contain, as far as it is easy to see."""

from __future__ import annotations

from typing import NamedTuple

from vestnik.model.regular.automata import Automaton
from vestnik.model.regular.tables import END
from vestnik.model.strings import Combination, Pattern, StringSet


class Stem(NamedTuple):
    """A text that the strings of a set have, or, where it is denied, that all other strings have."""

    text: str
    denied: bool


def beginning_of(automaton: Automaton) -> str:
    """What all strings of the set begin with."""
    state, stem = 0, ""
    while not automaton.accepting[state]:
        starts, targets = automaton.starts[state], automaton.targets[state]
        moves = zip(starts, (*starts[1:], END), targets, strict=True)
        alive = [(code, end, to) for code, end, to in moves if not _is_dead(automaton, to)]
        if len(alive) != 1 or alive[0][1] - alive[0][0] != 1:
            break
        stem += chr(alive[0][0])
        state = alive[0][2]
    return stem


def _is_dead(automaton: Automaton, state: int) -> bool:
    return automaton.targets[state] == (state,) and not automaton.accepting[state]


def ending_of(strings: StringSet) -> Stem | None:
    """Where the set was written as LIKE '%text', or NOT LIKE."""
    like, denied = _like(strings)
    inner = like[1:]
    return Stem(inner, denied) if like[:1] == "%" and _is_constant(inner) else None


def content_of(strings: StringSet) -> Stem | None:
    """Where the set was written as LIKE '%text%', or NOT LIKE."""
    like, denied = _like(strings)
    inner = like[1:-1]
    return Stem(inner, denied) if like[:1] == like[-1:] == "%" and _is_constant(inner) else None


def _is_constant(text: str) -> bool:
    return bool(text) and "%" not in text and "_" not in text


def _like(strings: StringSet) -> tuple[str, bool]:
    """The pattern where the set was written as LIKE or NOT LIKE, without ESCAPE, else nothing; whether it was NOT."""
    origin, denied = strings.origin, False
    if isinstance(origin, Combination) and origin.verb == "NOT":
        (origin,), denied = origin.parts, True
    plain = isinstance(origin, Pattern) and origin.verb == "LIKE" and origin.escape is None
    return (origin.text, denied) if plain else ("", False)  # type: ignore[union-attr]  # a Pattern
