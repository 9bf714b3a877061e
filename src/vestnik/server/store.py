"""What a broker's clients publish, in its journal."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from vestnik.broker.core import TAIL, OwnLog
from vestnik.broker.effects import Append, Look, Seen
from vestnik.broker.stored import StoredEvent
from vestnik.errors import JournalClosed, JournalFailed, TooManyOpenFiles, VestnikError
from vestnik.journal import Entry, GroupCommit, Journal, Lost, Record, Settings
from vestnik.journal.folders import HELD
from vestnik.journal.identity import identify, log_of
from vestnik.logs import emit
from vestnik.model import spaces
from vestnik.model.events import Event
from vestnik.observe.histograms import Histogram
from vestnik.recovery.selection import key_of
from vestnik.server.held import Held, Whole
from vestnik.server.leafing import leaf_through, unseen
from vestnik.server.logview import no_event, read_journal
from vestnik.threads import Worker
from vestnik.wire.origins import ReadTerms, Slice, Span
from vestnik.wire.packing import TAKEN, UNREADABLE, pack_taken, split_taken, unpack_taken
from vestnik.wire.replays import Replay

LOG: Final = logging.getLogger(__name__)

RETAIN_EVERY: Final = 10.0
"""Seconds between two looks for what is too old to be kept."""
RECENT: Final = 100_000
"""Records in which a broker that begins anew looks for what may be published again."""

OPEN_AGAIN_AFTER: Final = 0.1
"""Seconds after which reading is tried again that failed because the process has too many open files."""

Result = TypeVar("Result")


class WhenStored(Protocol):
    """Told what was stored, without a failure; or why it could not be. If that is `unknown`, it may be on the disk."""

    def __call__(self, what: Append, failure: str, unknown: bool = False, /) -> None: ...


Answer: TypeAlias = Callable[[Slice], None]
"""Given a page."""


class JournalStore:
    """Answers when what it was given is on disk.

    With `latest_by`, a path, of the events with one value there only the latest is kept in time.
    """

    is_durable = True

    def __init__(self, folder: Path, settings: Settings | None = None, latest_by: str | None = None) -> None:
        self._journal = Journal.open(folder, settings)
        self._identity = identify(folder)
        self._held = Held(folder.with_name(HELD), fsync=self._journal.settings.fsync)
        self.fsync = Histogram()  # seconds of each sync
        self._commit = GroupCommit(Whole(self._journal, self._held), self.fsync.put)
        self._leaving = GroupCommit(self._held)
        self._lost = list(self._journal.recovery.lost)  # what is missing in the log
        self._tasks: set[asyncio.Task[None]] = set()
        self.unread: list[Lost] = []  # of what was stored last
        self.recoveries = {folder: self._journal.recovery, folder.with_name(HELD): self._held.recovery}
        self._latest_by = None if latest_by is None else Replay(latest_by=latest_by).key()
        self._compacted = 0
        self._compactor = Worker("vestnik-compact")
        self._is_closing = False
        self._retaining: asyncio.TimerHandle | None = None

    @property
    def position(self) -> int:
        """All up to here is on disk."""
        return self._journal.committed

    @property
    def log(self) -> OwnLog:
        """The log with which the broker starts."""
        journal = self._journal
        return OwnLog(log_of(self._identity), journal.next, journal.latest, TAIL, is_whole=False)

    @property
    def failure(self) -> str:
        """Why nothing can be stored any more: the disk has failed. Empty if it can."""
        return "" if self._journal.failed is None else str(self._journal.failed)

    def stored(self) -> Iterator[StoredEvent]:
        """What is held, and then what was stored last: that may say what is held no more, so nothing is too old before.

        A broker that begins anew goes through all of it.
        """
        yield from self._held.settled(self._recent())
        self._trim()
        self._retain()

    def _recent(self) -> Iterator[StoredEvent]:
        for record in self._journal.recent(RECENT):
            if record.kind == TAKEN:
                try:
                    yield StoredEvent.read(*split_taken(record.payload), record.time)
                except UNREADABLE as error:
                    self.unread.append(no_event(record, error))

    def taken(self, lost: list[str]) -> Iterator[tuple[int, Event]]:
        """All events that are stored, with the times at which they were; what is `lost` is told at the end."""
        unread: list[Lost] = []
        cursor = self._journal.read()
        for record, _, event in taken_of(cursor, unread):
            self._journal.check_reading()
            if event.seq is not None:
                yield record.time, event
        first = self._journal.first
        lost += map(str, [*[gap for gap in cursor.lost if gap.last >= first], *unread])

    def append(self, what: Append, done: WhenStored) -> None:
        """Write events at their offsets, and call `done` when they are on disk."""
        released = self._held.released(what.events)
        waiting = [event for event in what.events if event.seq is None]
        try:
            self._journal.check()
        except JournalFailed as error:
            done(what, str(error))
            return
        try:
            self._held.hold(what)
            position = self._journal.append(_entries(what), what.first) if what.events else self._journal.last
        except (JournalFailed, TooManyOpenFiles) as error:
            self._held.drop(waiting)
            done(what, str(error), bool(waiting) or (isinstance(error, JournalFailed) and error.is_left))
            return

        def committed(failure: BaseException | None) -> None:
            if released and failure is None:
                self._held.drop(released)
                self._leaving.when_committed(self._held.last, lambda failure: None)
            done(what, "" if failure is None else str(failure), failure is not None)

        self._commit.when_committed(position, committed)

    def read(self, terms: ReadTerms, end: int, answer: Answer) -> None:
        """Answer with a page of what is on disk below offset `end`."""
        self._begin(self._answer(terms, end, answer))

    def review(self, what: Look, answer: Callable[[Seen], None]) -> None:
        """Answer with a page of what is on disk by now."""
        self._begin(self._show(what, self.position, answer))

    async def _show(self, what: Look, last: int, answer: Callable[[Seen], None]) -> None:
        try:
            answer(await self._reading(lambda: leaf_through(self._journal, what, last, self._identity)))
        except (TooManyOpenFiles, JournalClosed):
            return  # so is the connection to whoever asked
        except (VestnikError, OSError) as error:
            answer(unseen(what, f"what it has stored cannot be read: {error}"))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, terms: ReadTerms, end: int, answer: Answer) -> None:
        try:
            page = await self._reading(lambda: read_journal(self._journal, self._lost, terms, end))
        except (TooManyOpenFiles, JournalClosed):
            return
        except (VestnikError, OSError) as error:
            reason = f"what the broker has stored cannot be read: {error}"
            page = Slice(terms.start, (), end, Span(terms.start, end), reason)
        if not self._is_closing:
            answer(page)

    async def _reading(self, work: Callable[[], Result]) -> Result:
        """Read in a thread. While the process has too many open files it is tried again: nothing is lost by that.

        TooManyOpenFiles only if this ends; then nobody waits for an answer.
        """
        while True:
            try:
                return await asyncio.to_thread(work)
            except TooManyOpenFiles:
                if self._is_closing:
                    raise
                await asyncio.sleep(OPEN_AGAIN_AFTER)

    def _trim(self) -> None:
        """Apply retention to what is stored: it may have been stored by other settings."""
        try:
            self._journal.trim(time.time_ns() // 1000)
        except (JournalFailed, TooManyOpenFiles, OSError) as error:
            emit(LOG, logging.WARNING, "retention.failed", "retention at the start has failed", reason=str(error))

    def _retain(self) -> None:
        """Drop what is too old or not the latest, and tell what was dropped, also when something was appended."""
        if not self._journal.is_trimmed:
            self._trim()
        try:
            dropped = self._journal.retain(time.time_ns() // 1000)
        except JournalFailed:
            dropped = None  # whoever publishes is told
        if dropped is not None:
            fields = {"first": dropped.first, "last": dropped.last, "events": dropped.records, "bytes": dropped.size}
            emit(LOG, logging.INFO, "retention.dropped", "retention has dropped the oldest events", **fields)
        if self._latest_by is not None and self._journal.first < self._journal.last > self._compacted:
            self._compacted = self._journal.last
            self._begin(self._compact(self._latest_by))
        self._retaining = asyncio.get_running_loop().call_later(RETAIN_EVERY, self._retain)

    async def _compact(self, path: spaces.Path) -> None:
        try:
            work = partial(self._journal.compact, lambda record: _value(record, path))
            done = await self._compactor.start(work, asyncio.get_running_loop())
        except JournalClosed:
            return
        except TooManyOpenFiles as error:
            self._compacted = 0  # the next look tries again
            emit(LOG, logging.WARNING, "retention.failed", "a compaction is put off", reason=str(error))
            return
        except (JournalFailed, OSError) as error:  # all is as it was
            emit(LOG, logging.WARNING, "retention.failed", "a compaction has failed", reason=str(error))
            return
        if done.segments:
            fields = {"segments": done.segments, "events": done.records, "bytes": done.size}
            emit(LOG, logging.INFO, "retention.compacted", "retention has dropped superseded events", **fields)

    async def close(self, within: float | None = None) -> None:
        """Sync what is not on disk, and let the folder go; TimeoutError if the disk takes longer than `within` seconds.

        All that was acknowledged is on disk before. After a TimeoutError the folder belongs to this process until the
        process ends.
        """
        self._is_closing = True
        self._journal.stop()
        if self._retaining is not None:
            self._retaining.cancel()
        async with asyncio.timeout(within):
            with suppress(JournalFailed):
                await self._commit.committed(self._journal.last)
            await self._commit.close()
            await self._leaving.close()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._compactor.end()
        self._journal.close()
        self._held.close()


def taken_of(records: Iterable[Record], unread: list[Lost]) -> Iterator[tuple[Record, str, Event]]:
    """The events of a journal, with their records and who published them; what should hold one and does not is told."""
    for record in records:
        if record.kind == TAKEN:
            try:
                client, event = unpack_taken(record.payload)
            except UNREADABLE as error:
                unread.append(no_event(record, error))
            else:
                yield record, client, event


def _value(record: Record, path: spaces.Path) -> Hashable:
    """What a record is the latest of; None where it is to stay."""
    for _, _, event in taken_of([record], []):
        if event.seq is not None:
            return key_of(event, path)
    return None


def _entries(what: Append) -> list[Entry]:
    return [(TAKEN, what.time, pack_taken(what.client, packed)) for packed in what.packed]
