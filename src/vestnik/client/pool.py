"""Which producers of a factory run: pure, time comes in."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

ALL: Final = None
"""The key of a producer that publishes for all keys."""


class Orders(NamedTuple):
    """The keys of producers to stop, and then of those to start."""

    stop: list[Any]
    start: list[Any]


class Pool:
    """One producer for each key that is wanted, and for `linger` seconds longer; or one for ALL.

    While that one runs, there are no others: they would publish the same. Where it ends by itself, they take over.
    """

    def __init__(self, linger: float) -> None:
        self._linger = linger
        self._asked: frozenset[Any] = frozenset()
        self._is_declined = False  # the one for all has ended by itself
        self._running: set[Any] = set()
        self._leaving: dict[Any, float] = {}  # with the time at which each is stopped

    @property
    def next(self) -> float | None:
        """When to look again, if nothing happens before."""
        return min(self._leaving.values(), default=None)

    def want(self, keys: frozenset[Any], now: float) -> Orders:
        """These keys are wanted from now on."""
        self._asked = keys
        self._is_declined = self._is_declined and ALL in keys
        return self.look(now)

    def declined(self, now: float) -> Orders:
        """The producer for all has ended by itself."""
        self._is_declined = True
        self._running.discard(ALL)
        self._leaving.pop(ALL, None)
        return self.look(now)

    @property
    def _wanted(self) -> frozenset[Any]:
        if ALL in self._asked and not self._is_declined:
            return frozenset({ALL})
        return self._asked - {ALL}

    def look(self, now: float) -> Orders:
        """What is to be done by now."""
        for key in self._running & self._wanted:
            self._leaving.pop(key, None)
        for key in self._running - self._wanted:
            self._leaving.setdefault(key, now + (0.0 if ALL in self._wanted else self._linger))
        stop = {key for key, at in self._leaving.items() if at <= now or ALL in self._wanted}
        self._running -= stop
        for key in stop:
            del self._leaving[key]
        start = set() if ALL in self._running else self._wanted - self._running
        self._running |= start
        return Orders(sorted(stop, key=repr), sorted(start, key=repr))
