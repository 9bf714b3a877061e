"""Sets of lists: unions of list boxes.

A list box says what every element is and, for each of some sets, that at least one element is
in it: `ALL x T AND ANY x S1 AND ANY x S2`. The element sets are values with the operations of
`Elements`; `every=None` stands for all elements. A list set is a tuple of list boxes, their union.

A list box is kept in its one form: each S within T, none of them empty, none containing another.
Over such boxes every question has an exact answer (for the S: a set that every list in the box
must meet contains one of them, or else a list could avoid it).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from vestnik.model.work import spend


class Elements(Protocol):
    """A set of list elements."""

    def __bool__(self) -> bool: ...
    def contains(self, value: Any) -> bool: ...
    def union(self, other: Any) -> Any: ...
    def intersection(self, other: Any) -> Any: ...
    def complement(self) -> Any: ...
    def includes(self, other: Any) -> bool: ...
    def is_everything(self) -> bool: ...
    def sort_key(self) -> tuple[Any, ...]: ...


@dataclass(frozen=True, slots=True)
class ListBox:
    """The lists whose elements are all in `every` and that have an element in each of `some`."""

    every: Any | None = None
    some: frozenset[Any] = frozenset()

    @property
    def in_order(self) -> list[Any]:
        """The sets in `some`, in the same order in every process."""
        return sorted(self.some, key=_key) if len(self.some) > 1 else list(self.some)

    def contains(self, values: list[Any]) -> bool:
        every = self.every
        if every is not None and not all(every.contains(v) for v in values):
            return False
        return all(any(s.contains(v) for v in values) for s in self.some)


ListSet: TypeAlias = tuple[ListBox, ...]

NO_LISTS: ListSet = ()
ALL_LISTS: ListSet = (ListBox(),)


def every_element(elements: Elements) -> ListSet:
    """The lists with nothing but `elements`."""
    return _list_box(elements, [])


def some_element(elements: Elements) -> ListSet:
    """The lists with at least one of `elements`."""
    return _list_box(None, [elements])


def contains(lists: ListSet, values: list[Any]) -> bool:
    return any(box.contains(values) for box in lists)


def union(a: ListSet, b: ListSet) -> ListSet:
    if a == b or not b:
        return a
    if not a:
        return b
    return _normal((*a, *b))


def intersection(a: ListSet, b: ListSet) -> ListSet:
    if a == b or b == ALL_LISTS:
        return a
    if a == ALL_LISTS:
        return b
    return _normal(box for x in a for y in b for box in _meet(x, y))


def complement(lists: ListSet) -> ListSet:
    rest = ALL_LISTS
    for box in lists:
        rest = intersection(rest, _normal(_outside(box)))
    return rest


def includes(wide: ListSet, narrow: ListSet) -> bool:
    return wide == ALL_LISTS or all(_covered(box, wide) for box in narrow)


def _list_box(every: Elements | None, some: list[Elements]) -> ListSet:
    """The list box in its one form, or no lists where it cannot be satisfied."""
    spend()
    if every is not None:
        if every.is_everything():
            every = None
        else:
            some = [s.intersection(every) for s in some]
    if not all(some):
        return NO_LISTS
    least: list[Elements] = []
    for s in some:
        if not any(s.includes(t) for t in least):
            least = [t for t in least if not t.includes(s)] + [s]
    return (ListBox(every, frozenset(least)),)


def _meet(a: ListBox, b: ListBox) -> ListSet:
    every = b.every if a.every is None else a.every if b.every is None else a.every.intersection(b.every)
    return _list_box(every, [*a.in_order, *b.in_order])


def _outside(box: ListBox) -> ListSet:
    """The lists not in `box`: one with an alien element, or one that avoids a required set."""
    outside = NO_LISTS if box.every is None else some_element(box.every.complement())
    for s in box.in_order:
        outside += every_element(s.complement())
    return outside


def _covers(wide: ListBox, narrow: ListBox) -> bool:
    if wide.every is not None and (narrow.every is None or not wide.every.includes(narrow.every)):
        return False
    return all(any(s.includes(t) for t in narrow.some) for s in wide.some)


def _covered(box: ListBox, wide: ListSet) -> bool:
    if any(_covers(other, box) for other in wide):
        return True
    if len(wide) < 2:
        return False
    todo = [(box, 0)]  # depth first, since a list in none of `wide` is soon found where there is one
    while todo:
        piece, beyond = todo.pop()
        if beyond == len(wide):
            return False
        todo += [(rest, beyond + 1) for out in _outside(wide[beyond]) for rest in _meet(piece, out)]
    return True


def _normal(boxes: Iterable[ListBox]) -> ListSet:
    """The union without boxes that others cover, joined where it stays exact, in no particular order."""
    kept: list[ListBox] = []
    for box in boxes:
        if any(_covers(other, box) for other in kept):
            continue
        kept = [other for other in kept if not _covers(box, other)] + [box]
    for i, a in enumerate(kept):
        for b in kept[i + 1 :]:
            joined = _join(a, b)
            if joined is not None:
                return _normal([box for box in kept if box is not a and box is not b] + [joined])
    if len(kept) > 1 and _covered(ListBox(), tuple(kept)):
        return ALL_LISTS
    return tuple(sorted(kept, key=sort_key)) if len(kept) > 1 else tuple(kept)


def _join(a: ListBox, b: ListBox) -> ListBox | None:
    """One box for both where they differ in one required set only: ANY x OR ANY y is ANY (x or y)."""
    if a.every != b.every or len(a.some) != len(b.some) or len(a.some - b.some) != 1:
        return None
    (one,), (other,) = a.some - b.some, b.some - a.some
    return _list_box(a.every, [*(a.some & b.some), one.union(other)])[0]


def sort_key(box: ListBox) -> tuple[Any, ...]:
    """What orders list boxes the same way in every process."""
    every = () if box.every is None else (box.every.sort_key(),)
    return every, tuple(map(_key, box.in_order))


def _key(elements: Elements) -> tuple[Any, ...]:
    return elements.sort_key()
