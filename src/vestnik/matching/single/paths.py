"""The paths that filters name, and one pass over an event that reads them all.

An event becomes a flat list of values. A path has some views, each a slot in that list and there only while something
uses it. Every view is total, so that a test needs no look at types: a comparison with what is not there is false.

| view | holds | else |
| --- | --- | --- |
| NUMBER | the number | NO_NUMBER, a NaN; another NaN where the path is missing |
| TEXT | the string | NO_TEXT, unequal to all and in no order, as NaN; another where the path is missing |
| KIND | the kind of the value | MISSING_KIND |
| RAW | the value | MISSING |

Besides these a path has the cells that sieves ask for (see `cells`), and buckets by value, of which the pass collects
those that the event leads to.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Final, TypeAlias

from vestnik.matching.single.cells import (
    FALSE_KIND,
    LIST_KIND,
    MAP_KIND,
    MISSING_KIND,
    NULL_KIND,
    NUMBER_KIND,
    TEXT_KIND,
    TRUE_KIND,
    Cells,
)
from vestnik.model.events import Event
from vestnik.model.frozen import FrozenDict
from vestnik.model.spaces import DATA
from vestnik.model.values import MISSING

NUMBER, TEXT, KIND, RAW = range(4)

SAMPLE = 512
"""Constants of a path that are remembered, to cut it into cells by."""
STALE = 32
"""Cells are out of date when a path has so many times the users that it had."""


class _Each:
    """The step from a list to each of its elements."""


Step: TypeAlias = str | _Each
Steps: TypeAlias = tuple[Step, ...]
"""A path by names, which may go on from a list to its elements."""


class _NoText:
    """Stands where a string is not: every comparison with it is false, as with NaN."""

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__

    def endswith(self, end: str) -> bool:
        return False


class _Truth:
    """The key of a boolean, which a dict would take for 0 or 1."""


EACH: Final = _Each()
NO_NUMBER: Final = float("nan")
NO_TEXT: Final = _NoText()
FALSE: Final = _Truth()
TRUE: Final = _Truth()
BLANKS: tuple[Any, ...] = (float("nan"), _NoText(), MISSING_KIND, MISSING)
"""What the views hold where the path is missing."""

CONSTANT, UNUSED = 0, 1  # the slot that always holds 0, and the slot of all views that nothing uses
_FIRST: tuple[Any, ...] = (0, None)


class Node:
    """One path: the slots of its views, its cells, its buckets by value, and the paths below it."""

    __slots__ = ("buckets", "cells", "children", "constants", "slots", "users")

    def __init__(self) -> None:
        self.children: dict[Step, Node] = {}
        self.slots = [UNUSED] * len(BLANKS)
        self.users = [0] * len(BLANKS)
        self.cells: list[Cells] = []  # those in use, new after old
        self.constants: tuple[list[Any], list[Any]] = ([], [])  # the latest that filters name, and those backwards
        self.buckets: dict[Any, Any] = {}

    def is_idle(self) -> bool:
        return not (self.children or self.buckets or self.cells or any(self.users))


class Paths:
    """All the paths in use. What is acquired and released again leaves nothing behind."""

    def __init__(self) -> None:
        self._data = Node()
        self._envelope: dict[Step, Node] = {}
        self._blank: list[Any] = [*_FIRST]
        self._free: set[int] = set()

    def node(self, path: Steps) -> Node:
        """The node of `path`, made where it is not there."""
        if path[0] == DATA:
            node, path = self._data, path[1:]
        else:
            node, path = self._envelope.setdefault(path[0], Node()), path[1:]
        for step in path:
            child = node.children.get(step)
            if child is None:
                child = node.children[step] = Node()
            node = child
        return node

    def find(self, path: Steps) -> Node | None:
        """The node of `path` where it is there."""
        node = self._data if path[0] == DATA else self._envelope.get(path[0])
        for step in path[1:]:
            node = node and node.children.get(step)
        return node

    def prune(self, path: Steps) -> None:
        """Drop what is idle of `path`, from its end upwards."""
        while path != (DATA,):
            node = self.find(path)
            if node is None or not node.is_idle():
                return
            if len(path) == 1:
                del self._envelope[path[0]]
                return
            parent = self.find(path[:-1])
            assert parent is not None
            del parent.children[path[-1]]
            path = path[:-1]

    def acquire(self, path: Steps, view: int) -> int:
        """The slot of a view, for one more user."""
        node = self.node(path)
        node.users[view] += 1
        if node.users[view] == 1:
            node.slots[view] = self._new_slot(BLANKS[view])
        return node.slots[view]

    def release(self, path: Steps, view: int) -> None:
        node = self.node(path)
        node.users[view] -= 1
        if not node.users[view]:
            self._drop_slot(node.slots[view])
            node.slots[view] = UNUSED
            self.prune(path)

    def note(self, path: Steps, backwards: bool, constants: list[Any]) -> None:
        """Remember constants that a filter names at a path in use."""
        known = self.node(path).constants[backwards]
        known += constants[:SAMPLE]
        del known[:-SAMPLE]

    def acquire_cells(self, path: Steps, backwards: bool, count: int) -> Cells:
        """Cells of a path in use, for one more user."""
        node = self.node(path)
        found = [cells for cells in node.cells if (cells.backwards, cells.count) == (backwards, count)]
        if not found or self.is_stale(path, found[-1]):
            slot = self._new_slot(MISSING_KIND)
            found.append(Cells(slot, backwards, count, node.constants[backwards], sum(node.users)))
            node.cells.append(found[-1])
        found[-1].users += 1
        return found[-1]

    def is_stale(self, path: Steps, cells: Cells) -> bool:
        """Whether the path has many more users than when its cells were made."""
        return sum(self.node(path).users) > STALE * cells.made_at

    def release_cells(self, path: Steps, cells: Cells) -> None:
        cells.users -= 1
        if not cells.users:
            self.node(path).cells.remove(cells)
            self._drop_slot(cells.slot)
            self.prune(path)

    def _new_slot(self, blank: Any) -> int:
        if self._free:
            slot = self._free.pop()
            self._blank[slot] = blank
            return slot
        self._blank.append(blank)
        return len(self._blank) - 1

    def _drop_slot(self, slot: int) -> None:
        self._blank[slot] = None
        self._free.add(slot)
        while len(self._blank) - 1 in self._free:
            self._blank.pop()
            self._free.remove(len(self._blank))

    def read(self, event: Event) -> tuple[list[Any], list[Any]]:
        """The values of `event` by slot, and the buckets that they lead to, each once."""
        values = self._blank.copy()
        found: list[Any] = []
        for name, node in self._envelope.items():
            value = getattr(event, name)  # type: ignore[arg-type]  # the envelope has no elements
            if value is not None:
                _visit(node, value, values, found)
        _visit(self._data, event.data, values, found)
        return values, found


def _visit(node: Node, value: Any, values: list[Any], found: list[Any]) -> None:
    """Read `value`, which is at `node`, and what is below it."""
    number, text, kind, raw = node.slots
    values[raw] = value
    of = type(value)
    if of is str:
        values[number] = NO_NUMBER
        values[text] = key = value
        values[kind] = TEXT_KIND
        for cells in node.cells:
            values[cells.slot] = TEXT_KIND + bisect_right(cells.texts, value[::-1] if cells.backwards else value)
    elif of is float or of is int:
        values[number] = key = value
        values[text] = NO_TEXT
        values[kind] = NUMBER_KIND
        for cells in node.cells:
            values[cells.slot] = cells.first_number + bisect_right(cells.numbers, value)
    else:
        values[number] = NO_NUMBER
        values[text] = NO_TEXT
        code, key = _other_kind(value)
        values[kind] = code
        for cells in node.cells:
            values[cells.slot] = code
        if code == MAP_KIND:
            _visit_children(node.children, value, values, found)
        elif code == LIST_KIND:
            _visit_elements(node, value, values, found)
    if key in node.buckets:
        found.append(node.buckets[key])


def _other_kind(value: Any) -> tuple[int, Any]:
    """The kind of what is neither string nor number, and its key; that of a map or a list is in no bucket."""
    if value is None:
        return NULL_KIND, None
    if value is True:
        return TRUE_KIND, TRUE
    if value is False:
        return FALSE_KIND, FALSE
    return (LIST_KIND if isinstance(value, list) else MAP_KIND), MISSING


def _visit_children(children: dict[Step, Node], value: FrozenDict, values: list[Any], found: list[Any]) -> None:
    if len(children) < len(value):
        for name, node in children.items():
            if name in value:
                _visit(node, value[name], values, found)  # type: ignore[index]  # a step in a map is a name
    else:
        for name, inner in value.items():
            child = children.get(name)
            if child is not None:
                _visit(child, inner, values, found)


def _visit_elements(node: Node, elements: list[Any], values: list[Any], found: list[Any]) -> None:
    """Visit the elements of a list; a bucket that several lead to is found once."""
    each = node.children.get(EACH)
    if each is None:
        return
    reached: list[Any] = []
    for element in elements:
        _visit(each, element, values, reached)
    found += {id(bucket): bucket for bucket in reached}.values()
