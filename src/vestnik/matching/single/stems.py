"""What the strings of a pattern begin with, end with or contain, as far as it is easy to see."""

from __future__ import annotations

from vestnik.model.regular.automata import Automaton
from vestnik.model.regular.tables import END
from vestnik.model.strings import Pattern, StringSet


def stem_of(automaton: Automaton) -> str:
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


def ending_of(strings: StringSet) -> str | None:
    """The text, where the set was written as LIKE '%text'."""
    inner = _between_wildcards(strings)
    return None if inner is None or _like_text(strings)[-1] == "%" else inner


def content_of(strings: StringSet) -> str | None:
    """The text, where the set was written as LIKE '%text%'."""
    inner = _between_wildcards(strings)
    return None if inner is None or _like_text(strings)[-1] != "%" else inner


def _like_text(strings: StringSet) -> str:
    origin = strings.origin
    simple = strings.automaton is not None and isinstance(origin, Pattern) and origin.verb == "LIKE"
    return origin.text if simple and origin.escape is None else ""  # type: ignore[union-attr]  # a Pattern


def _between_wildcards(strings: StringSet) -> str | None:
    """The constant text of a LIKE pattern that begins with %."""
    text = _like_text(strings)
    inner = text.strip("%")
    return inner if text[:1] == "%" and inner and "%" not in inner and "_" not in inner else None
