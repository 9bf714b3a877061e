"""Merging-based routing: filters that together are one filter are told as one.

Two boxes merge perfectly when they differ in one path only: the values there are united, and nothing is added that was
not wanted. Imperfect merging also takes the hull of two boxes where that lets in no larger share of unwanted events
than a tolerance; what is wanted is remembered, box by box, so that the tolerance is one for the result, whatever number
of hulls led to it. A merged filter remembers its parts; when one of them goes, the others are merged anew. Filters that
are unions of boxes are told as they are, unless they are covered: merged with others they would grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from vestnik.model.boxes import join
from vestnik.model.estimates import share_outside
from vestnik.model.filters import Filter
from vestnik.model.regions import Region
from vestnik.model.spaces import EVENT, Path
from vestnik.model.work import within
from vestnik.routing.cover_index import Catalogue, CoverIndex
from vestnik.routing.reductions import NO_CHANGE, Change, Entry, Net, Reduction
from vestnik.wire.messages import NodeId

Parts: TypeAlias = dict[Filter, None]
Boxes: TypeAlias = tuple[Filter, ...]

FEW_PARTS = 16
"""Parts that are asked whether they make up for one that goes; more are merged anew."""
CANDIDATES = 16
"""How many filters of the same paths an imperfect merger is sought among."""
BOXES = 16
"""Of how many boxes at most what is wanted of an imperfect merger is made up."""


class Merged:
    """The reduction to filters of which no two cover each other or merge."""

    def __init__(self, tolerance: float, catalogue: Catalogue | None = None) -> None:
        self._tolerance = tolerance
        self._merged = CoverIndex(catalogue)
        self._parts: dict[Filter, Parts] = {}
        self._part_of: dict[Filter, Filter] = {}
        self._imperfect: dict[Filter, Boxes] = {}  # with the boxes for whose sake they are told
        self._by_rest: dict[Any, Parts] = {}  # a box without one of its paths: the merged filters that have it
        self._by_shape: dict[Any, Parts] = {}  # the paths of a single box: the merged filters that are about these

    def add(self, entry: Entry) -> Change:
        return self._settle(entry.filter, {entry.filter: None})

    def add_all(self, entries: Iterable[Entry]) -> Change:
        """What can be merged of them is so before they are taken in."""
        net = Net()
        for new, parts in _gathered({entry.filter: None for entry in entries}):
            net.take(self._settle(new, parts))
        return net.change()

    def remove(self, entry: Entry) -> Change:
        merged = self._part_of.pop(entry.filter)
        left = self._parts[merged]
        del left[entry.filter]
        if len(left) <= FEW_PARTS and any(part.covers(entry.filter) for part in left):
            return NO_CHANGE
        net = Net()
        self._take_out(merged, net)
        for new, parts in _gathered(left):
            first = next(iter(parts))
            net.take(self._settle(new, parts))
            net.take(Change(more=(Entry(self._part_of[first]),)))
        return net.change()

    def entries(self) -> Iterable[Entry]:
        return map(Entry, self._merged)

    def reasons(self, known: Entry) -> Iterable[Entry]:
        return map(Entry, self._parts[known.filter])

    def representative(self, entry: Entry) -> Entry | None:
        merged = self._part_of.get(entry.filter)
        return None if merged is None else Entry(merged)

    def _settle(self, new: Filter, parts: Parts) -> Change:
        """Take in a filter that stands for `parts`."""
        above = next(self._merged.covering(new), None)
        if above is not None:
            self._assign(parts, above)
            return NO_CHANGE
        net = Net()
        boxes: Boxes = (new,)
        partner = self._partner(new, boxes)
        while partner is not None:
            old, new, boxes = partner
            parts |= self._take_out(old, net)
            partner = self._partner(new, boxes)
        for covered in self._merged.covered_by(new):
            parts |= self._take_out(covered, net)
        self._put_in(new, parts, net)
        if len(boxes) > 1:
            self._imperfect[new] = boxes
        return net.change()

    def _partner(self, new: Filter, boxes: Boxes) -> tuple[Filter, Filter, Boxes] | None:
        """A merged filter that merges with `new`, what they are together, and the boxes for whose sake that is told."""
        for rest in _rests(new):
            for other in self._by_rest.get(rest, ()):
                joined = perfect_merger(new, other)
                if joined is not None:
                    both = boxes + self._boxes(other)
                    if len(both) == 2:
                        return other, joined, (joined,)
                    if self._is_tolerable(joined, both):
                        return other, joined, both
        return self._near(new, boxes) if self._tolerance else None

    def _near(self, new: Filter, boxes: Boxes) -> tuple[Filter, Filter, Boxes] | None:
        """The filter whose hull with `new` lets in the least that is unwanted, if that is within the tolerance."""
        others = list(self._by_shape.get(_shape(new), ()))[-CANDIDATES:]
        hulls = [(new.hull(other), other) for other in others]
        hull, other = min(hulls, key=lambda pair: pair[0].unwanted, default=(None, None))
        if hull is None or other is None or hull.unwanted > self._tolerance:
            return None
        merged, both = Filter(hull.region), boxes + self._boxes(other)
        return (other, merged, both) if len(both) == 2 or self._is_tolerable(merged, both) else None

    def _boxes(self, merged: Filter) -> Boxes:
        return self._imperfect.get(merged, (merged,))

    def _is_tolerable(self, merged: Filter, boxes: Boxes) -> bool:
        """Whether few enough of the events that a box wants are wanted by none of these."""
        if len(boxes) > BOXES:
            return False
        (around,) = merged.region.boxes
        inside = [box for wanted in boxes for box in wanted.region.boxes]
        return share_outside(tuple(inside), around) <= self._tolerance

    def _put_in(self, merged: Filter, parts: Parts, net: Net) -> None:
        self._merged.add(merged)
        self._parts[merged] = {}
        self._assign(parts, merged)
        for index, key in self._places(merged):
            index.setdefault(key, {})[merged] = None
        net.take(Change(add=(Entry(merged),)))

    def _take_out(self, merged: Filter, net: Net) -> Parts:
        self._merged.remove(merged)
        for index, key in self._places(merged):
            del index[key][merged]
            if not index[key]:
                del index[key]
        self._imperfect.pop(merged, None)
        net.take(Change(remove=(Entry(merged),)))
        return self._parts.pop(merged)

    def _places(self, merged: Filter) -> list[tuple[dict[Any, Parts], Any]]:
        return [*((self._by_rest, rest) for rest in _rests(merged)), (self._by_shape, _shape(merged))]

    def _assign(self, parts: Parts, merged: Filter) -> None:
        self._parts[merged] |= parts
        for part in parts:
            self._part_of[part] = merged


def perfect_merger(one: Filter, other: Filter) -> Filter | None:
    """One box for exactly what two boxes want that differ in one path; None where there is none."""
    if _is_union(one) or _is_union(other):
        return None
    (a,), (b,) = one.region.boxes, other.region.boxes
    joined = within(lambda: join(EVENT, a, b), otherwise=None)
    return None if joined is None else Filter(Region(EVENT, (joined,)))


def _is_union(wanted: Filter) -> bool:
    return len(wanted.region.boxes) > 1


def _rests(wanted: Filter) -> Iterator[Any]:
    """A box without one path, and without those above and below it, for each: what can be joined has one in common."""
    if not _is_union(wanted):
        (box,) = wanted.region.boxes
        for path, _ in box.sets:
            apart = [constraint for constraint in box.sets if not _in_line(path, constraint[0])]
            yield path, tuple(apart), box.literals


def _in_line(one: Path, other: Path) -> bool:
    """Whether one path is the other or leads to it: what is said of the one says something of the other."""
    return one[: len(other)] == other[: len(one)]


def _shape(wanted: Filter) -> Any:
    """The paths of a box; unions have shapes of their own."""
    return wanted if _is_union(wanted) else tuple(path for path, _ in wanted.region.boxes[0].sets)


def _gathered(parts: Parts) -> Iterator[tuple[Filter, Parts]]:
    """The parts as fewer filters: those that differ in one path, the one that joins most, are joined at once."""
    groups = min((_groups(parts, path) for path in _paths(parts)), key=len, default=[])
    for group in groups:
        yield from _joined(group)


def _paths(parts: Parts) -> list[Any]:
    first = next(iter(parts), None)
    return [] if first is None else [path for box in first.region.boxes for path, _ in box.sets] or [()]


def _groups(parts: Parts, path: Any) -> list[list[Filter]]:
    """The parts in groups of those that differ at `path` only."""
    groups: dict[Any, list[Filter]] = {}
    for part in parts:
        boxes = part.region.boxes
        rest = tuple(constraint for constraint in boxes[0].sets if constraint[0] != path) if len(boxes) == 1 else part
        groups.setdefault((rest, boxes[0].literals), []).append(part)
    return list(groups.values())


def _joined(group: list[Filter]) -> list[tuple[Filter, Parts]]:
    """One filter for all of a group, by halves; several where it would be too much work."""
    if len(group) == 1:
        return [(group[0], dict.fromkeys(group))]
    half = len(group) // 2
    low, high = _joined(group[:half]), _joined(group[half:])
    if len(low) == len(high) == 1:
        joined = perfect_merger(low[0][0], high[0][0])
        if joined is not None:
            return [(joined, dict.fromkeys(group))]
    return low + high


class Merging:
    """Perfect merging; with a tolerance above 0 imperfect merging, too."""

    name = "merging"
    tagged = False
    hides = True

    def __init__(self, tolerance: float = 0.0) -> None:
        if not 0 <= tolerance < 1:
            raise ValueError(f"the tolerance of merging is a share of unwanted events from 0 to 1, not {tolerance}")
        self.tolerance = tolerance
        self._catalogue = Catalogue()

    def reduction(self, neighbour: NodeId) -> Reduction:
        return Merged(self.tolerance, self._catalogue)

    def floods(self, neighbour: NodeId) -> bool:
        return False
