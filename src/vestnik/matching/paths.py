"""The paths that filters name, and one pass over an event that reads them all.

An event becomes a flat list of values. A path has up to five views, each a slot in that list and there only while
something uses it. Every view is total, so that a test needs no look at types: a comparison with what is not there is
false.

| view | holds | where there is none |
| --- | --- | --- |
| NUMBER | the number | NO_NUMBER, a NaN; another NaN where the path is missing |
| TEXT | the string | NO_TEXT, unequal to all and in no order, as NaN; another where the path is missing |
| REVERSED | the string backwards | the same |
| KIND | which kind of value, 0 to 7 | 0, missing |
| RAW | the value | MISSING |

A path may also have buckets by value, and go on from a list to its elements or from a string to its pieces; the pass
collects the buckets that the event leads to.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from vestnik.model.events import Event
from vestnik.model.frozen import FrozenDict
from vestnik.model.spaces import DATA
from vestnik.model.values import MISSING

NUMBER, TEXT, REVERSED, KIND, RAW = range(5)
MISSING_KIND, NULL_KIND, FALSE_KIND, TRUE_KIND, NUMBER_KIND, TEXT_KIND, LIST_KIND, MAP_KIND = range(8)

Step: TypeAlias = "str | _Into"
Steps: TypeAlias = tuple[Step, ...]
"""A path by names. It may go on from a list to EACH of its elements, and end in a string with all PAIRS of characters
that follow one another there."""


class _Into:
    """A step into a list or a string."""


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


EACH: Final = _Into()
PAIRS: Final = _Into()
NO_NUMBER: Final = float("nan")
NO_TEXT: Final = _NoText()
FALSE: Final = _Truth()
TRUE: Final = _Truth()

CONSTANT, UNUSED = 0, 1  # the slot that always holds 0, and the slot of all views that nothing uses
BLANKS: tuple[Any, ...] = (float("nan"), _NoText(), _NoText(), MISSING_KIND, MISSING)
_FIRST: tuple[Any, ...] = (0, None)


class Node:
    """One path: the slots of its views, its buckets by value, and the paths below it."""

    __slots__ = ("buckets", "children", "slots", "users")

    def __init__(self) -> None:
        self.children: dict[Step, Node] = {}
        self.slots = [UNUSED] * len(BLANKS)
        self.users = [0] * len(BLANKS)
        self.buckets: dict[Any, Any] = {}

    def is_idle(self) -> bool:
        return not (self.children or self.buckets or any(self.users))


class Paths:
    """All the paths in use. What is acquired and released again leaves nothing behind."""

    def __init__(self) -> None:
        self._data = Node()
        self._envelope: dict[Step, Node] = {}
        self._blank: list[Any] = [*_FIRST]
        self._free: set[int] = set()

    def node(self, path: Steps) -> Node:
        """The node of `path`, made where it is not there."""
        top, path = self._top(path)
        node = top.setdefault(path[0], Node()) if path else self._data
        for step in path[1:]:
            node = node.children.setdefault(step, Node())
        return node

    def find(self, path: Steps) -> Node | None:
        """The node of `path` where it is there."""
        top, path = self._top(path)
        node = top.get(path[0]) if path else self._data
        for step in path[1:]:
            node = node and node.children.get(step)
        return node

    def prune(self, path: Steps) -> None:
        """Drop what is idle of `path`, from its end upwards."""
        while path and path != (DATA,):
            node = self.find(path)
            if node is None or not node.is_idle():
                return
            parent = self.find(path[:-1]) if path[0] == DATA else None
            del (self._envelope if parent is None else parent.children)[path[-1]]
            path = path[:-1]

    def _top(self, path: Steps) -> tuple[dict[Step, Node], Steps]:
        return (self._data.children, path[1:]) if path[0] == DATA else (self._envelope, path)

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
    number, text, reverse, kind, raw = node.slots
    values[raw] = value
    values[number] = NO_NUMBER
    values[text] = values[reverse] = NO_TEXT
    of = type(value)
    if of is str:
        values[text] = key = value
        values[kind] = TEXT_KIND
        if reverse != UNUSED:
            values[reverse] = value[::-1]
        if node.children:
            _visit_pairs(node, value, found)
    elif of is float or of is int:
        values[number] = key = value
        values[kind] = NUMBER_KIND
    elif of is bool:
        key, values[kind] = (TRUE, TRUE_KIND) if value else (FALSE, FALSE_KIND)
    elif value is None:
        key, values[kind] = None, NULL_KIND
    elif isinstance(value, list):
        values[kind] = LIST_KIND
        _visit_elements(node, value, values, found)
        return
    else:
        values[kind] = MAP_KIND
        _visit_children(node.children, value, values, found)
        return
    if key in node.buckets:
        found.append(node.buckets[key])


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


def _visit_pairs(node: Node, text: str, found: list[Any]) -> None:
    pairs = node.children.get(PAIRS)
    if pairs is not None:
        here = {text[i : i + 2] for i in range(len(text) - 1)}
        found += [pairs.buckets[pair] for pair in here if pair in pairs.buckets]


def _visit_elements(node: Node, elements: list[Any], values: list[Any], found: list[Any]) -> None:
    """Visit the elements of a list; a bucket that several lead to is found once."""
    each = node.children.get(EACH)
    if each is None:
        return
    reached: list[Any] = []
    for element in elements:
        _visit(each, element, values, reached)
    found += {id(bucket): bucket for bucket in reached}.values()
