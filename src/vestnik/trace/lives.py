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
    closed = [[*life.records, *_endings(life)] if life.node else life.records for life in lives]
    return list(merge(*closed, key=attrgetter("at")))


def _endings(life: Life) -> Iterator[AnyRecord]:
    """What follows from the end of a broker that recorded these."""
    there: dict[str, AnyRecord] = {}
    wanted: dict[tuple[str, str], AnyRecord] = {}
    offered: dict[tuple[str, str], AnyRecord] = {}
    for record in life.records:
        match record:
            case Attached(client=client):
                there[client] = record
            case Detached(client=client):
                there.pop(client, None)
            case Subscribed(client=client, name=name):
                wanted[client, name] = record
            case Unsubscribed(client=client, name=name):
                wanted.pop((client, name), None)
            case Advertised(client=client, name=name):
                offered[client, name] = record
            case Unadvertised(client=client, name=name):
                offered.pop((client, name), None)
    at = life.records[-1].at if life.records else 0.0
    yield Crashed(at, life.node)
    yield from [Detached(at, client, life.node) for client in there]
    yield from [Unsubscribed(at, *key) for key in wanted]
    yield from [Unadvertised(at, *key) for key in offered]
