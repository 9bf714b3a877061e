"""An index of filters for one event at a time: add, remove, match.

Every box of a filter is a row. A row is filed under the values of one of its constraints that names single values (`=`,
`IN`, `ANY ... =`), the one whose buckets are smallest at that moment, so that the buckets stay even; a box without such
a constraint is in the bucket that every event looks into. A small bucket is a list, whose rows are scanned; a large one
is sieved, which settles most rows many at a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from vestnik.matching.single.buckets import Bucket, put, take
from vestnik.matching.single.constraints import keys
from vestnik.matching.single.paths import EACH, Paths, Steps
from vestnik.matching.single.rows import Row, make_row, release_views, scan
from vestnik.model.boxes import Box
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.lists import ALL_LISTS
from vestnik.model.spaces import Path
from vestnik.model.values import ValueSet

Id = TypeVar("Id", bound=Hashable)

Key: TypeAlias = tuple[Steps, Any]
"""A path and a value there, by which a bucket is found."""


class Access(NamedTuple):
    """Buckets to file a box under. At `settled`, whoever finds the box there need not look at the value again."""

    keys: list[Key]
    settled: Path | None = None


EVERY_EVENT = Access([])


class Matcher(Generic[Id]):
    """Filters by id, and for an event the ids of those that match it."""

    def __init__(self) -> None:
        self._filters: dict[Id, tuple[Any, ...]] = {}  # the filter, then its rows
        self._paths = Paths()
        self._rest: Bucket = []

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, id: object) -> bool:
        return id in self._filters

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, ({id: filed[0] for id, filed in self._filters.items()},)

    def add(self, id: Id, wanted: Filter) -> None:
        """Add a filter, in the place of the one that has this id, if any."""
        if id in self._filters:
            self.remove(id)
        self._filters[id] = (wanted, *[self._file(box, id) for box in wanted.region.boxes])

    def remove(self, id: Id) -> None:
        """Remove a filter; KeyError where there is none of this id."""
        for row in self._filters.pop(id)[1:]:
            self._unfile(row)

    def match(self, event: Event) -> set[Id]:
        """The ids of the filters that match `event`."""
        values, found = self._paths.read(event)
        found.append(self._rest)
        few: list[Row] = []
        hits: list[Any] = []
        for bucket in found:
            if type(bucket) is list:
                few += bucket
            else:
                hits += bucket.scan(values)
        return {*hits, *scan(few, values)}

    def _file(self, box: Box, id: Id) -> Row:
        accesses = _accesses(box)
        choice = min(range(len(accesses)), key=lambda i: self._crowd(accesses[i])) if len(accesses) > 1 else 0
        access = accesses[choice]
        row = make_row(self._paths, id, box, choice, access.settled)
        for path, key in access.keys:
            buckets = self._paths.node(path).buckets
            buckets[key] = put(buckets.get(key, []), row, self._paths)
        if not access.keys:
            self._rest = put(self._rest, row, self._paths)
        return row

    def _unfile(self, row: Row) -> None:
        access = _accesses(row[6])[row[7]]
        for path, key in access.keys:
            buckets = self._paths.node(path).buckets
            left = take(buckets.pop(key), row)
            if left:
                buckets[key] = left
            else:
                self._paths.prune(path)
        if not access.keys:
            self._rest = take(self._rest, row)
        release_views(self._paths, row)

    def _crowd(self, access: Access) -> tuple[int, int]:
        """How many rows the buckets of an access have; among equals, more buckets at its paths are better."""
        rows = buckets = 0
        for path, key in access.keys:
            node = self._paths.find(path)
            rows += 1
            if node is not None:
                rows += len(node.buckets.get(key, ()))
                buckets = max(buckets, len(node.buckets))
        return rows, -buckets


def _rebuilt(filters: dict[Any, Filter]) -> Matcher[Any]:
    matcher: Matcher[Any] = Matcher()
    for id, wanted in filters.items():
        matcher.add(id, wanted)
    return matcher


def _accesses(box: Box) -> list[Access]:
    """The ways to file a box, always in the same order."""
    found: list[Access] = []
    for path, values in box.sets:
        single = keys(values)
        if single is not None:
            found.append(Access([(path, key) for key in single], path))
        elif values.lists and values.lists != ALL_LISTS:
            found += [Access(into) for into in _element_keys(path, values)]
    return found or [EVERY_EVENT]


def _element_keys(path: Path, values: ValueSet) -> Iterator[list[Key]]:
    """For each set that every list of `values` has an element in: the single values that such an element needs."""
    if len(values.lists) > 1 or values != ValueSet(lists=values.lists):
        return
    for elements in values.lists[0].some:
        found = [_element_key(path, box) for box in elements.boxes]
        if all(found):
            yield list(dict.fromkeys(key for some in found for key in some))


def _element_key(path: Path, box: Box) -> list[Key]:
    for below, values in box.sets:
        single = keys(values)
        if single is not None:
            return [((*path, EACH, *below), key) for key in single]
    return []
