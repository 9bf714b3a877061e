"""Simple and identity routing: a neighbour is told every entry.

The two differ in what an entry is: under simple routing every subscription is one, under identity-based routing all
subscriptions with equal filters are one.
"""

from __future__ import annotations

from collections.abc import Iterable

from vestnik.routing.reductions import Change, Entry, Reduction
from vestnik.wire.messages import NodeId


class Everything:
    """The reduction that leaves nothing out."""

    def __init__(self) -> None:
        self._entries: dict[Entry, None] = {}

    def add(self, entry: Entry) -> Change:
        self._entries[entry] = None
        return Change(add=(entry,))

    def add_all(self, entries: Iterable[Entry]) -> Change:
        new = tuple(entries)
        self._entries |= dict.fromkeys(new)
        return Change(add=new)

    def remove(self, entry: Entry) -> Change:
        del self._entries[entry]
        return Change(remove=(entry,))

    def entries(self) -> Iterable[Entry]:
        return self._entries

    def reasons(self, known: Entry) -> Iterable[Entry]:
        return (known,)

    def representative(self, entry: Entry) -> Entry | None:
        return entry if entry in self._entries else None


class Identity:
    name = "identity"
    tagged = False
    hides = False

    def reduction(self, neighbour: NodeId) -> Reduction:
        return Everything()

    def floods(self, neighbour: NodeId) -> bool:
        return False


class Simple(Identity):
    name = "simple"
    tagged = True
