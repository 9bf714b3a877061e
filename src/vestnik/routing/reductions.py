"""The contract of a routing strategy.

A broker keeps a table of entries, each a filter that someone wants. What a neighbour should know of it is a *reduction*
of all entries but its own: a set of entries such that the neighbour, knowing them, forwards everything that is wanted.
A strategy is how to reduce.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from vestnik.model.filters import Filter
from vestnik.wire.messages import NodeId


class Entry(Struct, frozen=True, gc=False, cache_hash=True):
    """A filter in a table; `tag` is empty but where a strategy keeps one entry for each subscription."""

    filter: Filter
    tag: str = ""


class Change(NamedTuple):
    """What a neighbour should know from now on, and what no longer; the two have nothing in common.

    `more` is what it knows already, where that stands from now on for entries that were there before, too: it may have
    to be believed for longer.
    """

    add: tuple[Entry, ...] = ()
    remove: tuple[Entry, ...] = ()
    more: tuple[Entry, ...] = ()


NO_CHANGE = Change()


class Reduction(Protocol):
    """What one neighbour should know of the entries that were added and not removed."""

    def add(self, entry: Entry) -> Change:
        """Take in an entry that is not there."""

    def remove(self, entry: Entry) -> Change:
        """Give up an entry that is there."""

    def entries(self) -> Iterable[Entry]:
        """What the neighbour should know."""

    def reasons(self, known: Entry) -> Iterable[Entry]:
        """The entries of the table for whose sake the neighbour should know `known`."""

    def representative(self, entry: Entry) -> Entry | None:
        """What the neighbour should know for the sake of `entry`; None where it need not for this one's."""


@runtime_checkable
class Gathering(Protocol):
    """A reduction for which many entries at once are less work than one after another."""

    def add_all(self, entries: Iterable[Entry]) -> Change:
        """Take in entries that are not there."""


class Strategy(Protocol):
    """A way of routing, for one broker."""

    @property
    def name(self) -> str: ...

    @property
    def tagged(self) -> bool:
        """Whether equal filters of different subscriptions are different entries."""

    @property
    def hides(self) -> bool:
        """Whether a neighbour may not be told of an entry because of another, which may be wrong."""

    def reduction(self, neighbour: NodeId) -> Reduction:
        """An empty reduction for a neighbour."""

    def floods(self, neighbour: NodeId) -> bool:
        """Whether every event goes to this neighbour, whatever it asked for."""


class Net:
    """Changes one after another, as one."""

    def __init__(self) -> None:
        self._add: dict[Entry, None] = {}
        self._remove: dict[Entry, None] = {}
        self._more: dict[Entry, None] = {}

    def take(self, change: Change) -> None:
        for entry in change.add:
            if entry in self._remove:
                del self._remove[entry]
                self._more[entry] = None
            else:
                self._add[entry] = None
        for entry in change.remove:
            self._more.pop(entry, None)
            if entry in self._add:
                del self._add[entry]
            else:
                self._remove[entry] = None
        self._more.update(dict.fromkeys(change.more))

    def change(self) -> Change:
        return Change(tuple(self._add), tuple(self._remove), tuple(self._more))


def add_all(reduction: Reduction, entries: Iterable[Entry]) -> Change:
    """Let a reduction take in entries that are not there."""
    if isinstance(reduction, Gathering):
        return reduction.add_all(entries)
    net = Net()
    for entry in entries:
        net.take(reduction.add(entry))
    return net.change()


class Nothing:
    """The reduction of strategies that tell a neighbour nothing."""

    def add(self, entry: Entry) -> Change:
        return NO_CHANGE

    def remove(self, entry: Entry) -> Change:
        return NO_CHANGE

    def entries(self) -> Iterable[Entry]:
        return ()

    def reasons(self, known: Entry) -> Iterable[Entry]:
        return ()

    def representative(self, entry: Entry) -> Entry | None:
        return None
