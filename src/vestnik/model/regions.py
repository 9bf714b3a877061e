"""Regions: unions of boxes over one space, with the whole algebra.

The normal form has no box that another covers and no two that differ in one path only; boxes are
in a fixed order. Equal normal forms are equal sets. Covering asks box by box first, and then by
subtraction, which is exact within the bound on work in force.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vestnik.model.boxes import EVERYTHING, Box, covers, join, make_box, meet, subtract
from vestnik.model.spaces import Path, Space
from vestnik.model.values import ValueSet
from vestnik.model.work import spend, within


@dataclass(frozen=True, slots=True)
class Region:
    """The union of `boxes`, which are in normal form."""

    space: Space
    boxes: tuple[Box, ...]

    @staticmethod
    def at(space: Space, path: Path, values: ValueSet) -> Region:
        """All whose value at `path` is in `values`."""
        box = make_box(space, {path: values})
        return Region(space, () if box is None else (box,))

    @staticmethod
    def everything(space: Space) -> Region:
        return Region(space, (EVERYTHING,))

    @staticmethod
    def nothing(space: Space) -> Region:
        return Region(space, ())

    @staticmethod
    def of(space: Space, boxes: Iterable[Box]) -> Region:
        """The union of any boxes, brought to normal form."""
        return Region(space, _normal(space, list(boxes)))

    def contains(self, root: Any) -> bool:
        return any(box.contains(self.space, root) for box in self.boxes)

    def __bool__(self) -> bool:
        return bool(self.boxes)

    def is_everything(self) -> bool:
        return self.includes(Region.everything(self.space))

    def union(self, other: Region) -> Region:
        if self == other or not other:
            return self
        return Region.of(self.space, (*self.boxes, *other.boxes))

    def intersection(self, other: Region) -> Region:
        met = (meet(self.space, a, b) for a in self.boxes for b in other.boxes)
        return Region.of(self.space, (box for box in met if box is not None))

    def complement(self) -> Region:
        rest = Region.everything(self.space)
        for box in self.boxes:
            rest = rest.intersection(Region.of(self.space, _denied(self.space, box)))
        return rest

    def includes(self, other: Region) -> bool:
        if len(self.boxes) == len(other.boxes) == 1:
            return covers(self.space, self.boxes[0], other.boxes[0])
        return all(self._includes_box(box) for box in other.boxes)

    def _includes_box(self, box: Box) -> bool:
        if any(covers(self.space, mine, box) for mine in self.boxes):
            return True
        near = [mine for mine in self.boxes if meet(self.space, mine, box) is not None]
        if len(near) < 2:
            return False
        todo = [(box, 0)]  # depth first, since what is in none of the boxes is soon found where there is anything
        while todo:
            piece, beyond = todo.pop()
            if beyond == len(near):
                return False
            todo += [(rest, beyond + 1) for rest in subtract(self.space, piece, near[beyond])]
            spend()
        return True

    def overlaps(self, other: Region) -> bool:
        return any(meet(self.space, a, b) is not None for a in self.boxes for b in other.boxes)

    def without_redundant(self) -> Region:
        """The same set without the boxes that the others cover together."""
        kept = list(self.boxes)
        for box in self.boxes:
            others = Region(self.space, tuple(b for b in kept if b is not box))
            if others and within(lambda box=box, others=others: others._includes_box(box), otherwise=False):  # type: ignore[misc]
                kept.remove(box)
        return Region(self.space, tuple(kept))

    def sort_key(self) -> tuple[Any, ...]:
        """What orders regions the same way in every process."""
        return tuple(box.sort_key() for box in self.boxes)


def _denied(space: Space, box: Box) -> list[Box]:
    """Boxes, overlapping and as wide as can be, for all that is not in `box`."""
    denials = [make_box(space, {path: values.complement()}) for path, values in box.sets]
    denials += [make_box(space, {}, frozenset({(path, atom, not holds)})) for path, atom, holds in box.literals]
    return [box for box in denials if box is not None]


def _normal(space: Space, boxes: list[Box]) -> tuple[Box, ...]:
    if len(boxes) < 2:
        return tuple(boxes)
    kept: list[Box] = []
    for box in sorted(set(boxes), key=Box.sort_key):
        _insert(space, kept, box)
    return tuple(sorted(kept, key=Box.sort_key))


def _insert(space: Space, kept: list[Box], box: Box) -> None:
    """Add `box` to a normal union, and leave it normal."""
    while True:
        if any(covers(space, other, box) for other in kept):
            return
        for other in kept:
            joined = join(space, box, other)
            if joined is not None:
                kept.remove(other)
                box = joined
                break
        else:
            kept[:] = [other for other in kept if not covers(space, box, other)]
            kept.append(box)
            return
