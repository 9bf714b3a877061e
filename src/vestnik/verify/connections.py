"""Who is connected: the brokers among each other, and the clients to them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Hashable, Iterator
from typing import Final

from vestnik.trace.records import (
    AnyRecord,
    Corrupted,
    Crashed,
    Cut,
    Detached,
    Linked,
    Restarted,
)
from vestnik.verify.histories import History
from vestnik.verify.presence import movements
from vestnik.wire.messages import NodeId

DISTURBANCES: Final = (Crashed, Restarted, Linked, Cut, Corrupted)
"""The kinds of records that may tell that something happened to brokers or links between them."""


class Connections:
    """Where in a trace something happened to brokers and links, and to each client.

    The network is whole while all brokers are up and all links there.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._moves = movements(history)
        self._changes: list[int] = []
        self._whole: list[bool] = []  # after each change
        self._ways: dict[tuple[NodeId, NodeId], list[bool]] = {}  # between two brokers, after each change
        missing: set[Hashable] = set()
        for number, record in history.of(*DISTURBANCES):
            if disturbs(record, self._moves):
                _note(record, missing)
                self._changes.append(number)
                self._whole.append(not missing)

    def is_whole(self, number: int) -> bool:
        """Whether the network is whole after record `number`."""
        place = bisect_right(self._changes, number)
        return place == 0 or self._whole[place - 1]

    def is_there(self, client: NodeId, number: int) -> bool:
        """Whether a client is connected after record `number`, as far as is known."""
        moves = self._moves.get(client, [])
        place = bisect_right(moves, number)
        return place == 0 or not isinstance(self._history.records[moves[place - 1]], Detached | Crashed)

    def is_calm(self, client: NodeId, number: int, until: int) -> bool:
        """Whether from one record to another the network is whole, a client there, and nothing happens to them.

        What had happened to the network before must have settled.
        """
        place = bisect_left(self._changes, number)
        settled = place == 0 or self._history.settles(self._changes[place - 1]) <= number
        later = [*self._after(self._changes, number), *self._after(self._moves.get(client, []), number)]
        there = self.is_whole(number) and self.is_there(client, number)
        return settled and there and min(later, default=until) >= until

    def were_apart(self, one: NodeId, other: NodeId, number: int, until: int) -> bool:
        """Whether from one record to another two brokers could not reach each other, or had not settled that they can.

        Where the links of one are not known, that is where the network was not whole.
        """
        joined = self._ways.get((one, other))
        if joined is None:
            joined = self._ways[one, other] = list(self._joined(one, other))
        first, last = bisect_right(self._changes, number), bisect_right(self._changes, until)
        apart = [place for place in range(last) if not joined[place]]
        if not apart:
            return False
        back = apart[-1] + 1
        return back >= first or self._history.settles(self._changes[back]) > number

    def _joined(self, one: NodeId, other: NodeId) -> Iterator[bool]:
        """Whether there is a way between two brokers, after each change."""
        links: set[frozenset[NodeId]] = set()
        down: set[NodeId] = set()
        records = [self._history.records[number] for number in self._changes]
        known = {node for record in records if isinstance(record, Linked) for node in (record.one, record.other)}
        for record, whole in zip(records, self._whole, strict=True):
            match record:
                case Linked(one=here, other=there):
                    links.add(frozenset((here, there)))
                case Cut(one=here, other=there):
                    links.discard(frozenset((here, there)))
                case Crashed(node=node):
                    down.add(node)
                case Restarted(node=node):
                    down.discard(node)
            up = {link for link in links if not link & down}
            yield other in _within_reach(one, up) if {one, other} <= known else whole

    def end(self) -> int | None:
        """The last record by which all had settled and the network was whole."""
        return next((number for number in reversed(self._history.settled) if self.is_whole(number)), None)

    def last_move(self, client: NodeId, number: int) -> int:
        """Where a client came or went for the last time before record `number`; -1 where it did not."""
        moves = self._moves.get(client, [])
        place = bisect_left(moves, number)
        return moves[place - 1] if place else -1

    def known(self, client: NodeId, number: int) -> int:
        """The first record by which all brokers know what a client said at record `number`.

        They do when it has settled while the network was whole and the client there. Who is back says it again.
        """
        history = self._history
        later = sorted({*self._after(self._changes, number), *self._after(self._moves.get(client, []), number)})
        ends = [*later, len(history.records)]
        for begin, end in zip([number, *later], ends, strict=True):
            settled = history.settles(begin)
            if settled <= end and self.is_whole(begin) and self.is_there(client, begin):
                return settled
        return len(history.records)

    @staticmethod
    def _after(numbers: list[int], number: int) -> list[int]:
        return numbers[bisect_right(numbers, number) :]


def disturbs(record: AnyRecord, clients: Collection[NodeId]) -> bool:
    """Whether something happens to brokers or links between them."""
    match record:
        case Crashed(node=node) | Restarted(node=node):
            return node not in clients
        case _:
            return isinstance(record, Linked | Cut | Corrupted)


def _within_reach(broker: NodeId, links: set[frozenset[NodeId]]) -> set[NodeId]:
    found, rest = {broker}, set(links)
    while new := {link for link in rest if link & found}:
        found |= {node for link in new for node in link}
        rest -= new
    return found


def _note(record: AnyRecord, missing: set[Hashable]) -> None:
    match record:
        case Crashed(node=node):
            missing.add(node)
        case Restarted(node=node):
            missing.discard(node)
        case Cut(one=one, other=other):
            missing.add(frozenset((one, other)))
        case Linked(one=one, other=other):
            missing.discard(frozenset((one, other)))
