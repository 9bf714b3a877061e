"""What publishers and subscribers write down, one JSON object a line; the judge reads nothing else.

Times are those of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec


class Tried(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A publisher begins to publish the events `first`, `first` + 1 and so on at a broker; these are their contents."""

    at: float
    source: str
    broker: int
    first: int
    classes: tuple[int, ...]
    tokens: tuple[int, ...]


class Stored(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The broker acknowledged `count` events from `first` on."""

    at: float
    source: str
    broker: int
    first: int
    count: int


class Wanted(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A subscriber asked for classes `low` to `high` at `called`; the broker had confirmed it at `at`.

    `since` is the time from which it is to get events: that of the confirmation unless it asked for the past. A later
    record of the same subscriber in the same `life` is a changed filter; in another, a subscription that goes on.
    """

    called: float
    at: float
    subscriber: str
    client: str
    life: int
    low: int
    high: int
    since: float


class Taken(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A subscriber took a notification: event `number` of `source`, which is `seq` in the log of broker `origin`."""

    at: float
    subscriber: str
    life: int
    source: str
    number: int
    token: int
    origin: str
    seq: int


class GapTold(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A subscriber was told that `lost` events will not come, or with None that it is not known how many."""

    at: float
    subscriber: str
    life: int
    lost: int | None
    reason: str


AnyNote: TypeAlias = Tried | Stored | Wanted | Taken | GapTold


class Notebook:
    """A file that a client process appends its records to; each is there when the process is killed."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def write(self, record: AnyNote) -> None:
        self._file.write(msgspec.json.encode(record) + b"\n")


def read_notes(path: Path) -> Iterator[AnyNote]:
    """Yield the records in a file, without half a line at its end."""
    decoder = msgspec.json.Decoder(AnyNote)
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield decoder.decode(line)


def now() -> float:
    return time.monotonic()
