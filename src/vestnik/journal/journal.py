"""The journal: append, sync, read, drop, compact."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from threading import Lock as Mutex

from vestnik.errors import JournalClosed, JournalFailed, TooManyOpenFiles
from vestnik.journal.compaction import Compacted, Key, compact, newest
from vestnik.journal.cursor import FOREVER, Cursor
from vestnik.journal.directory import Directory
from vestnik.journal.disk import make_directory
from vestnik.journal.index import remove_index
from vestnik.journal.lock import Lock
from vestnik.journal.records import Entry, Record, encode
from vestnik.journal.recovery import recover
from vestnik.journal.reports import Dropped
from vestnik.journal.reservation import RANGE, Reservation
from vestnik.journal.retention import is_full, surplus
from vestnik.journal.search import Patterns
from vestnik.journal.segments import Header, Run, Segment, name_of, new_mark
from vestnik.journal.settings import Settings
from vestnik.journal.shelf import Shelf
from vestnik.journal.trimming import trim
from vestnik.journal.watermark import WatermarkFile
from vestnik.journal.writer import Writer


class Journal:
    """An append-only log of records in the segment files of a directory that belongs to this process.

    Positions grow from 1, and none is ever used twice: a range of them is reserved on disk before one is written. After
    a crash the journal skips the rest of that range. `recovery` says what was found at opening. `first` is the first
    position that has not been dropped, `last` the last that was appended or is lost, `committed` the last that is
    durable, `next` the one that the next record gets. Times never go back. One thread appends; any may sync, and any
    may read.

    A write or sync that fails is the end of writing: JournalFailed then and ever after, and only what is committed can
    be read. A process with too many open files is no failure: the journal keeps descriptors in reserve, a segment
    for which there is none is begun later, and TooManyOpenFiles passes.
    """

    def __init__(self, directory: Path, settings: Settings, lock: Lock) -> None:
        self.settings = settings
        self._directory = directory
        self._lock = lock
        self._files = Directory(directory)
        try:
            found = recover(self._files, settings.fsync)
            self.recovery = found.report()
            self.last = self.committed = found.end - 1
            self.latest = found.latest
            self._unused = found.next
            self._shelf = Shelf(self._files, found.segments)
            self._writer = Writer(self._files, settings)
            self._syncing = Mutex()
            self._dropped: Dropped | None = None
            self._is_stopped = False
            self.is_trimmed = True
            self._watermark = WatermarkFile(self._files)
            self._reservation = Reservation(self._files, fsync=settings.fsync)
            self._start(found.growing)
        except BaseException:
            self._files.release()
            raise

    @classmethod
    def open(cls, directory: str | PathLike[str], settings: Settings | None = None) -> Journal:
        """Open the journal in `directory`, which is made if it is missing.

        Of segments that have an index only that is read. JournalLocked if another process has the journal,
        InvalidJournal if it is of another version.
        """
        path = Path(directory)
        make_directory(path)
        lock = Lock(path)
        try:
            return cls(path, settings or Settings(), lock)
        except BaseException:
            lock.release()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Journal {self._directory}, positions {self.first} to {self.last}, {self.settings}>"

    @property
    def first(self) -> int:
        return self._shelf.segments[0].first

    @property
    def size(self) -> int:
        """How many bytes all segments have."""
        return sum(segment.size for segment in self._shelf.segments)

    @property
    def count(self) -> int:
        """How many records there are."""
        return sum(segment.count for segment in self._shelf.segments)

    @property
    def next(self) -> int:
        """The position that the next record gets: after `last`, and after all that an earlier life may have used."""
        return max(self.last + 1, self._unused)

    @property
    def readable(self) -> int:
        """The last position that can be read now or later. Raise JournalClosed after `stop`."""
        self.check_reading()
        return self.committed if self._writer.failed else FOREVER

    # writing

    def check(self) -> None:
        """Raise JournalFailed if something has failed before, so that nothing is written any more."""
        self._writer.check()

    @property
    def failed(self) -> JournalFailed | None:
        """The failure after which nothing is written any more."""
        return self._writer.failed

    def append(self, entries: Sequence[Entry], at: int | None = None) -> int:
        """Write the entries at positions from `at` on, or from `next` on, and return the last position.

        They can be read at once, and are durable after a `sync`. ValueError if `at` is not after `last`; a caller that
        gives a position before `next` must know that no earlier life has used it. An entry whose time is before
        `latest` gets `latest` as its time.
        """
        with self._shelf.lock:
            self._writer.check()
            first = self.next if at is None else at
            if not self.last < first < FOREVER:
                raise ValueError(f"position {first} is not after the last one, {self.last}, or has more than 63 bits")
            if not entries:
                return self.last
            if is_full(self._shelf.growing, self.settings) and not self._rolls():
                self._check_room()
            if first + len(entries) > self._reservation.end:
                self._reserve(first + len(entries) + RANGE)
            segment = self._shelf.growing
            data, last, began, latest = encode(entries, segment.mark, first, self.latest)
            self._writer.write(data)
            end = segment.size + len(data)
            segment.extend(Run(segment.size, end, first, last, len(entries), began, latest))
            self.last, self.latest = last, latest
            return last

    def sync(self) -> int:
        """Wait until all that was appended before is durable. Returns the last position that is."""
        with self._syncing:
            with self._shelf.lock:
                self._writer.check()
                first, last, latest, following = self.first, self.last, self.latest, self.next
                pending = self._writer.take_pending()
            fsync = self.settings.fsync
            self._writer.commit(pending)
            self.committed = last
            self._watermark.advance(first, last, latest, sync=pending.is_renamed and fsync)
            self._shelf.index([segment for segment, _ in pending.files[:-1]], is_durable=fsync)
            if self._reservation.end - following < RANGE // 2:
                self._reserve(following + RANGE)
            return last

    def roll(self) -> bool:
        """Close the segment that grows, if there is anything in it, and begin another.

        False if that has to wait because the process has no descriptor left.
        """
        with self._shelf.lock:
            self._writer.check()
            return not self._shelf.growing.count or self._rolls()

    def stop(self) -> None:
        """Let readers and compactions in other threads end at their next step: they raise JournalClosed."""
        self._is_stopped = True

    def check_reading(self) -> None:
        """Raise JournalClosed after `stop`."""
        if self._is_stopped:
            raise JournalClosed(self._directory)

    def close(self) -> None:
        """Make durable what is not, if nothing has failed, and let the directory go."""
        if self._writer.is_closed:
            return
        try:
            if not self._writer.failed:
                self.sync()
        finally:
            with self._syncing, self._shelf.lock:
                self._writer.close()
                self._watermark.close()
                if self.failed is None or not self.failed.is_left:
                    self._reservation.release(self.next)
                self._reservation.close()
                self._files.release()
                self._lock.release()

    # reading

    def read(self, after: int = 0, until: int | None = None, patterns: Patterns = ()) -> Cursor:
        """The records behind position `after`, up to `until` or as many as there are when they are read.

        Where `after` is before `first`, the cursor begins with `first` and says what was dropped. With `patterns`, it
        may leave out records in whose bytes none of them matches.
        """
        return Cursor(self._shelf, self, after, until, patterns)

    def recent(self, count: int) -> Cursor:
        """Read the last `count` records, and what is appended after them."""
        segments = deque(self._shelf.segments)
        skipped = sum(segment.count for segment in segments) - count
        while len(segments) > 1 and skipped >= segments[0].count:
            skipped -= segments.popleft().count
        first = segments[0]
        if skipped > 0 and first.is_dense:
            return self.read(first.first - 1 + skipped)
        cursor = self.read(first.first - 1)
        for _ in islice(cursor, max(skipped, 0)):
            pass
        return cursor

    def position_at(self, time: int) -> int:
        """The first position whose time is `time` or later; the one behind `last` where there is none."""
        for segment in self._shelf.segments:
            if segment.count and segment.latest >= time:
                for record in self.read(segment.position_before(time) - 1):
                    if record.time >= time:
                        return record.position
        return self.last + 1

    # dropping

    def retain(self, now: int) -> Dropped | None:
        """Drop the segments that are beyond what is retained at the time `now`.

        Returns what was dropped since the last call, by appending, too. Appending does not know the time, and drops
        by size and count alone.
        """
        with self._shelf.lock:
            self._writer.check()
            if is_full(self._shelf.growing, self.settings, now):
                self._rolls()
            self._drop_surplus(now)
            dropped, self._dropped = self._dropped, None
            return dropped

    def trim(self, now: int) -> None:
        """Drop the records that are beyond what is retained at the time `now`, one by one.

        Unlike `retain` it keeps all others, also in segments that other settings made larger. These are split, so that
        `retain` does not drop too much later. Few segments are rewritten: a large one holds a quarter of what is
        retained, or more. OSError or TooManyOpenFiles if that fails; then nothing is dropped until a later call, which
        may be made when `is_trimmed` is False, succeeds.
        """
        with self._shelf.lock:
            self._writer.check()
            self.is_trimmed = False
            trim(self._shelf, self.settings, now, self._begin, self._drop)
            self.is_trimmed = True

    def drop_before(self, position: int) -> None:
        """Drop the segments that have nothing from `position` on."""
        with self._shelf.lock:
            self._writer.check()
            self._drop(sum(segment.last < position for segment in self._shelf.closed))

    def compact(self, key: Key) -> Compacted:
        """Of the records with the same key keep the newest that is committed; those with the key None stay.

        Closed segments are rewritten, and made one where they are small; positions stay as they are. Where a crash or a
        full disk (OSError) comes between, each is as before or rewritten. It may run in a thread of its own, one at a
        time.
        """

        def wanted(record: Record) -> Hashable | None:
            self.check_reading()
            return key(record)

        latest = newest(self.read(until=self.committed), wanted)

        def keep(record: Record) -> bool:
            name = wanted(record)
            return name is None or record.position >= latest.get(name, 0)

        return compact(self._shelf, self.settings, keep)

    def _start(self, growing: Segment | None) -> None:
        """Reserve positions, and go on with the segment that was growing if it is whole, else with a new one."""
        self._reserve(self.next + RANGE)
        if growing is not None and growing.last == self.last and not growing.is_damaged:
            self._writer.resume(growing)
        else:
            self._begin()
        self.sync()

    def _reserve(self, end: int) -> None:
        """Reserve the positions before `end`. If the disk refuses, nothing more is written."""
        with self._writer.failing("write", self._reservation.path):
            self._reservation.extend(end)
        self._watermark.reserve(end)

    def _begin(self) -> None:
        header = Header(new_mark(), self.last + 1)
        segment = Segment.new(self._directory / name_of(header.first), header)
        self._writer.begin(segment, header)
        self._shelf.add(segment)

    def _rolls(self) -> bool:
        """Begin another segment; False if no descriptor is left for it, and the one that grows has to go on."""
        try:
            self._begin()
        except TooManyOpenFiles:
            return False
        self._drop_surplus()
        return True

    def _drop_surplus(self, now: int | None = None) -> None:
        """Drop whole segments that are not retained. After a `trim` that failed, they may hold what is."""
        if self.is_trimmed:
            self._drop(surplus(self._shelf.segments, self.settings, now))

    def _check_room(self) -> None:
        """Raise TooManyOpenFiles if the segment that grows has twice its size, since no other could be begun."""
        segment = self._shelf.growing
        if segment.size >= 2 * self.settings.segment_size:
            raise TooManyOpenFiles(self._directory / name_of(self.last + 1), "the process has too many open files")

    def _drop(self, number: int, kept: Sequence[Segment] = ()) -> None:
        """Drop the first `number` segments, the oldest first: a crash leaves no hole.

        The segments `kept` hold copies of some of their records.
        """
        if not number:
            return
        gone = self._shelf.take(number)
        for segment in gone:
            self._writer.drop(segment.path)
            remove_index(segment.path)
        before = self._dropped or Dropped(gone[0].first, 0)
        records, size = sum(segment.count for segment in gone), sum(segment.size for segment in gone)
        records -= sum(segment.count for segment in kept)
        size -= sum(segment.size for segment in kept)
        last = kept[0].first - 1 if kept else gone[-1].last
        self._dropped = Dropped(before.first, last, before.records + records, before.size + size)
