"""Settings of an exploration: the size of the world, and the operations in it."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from vestnik.model.filters import Filter

CLOCK: Final = 1_000.0
"""The time of all clocks at first. It stands still until leases end."""
LEASE: Final = 60.0
JUMP: Final = 61.0
"""Seconds by which clocks go on when leases end."""
NARROW: Final = Filter.parse("v = 1")
WIDE: Final = Filter.parse("v BETWEEN 1 AND 2")
FILTERS: Final = {"wide": WIDE, "narrow": NARROW}
"""The subscriptions of a client, and the filter with which each begins."""


class Kind(Enum):
    """Kinds of operations: acts of clients, and faults."""

    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    CHANGE = "change"
    PUBLISH = "publish"
    ADVERTISE = "advertise"
    CRASH = "crash"
    CUT = "cut"
    LEASE = "lease"


FAULTS: Final = frozenset({Kind.CRASH, Kind.CUT, Kind.LEASE})


Operation: TypeAlias = tuple[Kind, *tuple[str, ...]]
"""An act of a client, with the name of the subscription or the id of the event."""


class Settings(NamedTuple):
    """The size of a world and what may happen in it.

    Brokers are in a line, with clients at them in turn. `subscriptions` bounds those of one client, `operations` counts
    the faults as well, and `faults` bounds them. Only operations of these `kinds` happen. If clients are `subscribed`,
    each has its first subscription from the beginning, and its advertisement.
    """

    brokers: int = 2
    clients: int = 2
    operations: int = 3
    faults: int = 2
    subscriptions: int = 2
    strategy: str = "covering"
    advertisements: bool = False
    subscribed: bool = False
    kinds: frozenset[Kind] = frozenset(Kind)


class Wrong(Exception):
    """Something that must not happen has happened."""
