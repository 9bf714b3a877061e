"""Automata laid out flat for the kernels, each pattern once."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np

from vestnik.model.regular.automata import Automaton


class PatternTables:
    """Collects the automata that are asked of each path and numbers them."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, Automaton], int] = {}

    def number(self, slot: int, automaton: Automaton) -> int:
        return self._numbers.setdefault((slot, automaton), len(self._numbers))

    def slots(self) -> list[int]:
        """The paths that patterns are asked of."""
        return sorted({slot for slot, _ in self._numbers})

    def tables(self) -> dict[str, Any]:
        """The pattern arrays of `Tables`."""
        automata = [automaton for _, automaton in self._numbers]
        breaks = [sorted({start for row in a.starts for start in row}) for a in automata]
        moves = [_moves(a, b) for a, b in zip(automata, breaks, strict=True)]
        ascii_classes = [bisect_right(b, code) - 1 for b in breaks for code in range(128)]
        return {
            "pattern_slot": np.array([slot for slot, _ in self._numbers], np.int64),
            "pattern_ascii": np.array(ascii_classes, np.int64),
            "pattern_break_at": np.cumsum([0, *map(len, breaks)]),
            "pattern_breaks": np.array([start for b in breaks for start in b], np.int64),
            "pattern_move_at": np.cumsum([0, *map(len, moves)]),
            "pattern_moves": np.array([state for m in moves for state in m], np.int64),
            "pattern_state_at": np.cumsum([0, *(len(a.accepting) for a in automata)]),
            "pattern_accepts": np.array([accepts for a in automata for accepts in a.accepting], bool),
            "pattern_none": np.array([_sink(a, False) for a in automata], np.int64),
            "pattern_all": np.array([_sink(a, True) for a in automata], np.int64),
        }


def _moves(automaton: Automaton, breaks: list[int]) -> list[int]:
    """The target of each state for each class, state by state."""
    return [
        targets[bisect_right(starts, start) - 1]
        for starts, targets in zip(automaton.starts, automaton.targets, strict=True)
        for start in breaks
    ]


def _sink(automaton: Automaton, accepting: bool) -> int:
    """The state that moves only to itself and accepts, or does not; -1 where there is none."""
    for state, targets in enumerate(automaton.targets):
        if targets == (state,) and automaton.accepting[state] is accepting:
            return state
    return -1
