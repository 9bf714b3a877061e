"""Numbers that only name something: requests, numberings, advertisements.

Nothing depends on which number is taken, as long as no two things have the same one. States that differ in such numbers
alone are the same state, so names are marked, and renamed before states are compared.
"""

from __future__ import annotations

from itertools import count
from typing import Final

from vestnik.broker.core import BrokerCore
from vestnik.session.session import Session

LIFE: Final = 10**6
"""Names that a node uses in one life, at most. Nodes, lives and kinds of names have ranges of their own."""


class Name(int):
    """A number that is compared with others of its kind for equality alone."""

    def __add__(self, other: int) -> Name:
        return Name(int(self) + other)


class Names(count):  # type: ignore[type-arg]  # it has no arguments at run time
    """Counts names."""

    def __next__(self) -> Name:
        return Name(super().__next__())


def name_numbers_of_core(core: BrokerCore, place: int, life: int) -> None:
    """Mark what a broker numbers. `place` is that of the broker among all nodes."""
    kinds = [Names(_first(place, life, kind)) for kind in range(4)]
    recovery = core.recovery
    recovery.requests._last = next(kinds[0])
    recovery.feeds.roster._numbers = kinds[1]
    recovery.serving._numbers = kinds[2]
    core._offers._numbers = kinds[3]


def name_numbers_of_session(session: Session, place: int) -> None:
    """Mark what a client numbers."""
    session._requests._numbers = Names(_first(place, 0, 0))
    session._inbox._epochs = Names(_first(place, 0, 1))


def _first(place: int, life: int, kind: int) -> int:
    return LIFE * (1_000 * (100 * (place + 1) + life) + kind + 100_000)
