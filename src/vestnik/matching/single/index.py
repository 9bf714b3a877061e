"""An index of filters for one event at a time: add, remove, match.

Every box of a filter is a record. It is filed under the values of one of its constraints that names single values (`=`,
`IN`, `ANY ... =`), the one whose buckets are smallest at that moment, so that the buckets stay even; a box without such
a constraint is in the bucket that every event looks into. The buckets that an event leads to hold the candidates. A few
are asked directly. Among many a scan finds the records that hold; where codes leave doubt, checks on the values
themselves settle it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from vestnik.matching.single import direct
from vestnik.matching.single.buckets import Bucket
from vestnik.matching.single.checks import Check, Checks, asked_once
from vestnik.matching.single.keys import EVERY_EVENT, Access, accesses
from vestnik.matching.single.paths import Paths
from vestnik.matching.single.scan import Scan, fast_scan, plain_scan
from vestnik.matching.single.spans import EVERYTHING, FORWARD, UNSETTLED, spans_of
from vestnik.matching.single.store import Block, Constraint, Store, head
from vestnik.model.boxes import Box
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.spaces import Path

Id = TypeVar("Id", bound=Hashable)

LONG_TO_SCAN = 16 * 1024
"""Bytes of strings in which a scan takes longer to look for something than each filter does by itself."""

FEW_RECORDS = 200
"""Records for which it is not worth while to load the kernel. Until it is loaded, candidates are asked one by one."""


class Filed(NamedTuple):
    """A row, its record, and the places where its heads are."""

    row: int
    record: int
    places: list[tuple[Bucket, Block]]


class Matcher(Generic[Id]):
    """Filters by id, and for an event the ids of those that match it."""

    def __init__(self) -> None:
        self._filters: dict[Id, tuple[Filter, list[Filed]]] = {}
        self._ids: list[Any] = []  # by row
        self._tests: list[direct.Tests] = []  # by row
        self._free: list[int] = []  # rows
        self._doubts: dict[int, list[Check]] = {}  # by row: what settles it where codes do not
        self._paths = Paths()
        self._store = Store()
        self._checks = Checks()
        self._rest = Bucket()
        self._scan: Scan = plain_scan

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, id: object) -> bool:
        return id in self._filters

    def __iter__(self) -> Iterator[Id]:
        return iter(self._filters)

    def __getitem__(self, id: Id) -> Filter:
        return self._filters[id][0]

    @property
    def tests(self) -> int:
        """The number of tests whose cost rises with the size of a value: patterns, all that lists ask, added kinds."""
        return self._checks.weight + self._paths.contents

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, ({id: wanted for id, (wanted, _) in self._filters.items()},)

    def add(self, id: Id, wanted: Filter) -> None:
        """Add a filter, in the place of the one that has this id, if any."""
        if not isinstance(wanted, Filter):
            raise TypeError(f"a Matcher holds filters, made by Filter.parse for example, not {type(wanted).__name__}")
        if id in self._filters:
            self.remove(id)
        self._filters[id] = wanted, [self._file(box, id) for box in wanted.region.boxes]

    def remove(self, id: Id) -> None:
        """Remove a filter; KeyError where there is none of this id."""
        for filed in self._filters.pop(id)[1]:
            self._unfile(filed)
        if len(self._free) == len(self._ids):
            self._ids, self._tests, self._free, self._store = [], [], [], Store()

    def match(self, event: Event) -> set[Id]:
        """The ids of the filters that match `event`."""
        if not isinstance(event, Event):
            raise TypeError(f"a Matcher matches an Event, not {type(event).__name__}")
        return set(self.match_each((event,))[0])

    def match_each(self, events: Sequence[Event]) -> list[tuple[Id, ...]]:
        """For each event the ids of the filters that match it; answers by the same records are one object."""
        each: list[tuple[Id, ...]] = [()] * len(events)
        answers: dict[tuple[int, ...], tuple[Id, ...]] = {}  # by rows
        reached, rest = self._paths.reached(events), self._rest
        for place in range(len(events)) if rest.size else reached:
            buckets = reached.get(place, [])
            if rest.size:
                buckets.append(rest)
            rows = self._matching(events[place], buckets)
            if rows:
                answer = answers.get(rows)
                if answer is None:
                    answer = answers[rows] = tuple(dict.fromkeys([self._ids[row] for row in rows]))
                each[place] = answer
        return each

    def _matching(self, event: Event, buckets: list[Bucket]) -> tuple[int, ...]:
        """The rows in these buckets that hold of an event."""
        size = 0
        for bucket in buckets:
            size += bucket.size
        if size > direct.FEW_HEADS and (len(self._ids) > FEW_RECORDS or self._scan is not plain_scan):
            return self._scanned(event, buckets)
        return direct.asked(self._store, buckets, self._tests, event)

    def _scanned(self, event: Event, buckets: list[Bucket]) -> tuple[int, ...]:
        """The rows of those in many candidates that match."""
        reading = self._paths.read(event)
        if len(reading.text) > LONG_TO_SCAN:
            return direct.asked(self._store, buckets, self._tests, event)
        for bucket in buckets:
            reading.blocks.extend(bucket.blocks)
        if self._scan is plain_scan:
            self._scan = fast_scan()
        rows = self._scan(self._store, reading)
        if min(rows, default=0) >= 0:
            return tuple(rows)
        holds = asked_once(reading.values)
        return tuple([max(row, ~row) for row in rows if row >= 0 or all(map(holds, self._doubts[~row]))])

    def _file(self, box: Box, id: Id) -> Filed:
        ways = accesses(box)
        access = min(ways, key=self._crowd) if len(ways) > 1 else ways[0] if ways else EVERY_EVENT
        constraints = self._constraints(box, access.settled)
        row = self._free.pop() if self._free else len(self._ids)
        self._ids[row : row + 1] = [id]
        self._tests[row : row + 1] = [direct.tests_of(box, access.settled)]
        record = self._store.add_record(row, constraints)
        doubts = [self._checks.acquire(c.column, c.subject) for c in constraints if c.spans.doubt in UNSETTLED]
        if doubts:
            self._doubts[row] = doubts
        words = head(constraints, record)
        buckets = [self._paths.bucket(*key) for key in access.keys] or [self._rest]
        return Filed(row, record, [(bucket, bucket.put(self._store, words)) for bucket in buckets])

    def _unfile(self, filed: Filed) -> None:
        row, record, places = filed
        for bucket, block in places:
            bucket.take(self._store, block, record)
            if not bucket.blocks and bucket is not self._rest:
                self._paths.drop_bucket(bucket)
        for check in self._doubts.pop(row, ()):
            self._checks.release(check)
        for column in self._store.remove_record(record):
            self._paths.release(column)
        self._ids[row], self._tests[row] = None, ()
        self._free.append(row)

    def _constraints(self, box: Box, settled: Path | None) -> list[Constraint]:
        """What a record says about a box, the narrowest constraints first."""
        found = []
        for path, values in box.sets:
            if path != settled:
                for spans in spans_of(values):
                    found.append(Constraint(self._paths.acquire(path, spans.view), spans, values))
        found.sort(key=_width)
        for path, atom, holds in box.literals:
            found.append(Constraint(self._paths.acquire(path, FORWARD), EVERYTHING, (atom, holds)))
        return found

    def _crowd(self, access: Access) -> tuple[int, int]:
        """How many heads the buckets of an access have; among equals, more buckets at its paths are better."""
        heads = buckets = 0
        for path, key in access.keys:
            node = self._paths.find(path)
            heads += 1
            if node is not None:
                buckets = max(buckets, len(node.buckets))
                if key in node.buckets:
                    heads += node.buckets[key].size
        return heads, -buckets


def _width(constraint: Constraint) -> int:
    return constraint.spans.width


def _rebuilt(filters: dict[Any, Filter]) -> Matcher[Any]:
    matcher: Matcher[Any] = Matcher()
    for id, wanted in filters.items():
        matcher.add(id, wanted)
    return matcher
