"""The paths that filters name: the buckets that the values there lead to, and one pass over an event that reads all.

A path has a column for each view of it that a record speaks of. The pass gives the codes and the values of an event by
column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from vestnik.matching.single import codes
from vestnik.matching.single.buckets import Bucket
from vestnik.matching.single.codes import code_of_other, number_code, string_codes
from vestnik.matching.single.spans import CONTENT
from vestnik.matching.single.store import TEXT_AT, Block
from vestnik.model.events import Event
from vestnik.model.spaces import DATA
from vestnik.model.values import MISSING


class _Each:
    """The step from a list to each of its elements."""


Step: TypeAlias = str | _Each
Steps: TypeAlias = tuple[Step, ...]
"""A path by names, which may go on from a list to its elements."""


class _Truth:
    """The key of a boolean, which a dict would take for 0 or 1."""


EACH: Final = _Each()
FALSE: Final = _Truth()
TRUE: Final = _Truth()
_KEYS = {codes.NULL: None, codes.FALSE: FALSE, codes.TRUE: TRUE, codes.MAP: MISSING, codes.LIST: MISSING}
"""Keys by code; that of a map or a list is in no bucket."""

_OWN_KEYS = frozenset({str, int, float})
_MAP = codes.MAP

FEW_NAMES = 8
"""Names that are looked for in every event; where there are more, each event is asked which of them it has."""

VIEWS = 3
UNUSED = 0
"""The column of all views that nothing uses."""


class Reading(NamedTuple):
    """An event as the index sees it: codes and values by column, the bytes of strings, and the blocks to look into.

    The code of a string's CONTENT is where its bytes begin and how many they are; of what is no string, MISSING.
    """

    codes: list[int]
    values: list[Any]
    text: bytearray
    blocks: list[Block]


class Node:
    """One path: the columns of its views, its buckets by value, and the paths below it."""

    __slots__ = ("buckets", "children", "columns")

    def __init__(self) -> None:
        self.children: dict[Step, Node] = {}
        self.columns = [UNUSED] * VIEWS
        self.buckets: dict[Any, Bucket] = {}

    def is_idle(self) -> bool:
        return not (self.children or self.buckets or any(self.columns))


class Paths:
    """All the paths in use. What is acquired and released again leaves nothing behind."""

    def __init__(self) -> None:
        self._data = Node()
        self._envelope: dict[Step, Node] = {}
        self._by_name: dict[str, dict[Any, Bucket]] = {}  # the buckets of paths with one name in data
        self._by_list: dict[Steps, dict[str, dict[Any, Bucket]]] = {}  # of a list, by one name in its elements
        self._by_path: dict[Steps, dict[Any, Bucket]] = {}  # those of all others
        self._columns: list[tuple[Steps, int] | None] = [None]
        self._users = [0]
        self._free: set[int] = set()
        self.contents = 0  # users of views of what is in a string

    def node(self, path: Steps) -> Node:
        """The node of `path`, made where it is not there."""
        node = self._data if path[0] == DATA else self._envelope.setdefault(path[0], Node())
        for step in path[1:]:
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

    def bucket(self, path: Steps, key: Any) -> Bucket:
        """The bucket of `key` at `path`, made where it is not there."""
        buckets = self.node(path).buckets
        bucket = buckets.get(key)
        if bucket is None:
            bucket = buckets[key] = Bucket(path, key)
            name, listed = _name(path), _listed(path)
            if name is not None:
                self._by_name[name] = buckets
            elif listed is not None:
                self._by_list.setdefault(path[:-2], {})[listed] = buckets
            else:
                self._by_path[path] = buckets
        return bucket

    def drop_bucket(self, bucket: Bucket) -> None:
        path = bucket.path
        buckets = self.node(path).buckets
        del buckets[bucket.key]
        if not buckets:
            name, listed = _name(path), _listed(path)
            if name is not None:
                del self._by_name[name]
            elif listed is not None:
                del self._by_list[path[:-2]][listed]
                if not self._by_list[path[:-2]]:
                    del self._by_list[path[:-2]]
            else:
                del self._by_path[path]
        self._prune(path)

    def _prune(self, path: Steps) -> None:
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
        """The column of a view, for one more user."""
        columns = self.node(path).columns
        if columns[view] == UNUSED:
            columns[view] = self._new_column(path, view)
        self._users[columns[view]] += 1
        self.contents += view == CONTENT
        return columns[view]

    def release(self, column: int) -> None:
        used = self._columns[column]
        assert used is not None
        path, view = used
        self.contents -= view == CONTENT
        self._users[column] -= 1
        if self._users[column]:
            return
        self._columns[column] = None
        self._free.add(column)
        while len(self._columns) - 1 in self._free:
            self._columns.pop()
            self._users.pop()
            self._free.remove(len(self._columns))
        self.node(path).columns[view] = UNUSED
        self._prune(path)

    def _new_column(self, path: Steps, view: int) -> int:
        if self._free:
            column = self._free.pop()
            self._columns[column] = (path, view)
        else:
            column = len(self._columns)
            self._columns.append((path, view))
            self._users.append(0)
        return column

    def reached(self, events: Sequence[Event]) -> dict[int, list[Bucket]]:
        """For each place in `events`, the buckets that the values there lead to, if any."""
        found: dict[int, list[Bucket]] = {}
        by_name = self._by_name
        if len(by_name) <= FEW_NAMES:
            for name, buckets in by_name.items():
                for place, key in enumerate(_keys(events, name)):
                    if key in buckets:
                        found.setdefault(place, []).append(buckets[key])
        else:
            for place, event in enumerate(events):
                for name in by_name.keys() & event.body.keys():
                    bucket = by_name[name].get(_key(event.body[name]))
                    if bucket is not None:
                        found.setdefault(place, []).append(bucket)
        if self._by_path:
            for place, event in enumerate(events):
                for bucket in self._reached_by_path(event):
                    found.setdefault(place, []).append(bucket)
        if self._by_list:
            for place, event in enumerate(events):
                for bucket in self._reached_in_lists(event):
                    found.setdefault(place, []).append(bucket)
        return found

    def _reached_in_lists(self, event: Event) -> Iterable[Bucket]:
        """Each bucket once; each list is gone through once, however many names of its elements there are."""
        found: dict[int, Bucket] = {}
        for path, names in self._by_list.items():
            for elements in _values(event, path):
                for element in elements if isinstance(elements, list) else ():
                    for name in names.keys() & element.keys() if isinstance(element, dict) else ():
                        bucket = names[name].get(_key(element[name]))
                        if bucket is not None:
                            found[id(bucket)] = bucket
        return found.values()

    def _reached_by_path(self, event: Event) -> Iterator[Bucket]:
        for path, buckets in self._by_path.items():
            for key in dict.fromkeys([_key(value) for value in _values(event, path)]):
                if key in buckets:
                    yield buckets[key]

    def read(self, event: Event) -> Reading:
        """What filters ask about in `event`, with no blocks to look into yet."""
        reading = Reading([codes.MISSING] * len(self._columns), [MISSING] * len(self._columns), bytearray(), [])
        for name, node in self._envelope.items():
            value = getattr(event, name)  # type: ignore[arg-type]  # the envelope has no elements
            if value is not None:
                _visit(node, value, reading)
        _visit_children(self._data.children, event.body, reading)
        return reading


def _keys(events: Sequence[Event], name: str) -> list[Any]:
    """What the values of one name are filed under."""
    values: list[Any] = [event.body.get(name, MISSING) for event in events]
    if _OWN_KEYS.issuperset(map(type, values)):
        return values
    return [value if value is MISSING else _key(value) for value in values]


def _key(value: Any) -> Any:
    """What a value is filed under; what is neither a number nor a string nor a single value is in no bucket."""
    return value if type(value) in _OWN_KEYS else _KEYS[code_of_other(value)]


def _name(path: Steps) -> str | None:
    """The name in data that a path is, if it is one."""
    return path[1] if len(path) == 2 and path[0] == DATA and isinstance(path[1], str) else None


def _listed(path: Steps) -> str | None:
    """The name in the elements of a list that a path ends with, if it does."""
    return path[-1] if len(path) > 2 and path[-2] is EACH and isinstance(path[-1], str) else None


def _values(event: Event, path: Steps) -> list[Any]:
    """The values at a path, which are many where it leads through lists."""
    if path[0] == DATA:
        return _below(event.body, path[1:])
    value = getattr(event, path[0])  # type: ignore[arg-type]  # the envelope has no elements
    return [] if value is None else _below(value, path[1:])


def _below(value: Any, path: Steps) -> list[Any]:
    for position, step in enumerate(path):
        if step is EACH:
            elements = value if isinstance(value, list) else ()
            return [inner for element in elements for inner in _below(element, path[position + 1 :])]
        if not isinstance(value, dict) or step not in value:
            return []
        value = value[step]
    return [value]


def _visit(node: Node, value: Any, into: Reading) -> None:
    """Read `value`, which is at `node`, and what is below it."""
    codes, values, text, _ = into
    forward, backward, content = node.columns
    of = type(value)
    if of is str:
        codes[forward], codes[backward], data = string_codes(value)
        if content:
            codes[content] = len(text) << TEXT_AT | len(data)
            text += data
    else:
        if of is float or of is int:
            code = number_code(value)
        else:
            code = code_of_other(value)
            if code == _MAP and node.children:
                _visit_children(node.children, value, into)
        codes[forward] = codes[backward] = code
    values[forward] = values[backward] = value


def _visit_children(children: dict[Step, Node], value: dict[Any, Any], into: Reading) -> None:
    if len(children) < len(value):
        for name, node in children.items():
            if name in value:
                _visit(node, value[name], into)
    else:
        for name, inner in value.items():
            child = children.get(name)
            if child is not None:
                _visit(child, inner, into)
