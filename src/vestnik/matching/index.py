"""An index of filters for one event at a time: add, remove, match.

Every box of a filter is a row. A row is filed under the values of one of its constraints that names single values (`=`,
`IN`, `ANY ... =`), the one whose buckets are smallest at that moment, so that the buckets stay even; a box without such
a constraint is in the bucket that every event looks into. A small bucket is a list; a large one sieves its rows by
their spans. Matching costs one pass over the event, then about 0.1 us for each row that is scanned.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from vestnik.matching.buckets import Bucket, LargeBucket, put, scan_bucket, take
from vestnik.matching.constraints import keys
from vestnik.matching.paths import EACH, Paths, Steps
from vestnik.matching.rows import Row, make_row, release_views
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
    settled: Path | None


EVERY_EVENT = Access([], None)


class Filed(NamedTuple):
    """Where a box is."""

    box: Box
    choice: int  # which of the accesses of the box
    row: Row


class Matcher(Generic[Id]):
    """Filters by id, and for an event the ids of those that match it."""

    def __init__(self) -> None:
        self._filters: dict[Id, Filter] = {}
        self._filed: dict[Id, tuple[Filed, ...]] = {}
        self._paths = Paths()
        self._rest: Bucket = []

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, id: object) -> bool:
        return id in self._filters

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._filters,)

    def add(self, id: Id, wanted: Filter) -> None:
        """Add a filter, in the place of the one that has this id, if any."""
        if id in self._filters:
            self.remove(id)
        self._filters[id] = wanted
        self._filed[id] = tuple([self._file(box, id) for box in wanted.region.boxes])

    def remove(self, id: Id) -> None:
        """Remove a filter; KeyError where there is none of this id."""
        del self._filters[id]
        for filed in self._filed.pop(id):
            self._unfile(filed)

    def match(self, event: Event) -> set[Id]:
        """The ids of the filters that match `event`."""
        values, found = self._paths.read(event)
        found.append(self._rest)
        hits: set[Any] = set()
        for bucket in found:
            hits.update(scan_bucket(bucket, values))
        return hits
