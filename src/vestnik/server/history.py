"""What a history keeps, and answers for when the past is recalled."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from vestnik.broker.core import OwnLog
from vestnik.broker.effects import Append, Look, Seen
from vestnik.errors import InvalidSetting
from vestnik.journal import Entry, GroupCommit, Journal, Lost
from vestnik.journal.folders import Kind, kind_of, name_in
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.spaces import EVENT
from vestnik.model.times import MICROS
from vestnik.recovery.pages import LogEntry, LogView, read_page
from vestnik.server.claims import Claims
from vestnik.server.leafing import unseen
from vestnik.server.store import Answer
from vestnik.wire.messages import Taken
from vestnik.wire.origins import ENDLESS, Origin, ReadTerms, Span
from vestnik.wire.packing import UNREADABLE, pack, unpack
from vestnik.wire.replays import Replay

LOG: Final = logging.getLogger(__name__)

MOST: Final = 10_000
"""Events that are kept unless something else is said."""
KEPT: Final = 2
"""The kind of a record that holds an event."""
SPARE: Final = 1_000
"""Records that the journal of a history has for nothing, at least, before it is written anew."""


TIME_SIZE: Final = 8
"""Bytes before an event in its record: when it came."""


def entry_of(at: int, event: Event) -> Entry:
    """Return the entry of an event that came at the time `at`.

    The payload repeats the time, because a record that is written once more gets a later one.
    """
    return KEPT, at, at.to_bytes(TIME_SIZE, "little", signed=True) + pack(event)


def kept_in(payload: bytes) -> tuple[int, Event]:
    """Return when an event came, and the event."""
    return int.from_bytes(payload[:TIME_SIZE], "little", signed=True), unpack(payload[TIME_SIZE:])


class Bounds(Struct, frozen=True, kw_only=True):
    """What is kept: the `last` so many, for `age` seconds, the latest by the value of a path; together, what all allow.

    An event that matches `purge` ends all that was kept before it.
    """

    last: int = MOST
    age: float | None = None
    latest_by: str | None = None
    purge: Filter | None = None

    def __post_init__(self) -> None:
        if not self.last > 0:
            raise InvalidSetting("last", f"a history keeps 1 event or more, not {self.last}")
        if self.age is not None and not self.age > 0:
            raise InvalidSetting("age", f"a history keeps events for longer than nothing, not for {self.age} seconds")
        if self.latest_by is not None:
            Replay(latest_by=self.latest_by).key()


class Shelf:
    """Events in the order in which they came, within bounds. Time comes in."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._path = None if bounds.latest_by is None else Replay(latest_by=bounds.latest_by).key()
        self._kept: dict[Any, Taken] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, taken: Taken) -> bool:
        """Keep an event, if it is new; whether it is."""
        event, bounds = taken.event, self._bounds
        if bounds.purge is not None and bounds.purge.matches(event):
            self._kept.clear()
            return True
        key = self._key(event)
        before = self._kept.get(key)
        if before is not None and (before.event.source, before.event.id) == (event.source, event.id):
            return False
        self._kept.pop(key, None)
        self._kept[key] = taken
        while len(self._kept) > bounds.last:
            del self._kept[next(iter(self._kept))]
        return True

    def kept(self, now: float) -> list[Taken]:
        """What is kept at this time."""
        age = self._bounds.age
        if age is not None:
            self._kept = {key: taken for key, taken in self._kept.items() if taken.time > (now - age) * MICROS}
        return list(self._kept.values())

    def _key(self, event: Event) -> Any:
        if self._path is None:
            return event.source, event.id
        found = EVENT.read(event, self._path)
        return repr(found) if isinstance(found, dict | list) else (isinstance(found, bool), found)


class Copies(LogView):
    """The events of a history as a log, at the places that they have there."""

    def __init__(self, kept: Sequence[Taken]) -> None:
        self._kept = kept

    @property
    def begin(self) -> int:
        return 1

    @property
    def start(self) -> int:
        return 1

    @property
    def holes(self) -> tuple[Span, ...]:
        return ()

    def entries(self, span: Span) -> Iterator[LogEntry]:
        for taken in self._kept:
            if span.first <= taken.position < span.end:
                yield LogEntry(taken.position, taken.time, pack(taken.event))

    def offset_since(self, time: int) -> int:
        return max([taken.position + 1 for taken in self._kept if taken.time < time], default=1)

    def why(self, gap: Span) -> str:
        return "the history has them no more"


class HistoryStore:
    """The store of a broker that is a history: of what others publish, in memory, and in `folder` for its next life.

    Nobody publishes at such a broker. It keeps everything `wanted` that it is given.
    """

    is_durable = False
    position = 0

    def __init__(self, bounds: Bounds, folder: Path | None = None, wanted: Filter = Filter.none()) -> None:  # noqa: B008
        if folder is not None and kind_of(folder) in (Kind.BROKER, Kind.PART):
            whose = f"of the broker {name}" if (name := name_in(folder)) else "of a broker"
            raise InvalidSetting("data", f"{folder} is a folder {whose}; choose another folder for the history")
        self._shelf = Shelf(bounds)
        self._wanted = wanted if bounds.latest_by is None else Filter.none()
        self._claims = Claims()
        self._last = 0
        self._journal = None if folder is None else Journal.open(folder)
        self._commit = None if self._journal is None else GroupCommit(self._journal)
        self._lost: list[str] = []  # of what was kept in an earlier life
        if self._journal is not None and not self._journal.recovery.is_clean:
            LOG.warning("%s", self._journal.recovery)
            self._lost += map(str, self._journal.recovery.lost)
        for record in self._journal.read() if self._journal is not None else ():
            if record.kind == KEPT:
                try:
                    self._put(*kept_in(record.payload))
                except UNREADABLE as error:
                    self._lost.append(str(Lost(record.position, record.position, f"it holds no event: {error}")))
                    LOG.warning("%s", self._lost[-1])

    def missed(self) -> None:
        """Note that something may not have come: what was kept before is not all of a log any more."""
        self._claims.clear()

    def keep(self, event: Event, origin: Origin | None = None, since: int = ENDLESS) -> None:
        """Keep an event. If its log is given, all of that has come from the event on, or `since` an offset."""
        now = time.time_ns() // 1000
        is_new = self._put(now, event)
        if is_new and origin is not None and event.seq is not None:
            self._claims.note(origin, event.seq, self._last, since)
        elif event.broker is not None:
            self._claims.drop(event.broker)
        if is_new and self._journal is not None and self._commit is not None:
            self._write([entry_of(now, event)])
            if self._journal.count > 2 * len(self._shelf) + SPARE:
                self._write_anew(self._journal)

    def _put(self, now: int, event: Event) -> bool:
        self._last += 1
        return self._shelf.put(Taken(self._last, now, event))

    def _write(self, entries: list[Entry]) -> None:
        assert self._journal is not None and self._commit is not None
        self._commit.when_committed(self._journal.append(entries), lambda failure: None)

    def _write_anew(self, journal: Journal) -> None:
        """Most of the journal is of no use: write once more what is kept, and drop the rest."""
        if not journal.roll():
            return  # the process has no descriptor left; the next event tries again
        behind = journal.last
        self._write([entry_of(taken.time, taken.event) for taken in self._shelf.kept(time.time())])
        journal.sync()
        journal.drop_before(behind + 1)

    def append(self, what: Append, done: Callable[[Append, str], None]) -> None:
        done(what, "a history takes no publications")

    @property
    def log(self) -> OwnLog:
        """The log with which the broker starts: a new one for each life."""
        return OwnLog(time.time_ns() // 1000, is_whole=False, is_history=True)

    def read(self, terms: ReadTerms, end: int, answer: Answer) -> None:
        """Answer with a page of what is kept."""
        kept = self._shelf.kept(time.time())
        page = read_page(Copies(kept), terms, self._last + 1)
        if self._lost and terms.start <= 1:
            reason = "; ".join([*([page.reason] if page.reason else []), *self._lost])
            page = replace(page, gap=page.gap or Span(0, 1), reason=reason)
        if all(self._wanted.covers(one) for one in terms.filters):
            page = replace(page, covers=self._claims.covers(kept))
        answer(page)

    def review(self, what: Look, answer: Callable[[Seen], None]) -> None:
        answer(unseen(what, "a history has no journal; ask the brokers that took the events"))

    def taken(self, lost: list[str]) -> Iterator[tuple[int, Event]]:
        """All events that are kept, with the times at which they came; what its folder has `lost` is told."""
        lost += self._lost
        for taken in self._shelf.kept(time.time()):
            yield taken.time, taken.event

    async def close(self) -> None:
        if self._commit is not None:
            await self._commit.close()
        if self._journal is not None:
            self._journal.close()
