"""The traces of several brokers, and of their lives, as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from operator import attrgetter
from typing import NamedTuple

from vestnik.trace.files import Begin, End, parts
from vestnik.trace.records import (
    Advertised,
    AnyRecord,
    Attached,
    Crashed,
    Detached,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)


class Life(NamedTuple):
    """What one broker recorded from its start to its end, or with no name a whole network; `is_whole` if it said so."""

    node: str
    records: list[AnyRecord]
    is_whole: bool


def read_lives(lines: Iterable[bytes], name: str = "trace") -> Iterator[Life]:
    """The lives in a file; InvalidTrace where a line cannot be read."""
    life = Life("", [], False)
    for part in parts(lines, name):
        match part:
            case Begin(node):
                life = Life(node, [], False)
            case End(cut):
                yield life._replace(is_whole=not cut)
            case _:
                life.records.append(part)


def together(lives: Iterable[Life]) -> list[AnyRecord]:
    """All records in the order of time. With a broker's life ends what its clients had there."""
    return list(merge(*map(_closed, lives), key=attrgetter("at")))


def timed(parts: Iterable[Begin | End | AnyRecord]) -> Iterator[tuple[Begin, float, AnyRecord | End]]:
    """The same one by one: records, with those that follow from the ends of lives, and the ends.

    Each comes with its life and its clock, the latest time so far of that life. Put together, records are in the order
    of their clocks; of those that are equal, in the order of files, and within a file of lines.
    """
    begun, holdings, clock = Begin(), Holdings(), float("-inf")
    for part in parts:
        match part:
            case Begin():
                begun, holdings, clock = part, Holdings(), float("-inf")
            case End():
                endings = holdings.endings(begun.node) if begun.node else ()
                yield from ((begun, max(clock, record.at), record) for record in endings)
                yield begun, clock, part
            case _:
                clock = max(clock, part.at)
                holdings.note(part)
                yield begun, clock, part


class Holdings:
    """What the clients of a broker have there, of what it recorded."""

    def __init__(self) -> None:
        self._at = 0.0
        self._there: dict[str, None] = {}
        self._wanted: dict[tuple[str, str], None] = {}
        self._offered: dict[tuple[str, str], None] = {}

    def note(self, record: AnyRecord) -> None:
        self._at = record.at
        match record:
            case Attached(client=client):
                self._there[client] = None
            case Detached(client=client):
                self._there.pop(client, None)
            case Subscribed(client=client, name=name):
                self._wanted[client, name] = None
            case Unsubscribed(client=client, name=name):
                self._wanted.pop((client, name), None)
            case Advertised(client=client, name=name):
                self._offered[client, name] = None
            case Unadvertised(client=client, name=name):
                self._offered.pop((client, name), None)

    def endings(self, node: str) -> Iterator[AnyRecord]:
        """What follows from the end of the broker."""
        yield Crashed(self._at, node)
        yield from [Detached(self._at, client, node) for client in self._there]
        yield from [Unsubscribed(self._at, *key) for key in self._wanted]
        yield from [Unadvertised(self._at, *key) for key in self._offered]


def _closed(life: Life) -> Iterable[AnyRecord]:
    if not life.node:
        return life.records
    holdings = Holdings()
    for record in life.records:
        holdings.note(record)
    return [*life.records, *holdings.endings(life.node)]
