"""Waits for brokers that are not known yet, before a settled answer, a fetch or a pick is complete.

A neighbour says which logs can be reached through it, its own last. Until then nobody knows which logs it has. Nor does
anybody know the logs of a broker that is to be joined and is not linked. The broker waits for both, within bounds, and
names those that did not come as missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vestnik.recovery.reads import ANSWER_WITHIN
from vestnik.wire.messages import NodeId

JOINED_WITHIN: Final = 10.0
"""Seconds for which a broker that is to be joined is waited for, from when it was not linked any more."""


class _Expected:
    """A broker that is waited for until a time."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.is_over = False

    def is_waited_for(self, now: float) -> bool:
        return not self.is_over and now < self.until


class Meeting:
    """The brokers that one broker has not met, and the calls that are `waiting` for them."""

    def __init__(self) -> None:
        self._neighbours: dict[NodeId, _Expected] = {}
        self._joins: dict[str, _Expected] = {}
        self.waiting: list[tuple[list[_Expected], Callable[[], None]]] = []

    # --- who comes and goes ---

    def linked(self, neighbour: NodeId, now: float) -> None:
        """Expect a neighbour to say which logs it has."""
        self._neighbours[neighbour] = _Expected(now + ANSWER_WITHIN)

    def met(self, neighbour: NodeId) -> None:
        """Note that a neighbour has said all its logs, or is gone."""
        _drop(self._neighbours, neighbour)

    def joining(self, at: str, now: float) -> None:
        """Expect the broker at an address, which is not linked."""
        self._joins.setdefault(at, _Expected(now + JOINED_WITHIN))

    def joined(self, at: str) -> None:
        """Note that the broker at an address is linked, or is not to be any more."""
        _drop(self._joins, at)

    @property
    def missing(self) -> list[str]:
        """The brokers that were not met, in words."""
        silent = [f"{neighbour} has not said which logs it has" for neighbour in self._neighbours]
        return silent + [f"the broker at {at} is to be joined and is not linked" for at in self._joins]

    # --- what waits ---

    def when_met(self, then: Callable[[], None], now: float, *, joins: bool = False) -> float | None:
        """Call `then` when all neighbours were met or are late; with `joins`, all brokers that are to be joined, too.

        If that is not now, return the time until which it may take.
        """
        expected = list(self._neighbours.values())
        if joins:
            expected += self._joins.values()
        waits = [one for one in expected if one.is_waited_for(now)]
        if not waits:
            then()
            return None
        self.waiting.append((waits, then))
        return max([one.until for one in waits])

    def go_on(self, now: float) -> None:
        """Make the calls that need not wait any longer."""
        waiting, self.waiting = self.waiting, []
        for waits, then in waiting:
            if any(one.is_waited_for(now) for one in waits):
                self.waiting.append((waits, then))
            else:
                then()

    def shift(self, by: float) -> None:
        """Move all times, as the clock was."""
        for one in (*self._neighbours.values(), *self._joins.values()):
            one.until += by


def _drop(expected: dict[str, _Expected], name: str) -> None:
    one = expected.pop(name, None)
    if one is not None:
        one.is_over = True
