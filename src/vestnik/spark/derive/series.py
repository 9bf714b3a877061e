"""What events say of a key over time, and the things that are found in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Reading(NamedTuple):
    """At `time`, in microseconds, the value of `key` was so, and `source` and `id` are the event that said it.

    Readings of a key are in order of time; where times are equal, by broker and seq, then by source and id.
    """

    key: str
    time: int
    broker: str
    seq: int
    source: str
    id: str
    value: float = 0.0
    volume: float | None = None


@dataclass(frozen=True, order=True)
class Candle:
    """The values of a key from `start` on and before `end`: first, highest, lowest, last, and how many there were."""

    key: str
    start: int
    end: int
    open: float
    high: float
    low: float
    close: float
    count: int
    volume: float | None


@dataclass(frozen=True, order=True)
class Rate:
    """How many events of a key there were from `start` on and before `end`."""

    key: str
    start: int
    end: int
    count: int


class Firing(NamedTuple):
    """A trigger fired at `reading`, seen from the earlier reading `base`."""

    reading: Reading
    base: Reading
