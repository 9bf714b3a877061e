"""Sets of lists: unions of list boxes.

A list box says what every element is and, for each of some sets, that at least one element is
in it: `ALL x T AND ANY x S1 AND ANY x S2`. The element sets are values with the operations of
`Elements`; `every=None` stands for all elements. A list set is a tuple of list boxes, their union.

A list box is kept in its one form: each S within T, none of them empty, none containing another.
Over such boxes every question has an exact answer (for the S: a set that every list in the box
must meet contains one of them, or else a list could avoid it).

A list set is kept in its one form, too: all the largest boxes that lie within it, as a Boolean function
has its prime implicants. Lists with the same T have one largest box, so there is one for each T, and
a box lies within the set exactly when it lies within one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    return wide == ALL_LISTS or all(any(_covers(other, box) for other in wide) for box in narrow)


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


def _normal(boxes: Iterable[ListBox]) -> ListSet:
    """The largest boxes within the union of `boxes`, found as prime implicants are, by consensus and absorption."""
    kept: list[ListBox] = []
    todo = list(boxes)
    while todo:
        box = todo.pop()
        if any(_covers(other, box) for other in kept):
            continue
        kept = [other for other in kept if not _covers(box, other)]
        alike = next((other for other in kept if other.every == box.every), None)
        if alike is not None:
            kept.remove(alike)
            todo += _either(alike, box)
            continue
        for other in kept:
            todo += [*_consensus(box, other), *_consensus(other, box)]
        kept.append(box)
    return tuple(sorted(kept, key=sort_key)) if len(kept) > 1 else tuple(kept)


def _either(a: ListBox, b: ListBox) -> ListSet:
    """The lists of two boxes with the same `every`: ANY x OR ANY y is ANY (x or y)."""
    return _list_box(a.every, [s.union(t) for s in a.in_order for t in b.in_order])


def _consensus(a: ListBox, b: ListBox) -> Iterator[ListBox]:
    """Boxes within the union of both: what is alien to b may be in its lists if it makes them lists of a.

    For some of the sets that `a` requires, with A what is in all of them and alien to b: a list of the elements of both
    and of A is in `a` if it has one of A and what else `a` requires, and in b if it has none and what b requires.
    """
    if b.every is None:
        return
    alien = b.every.complement()
    both = b.every if a.every is None else a.every.intersection(b.every)
    for met, rest in _choices(alien, a.in_order):
        yield from _list_box(both.union(met), [*rest, *(t.union(met) for t in b.in_order)])


def _choices(met: Elements, some: list[Elements]) -> Iterator[tuple[Elements, list[Elements]]]:
    """For each choice of one or more of `some`, what of `met` is in all of these, if anything is, and the others."""
    for i, s in enumerate(some):
        in_both = met.intersection(s)
        if in_both:
            yield in_both, some[:i] + some[i + 1 :]
            for more, rest in _choices(in_both, some[i + 1 :]):
                yield more, some[:i] + rest


def sort_key(box: ListBox) -> tuple[Any, ...]:
    """What orders list boxes the same way in every process."""
    every = () if box.every is None else (box.every.sort_key(),)
    return every, tuple(map(_key, box.in_order))


def _key(elements: Elements) -> tuple[Any, ...]:
    return elements.sort_key()
