"""What a neighbour should know, by definition: computed from scratch, for what is kept up to date to agree with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations

from vestnik.model.filters import Filter
from vestnik.routing.merging import perfect_merger
from vestnik.routing.propagation import Propagation
from vestnik.routing.reductions import Entry
from vestnik.wire.messages import NodeId


def entries_for(neighbour: NodeId, subscriptions: Propagation, advertisements: Propagation | None = None) -> set[Entry]:
    """The entries of others than a neighbour, which with advertisements overlap one that came from it."""
    found = {entry for entry, sources in subscriptions if any(source.node != neighbour for source in sources)}
    if advertisements is None:
        return found
    offered = [entry.filter for entry, sources in advertisements if any(s.node == neighbour for s in sources)]
    return {entry for entry in found if any(offer.overlaps(entry.filter) for offer in offered)}


def nothing(entries: set[Entry]) -> set[Entry]:
    return set()


def everything(entries: set[Entry]) -> set[Entry]:
    return entries


def maximal(entries: set[Entry]) -> set[Entry]:
    """Those that no other covers; of several that mean the same, the first in text order."""
    return {entry for entry in entries if not any(_hides(other.filter, entry.filter) for other in entries)}


def _hides(wide: Filter, narrow: Filter) -> bool:
    if wide == narrow or not wide.covers(narrow):
        return False
    return not narrow.covers(wide) or str(wide) < str(narrow)


REDUCE: dict[str, Callable[[set[Entry]], set[Entry]]] = {
    "flooding": nothing,
    "simple": everything,
    "identity": everything,
    "covering": maximal,
}
"""What strategies reduce to, where that is one set. Merging depends on the order: see `is_merged`."""


def is_merged(known: Iterable[Entry], entries: Iterable[Entry]) -> bool:
    """Whether `known` wants exactly what `entries` want, and no two of it cover each other or merge."""
    told = [entry.filter for entry in known]
    wanted = [entry.filter for entry in entries]
    pairs = permutations(told, 2)
    apart = not any(one.covers(other) or perfect_merger(one, other) is not None for one, other in pairs)
    return apart and union(told).same_as(union(wanted))


def union(filters: Iterable[Filter]) -> Filter:
    whole = Filter.none()
    for wanted in filters:
        whole = whole | wanted
    return whole
