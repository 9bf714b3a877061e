"""The events that a subscription was handed lately, by source and id.

A publisher that fails over repeats an event at another broker. The broker of the subscriber recognises the repeat,
unless it forgot the subscription, or the client came from another broker. Then the client recognises it.
"""

from __future__ import annotations

from typing import Final

from vestnik.model.events import Event

REMEMBERED: Final = 20_000
"""Events that are remembered at least; at most there are twice as many."""


class Handed:
    """The events of one subscription, as hashes of 64 bits with a key of this process."""

    __slots__ = ("_old", "_young")

    def __init__(self) -> None:
        self._young: set[int] = set()
        self._old: set[int] = set()

    def takes(self, event: Event) -> bool:
        """Remember an event; return False if it was handed over before."""
        key = hash((event.source, event.id))
        if key in self._young or key in self._old:
            return False
        if len(self._young) >= REMEMBERED:
            self._old, self._young = self._young, set()
        self._young.add(key)
        return True
