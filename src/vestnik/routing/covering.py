"""Covering-based routing: a neighbour is told the maximal filters only.

What a maximal filter covers is kept below it, as a tree: whoever is below is covered by all above. When a maximal
filter goes, what hung on it is looked at again, and what nothing else covers is told in the same message. Until then a
neighbour believes the maximal filter for as long as anything below it lasts.
"""

from __future__ import annotations

from collections.abc import Iterable

from vestnik.model.filters import Filter
from vestnik.routing.cover_index import Catalogue, CoverIndex
from vestnik.routing.reductions import NO_CHANGE, Change, Entry, Net, Reduction
from vestnik.wire.messages import NodeId


class Maximal:
    """The reduction to the filters that no other covers; of several that mean the same, to the first in text order."""

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self._maximal = CoverIndex(catalogue)
        self._above: dict[Filter, Filter] = {}
        self._below: dict[Filter, dict[Filter, None]] = {}

    def add(self, entry: Entry) -> Change:
        self._below[entry.filter] = {}
        return self._place(entry.filter)

    def remove(self, entry: Entry) -> Change:
        gone = entry.filter
        orphans = self._below.pop(gone)
        above = self._above.pop(gone, None)
        if above is not None:
            del self._below[above][gone]
            for orphan in orphans:
                self._hang(orphan, above)
            return NO_CHANGE
        self._maximal.remove(gone)
        net = Net()
        net.take(Change(remove=(entry,)))
        for orphan in orphans:
            del self._above[orphan]
            net.take(self._place(orphan))
            if orphan in self._above:
                net.take(Change(more=(Entry(self._above[orphan]),)))
        return net.change()

    def entries(self) -> Iterable[Entry]:
        return map(Entry, self._maximal)

    def reasons(self, known: Entry) -> Iterable[Entry]:
        todo = [known.filter]
        for found in todo:
            todo += self._below[found]
            yield Entry(found)

    def representative(self, entry: Entry) -> Entry | None:
        top = entry.filter
        if top not in self._below:
            return None
        while top in self._above:
            top = self._above[top]
        return Entry(top)

    def _place(self, new: Filter) -> Change:
        """Put a filter, with what is below it, under a maximal one or among them."""
        above = next((other for other in self._maximal.covering(new) if not _comes_before(new, other)), None)
        if above is not None:
            self._hang(new, above)
            return NO_CHANGE
        hidden = self._maximal.covered_by(new)
        for other in hidden:
            self._maximal.remove(other)
            self._hang(other, new)
        self._maximal.add(new)
        return Change((Entry(new),), tuple(map(Entry, hidden)))

    def _hang(self, narrow: Filter, wide: Filter) -> None:
        self._above[narrow] = wide
        self._below[wide][narrow] = None


def _comes_before(one: Filter, other: Filter) -> bool:
    """Whether `one`, which `other` covers, means the same and is to stay in its place."""
    return one.covers(other) and str(one) < str(other)


class Covering:
    name = "covering"
    tagged = False
    hides = True

    def __init__(self) -> None:
        self._catalogue = Catalogue()

    def reduction(self, neighbour: NodeId) -> Reduction:
        return Maximal(self._catalogue)

    def floods(self, neighbour: NodeId) -> bool:
        return False
