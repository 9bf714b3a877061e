"""Imperfect merging: one box that covers two filters, and how much more it lets in.

Without a sample of events that is an estimate under a model, see `estimates`. With one it is the share among those
that the hull matches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from vestnik.model.boxes import Box, make_box, projection
from vestnik.model.estimates import share_outside
from vestnik.model.filters import Filter
from vestnik.model.regions import Region
from vestnik.model.spaces import EVENT, Path
from vestnik.model.values import ANYTHING, NOTHING, ValueSet
from vestnik.model.work import within

if TYPE_CHECKING:
    from vestnik.model.events import Event


class Hull(Filter):
    """A filter of one box, with `unwanted`: the share of what it matches that neither filter wanted, 0.0 to 1.0."""

    __slots__ = ("unwanted",)

    unwanted: float

    def __init__(self, region: Region, unwanted: float) -> None:
        super().__init__(region)
        object.__setattr__(self, "unwanted", unwanted)

    def __reduce__(self) -> tuple[Any, ...]:
        return Hull, (self.region, self.unwanted)


def hull(one: Filter, other: Filter, sample: Iterable[Event] | None = None) -> Hull:
    """The smallest box around both, path by path."""
    boxes = (*one.region.boxes, *other.region.boxes)
    if not boxes:
        return Hull(Region.nothing(EVENT), 0.0)
    sets = {path: _joined(boxes, path) for path in {path for box in boxes for path, _ in box.sets}}
    literals = frozenset.intersection(*(box.literals for box in boxes))
    around = make_box(EVENT, sets, literals)
    assert around is not None, "a box around satisfiable boxes is satisfiable"
    region = Region(EVENT, (around,))
    if sample is None:
        return Hull(region, share_outside(boxes, around))
    return Hull(region, _sampled(one, other, region, sample))


def _joined(boxes: tuple[Box, ...], path: Path) -> ValueSet:
    """All that can be at `path` in one of the boxes; anything where that takes too much work to say."""

    def union() -> ValueSet:
        values = NOTHING
        for box in boxes:
            values = values.union(projection(EVENT, box, path))
        return values

    return within(union, otherwise=ANYTHING)


def _sampled(one: Filter, other: Filter, region: Region, sample: Iterable[Event]) -> float:
    caught = [event for event in sample if region.contains(event)]
    unwanted = sum(not one.matches(event) and not other.matches(event) for event in caught)
    return unwanted / len(caught) if caught else 0.0
