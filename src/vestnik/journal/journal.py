"""The journal: append, sync, read, drop, compact."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from threading import Lock as Mutex

from vestnik.journal.compaction import Compacted, Keep, Key, neighbours, newest, rewrite
from vestnik.journal.cursor import FOREVER, Cursor
from vestnik.journal.disk import make_directory, sync_directory
from vestnik.journal.lock import Lock
from vestnik.journal.records import Entry, Record, encode
from vestnik.journal.recovery import recover
from vestnik.journal.reports import Dropped
from vestnik.journal.retention import is_full, surplus
from vestnik.journal.segments import Header, Run, Segment, name_of, new_mark
from vestnik.journal.settings import Settings
from vestnik.journal.writer import Writer


class Journal:
    """An append-only log of records in the segment files of a directory that belongs to this process.

    Positions count records from 1, for ever. `recovery` says what was found at opening. `first` is the first position
    that has not been dropped, `last` the last that was appended, `committed` the last that is durable. One thread
    appends; any may sync, and any may read.

    A write or sync that fails is the end of writing: JournalFailed then and ever after, and only what is committed can
    be read.
    """

    def __init__(self, directory: Path, settings: Settings, lock: Lock) -> None:
        found = recover(directory, settings.fsync)
        self.settings = settings
        self.recovery = found.report()
        self.last = self.committed = found.next - 1
        self._directory = directory
        self._lock = lock
        self._segments = tuple(found.segments)
        self._writer = Writer(directory, settings.fsync)
        self._state, self._syncing = Mutex(), Mutex()
        self._held: int | None = None
        self._dropped: Dropped | None = None
        self._start()

    @classmethod
    def open(cls, directory: str | PathLike[str], settings: Settings | None = None) -> Journal:
        """The journal in `directory`, which is made where it is missing; all that is in it is read and checked.

        JournalLocked where another has it, InvalidJournal where it is of another version.
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
        return self._segments[0].first

    @property
    def size(self) -> int:
        """How many bytes all segments have."""
        return sum(segment.size for segment in self._segments)

    @property
    def readable(self) -> int:
        """The last position that may ever be read, as far as is known."""
        return self.committed if self._writer.failed else FOREVER

    # writing

    def append(self, entries: Sequence[Entry]) -> int:
        """Write the entries; they can be read at once, and are durable after a `sync`. Returns the last position."""
        with self._state:
            self._writer.check()
            if not entries:
                return self.last
            if is_full(self._segments[-1], self.settings):
                self._roll()
            segment = self._segments[-1]
            data, last, began, latest = encode(entries, segment.mark, self.last + 1)
            self._writer.write(data, segment.size)
            end = segment.size + len(data)
            segment.extend(Run(segment.size, end, self.last + 1, last, len(entries), began, latest))
            self.last = last
            return last

    def sync(self) -> int:
        """Wait until all that was appended before is durable. Returns the last position that is."""
        with self._syncing:
            with self._state:
                self._writer.check()
                position, pending = self.last, self._writer.take_pending()
            self._writer.commit(pending)
            self.committed = position
            return position

    def roll(self) -> None:
        """Close the segment that grows, if there is anything in it, and begin another."""
        with self._state:
            self._writer.check()
            if self._segments[-1].count:
                self._roll()

    def close(self) -> None:
        """Make durable what is not, if nothing has failed, and let the directory go."""
        if self._writer.is_closed:
            return
        try:
            if not self._writer.failed:
                self.sync()
        finally:
            with self._syncing, self._state:
                self._writer.close()
                self._lock.release()

    # reading

    def read(self, after: int = 0, until: int | None = None) -> Cursor:
        """The records behind position `after`, up to `until` or as many as there are when they are read.

        Where `after` is before `first`, the cursor begins with `first` and says what was dropped.
        """
        return Cursor(self, after, until)

    def position_at(self, time: int) -> int:
        """The first position whose time is `time` or later; the one behind `last` where there is none."""
        for segment in self._segments:
            if segment.latest >= time:
                for record in self.read(segment.position_before(time) - 1):
                    if record.time >= time:
                        return record.position
        return self.last + 1

    def segment_after(self, position: int) -> Segment:
        """The first segment that stands for a position above `position`, or the one that grows."""
        segments = self._segments
        found = bisect_left(segments, position + 1, key=lambda segment: segment.last)
        return segments[min(found, len(segments) - 1)]

    def holds(self, segment: Segment) -> bool:
        """Whether `segment` still is what the file of its name holds."""
        with self._state:
            return segment in self._segments

    # dropping

    def keep_from(self, position: int | None) -> None:
        """Hold back from `position` on what retention or compaction would drop; None holds back nothing.

        Beyond `held_size` bytes the oldest is dropped all the same.
        """
        self._held = position

    def retain(self, now: int) -> Dropped | None:
        """Drop the segments that are beyond what is retained at the time `now`.

        Returns what was dropped since the last call, by appending, too. Appending does not know the time, and drops
        by size and count alone.
        """
        with self._state:
            self._writer.check()
            if is_full(self._segments[-1], self.settings, now):
                self._roll()
            self._drop(surplus(self._segments, self.settings, self._held, now))
            dropped, self._dropped = self._dropped, None
            return dropped

    def drop_before(self, position: int) -> None:
        """Drop the segments that have nothing from `position` on."""
        with self._state:
            self._writer.check()
            self._drop(sum(segment.last < position for segment in self._segments[:-1]))

    def compact(self, key: Key) -> Compacted:
        """Of the records with the same key keep the newest that is committed; those with the key None stay.

        Closed segments are rewritten, and made one where they are small; positions stay as they are. Where a crash or a
        full disk (OSError) comes between, each is as before or rewritten. It may run in a thread of its own, one at a
        time.
        """
        latest = newest(self.read(until=self.committed), key)
        held = FOREVER if self._held is None else self._held

        def keep(record: Record) -> bool:
            name = key(record)
            return name is None or record.position >= min(latest.get(name, 0), held)

        saved = Compacted(0, 0, 0)
        for segment in self._segments[:-1]:
            if not segment.is_damaged and not all(map(keep, self.read(segment.first - 1, segment.last))):
                saved += self._rewrite([segment], keep)
        for group in neighbours(self._segments[:-1], self.settings):
            if len(group) > 1:
                saved += self._rewrite(group, lambda record: True)
        return saved

    def _start(self) -> None:
        """Go on with the last segment if it is whole, else with a new one."""
        segments = self._segments
        if segments and segments[-1].last == self.last and not (segments[-1].is_sparse or segments[-1].is_damaged):
            self._writer.resume(segments[-1])
        else:
            self._begin()
        self.sync()

    def _begin(self) -> None:
        header = Header(new_mark(), self.last + 1)
        path = self._directory / name_of(header.first)
        self._writer.begin(path, header)
        self._segments = (*self._segments, Segment.new(path, header))

    def _roll(self) -> None:
        self._begin()
        self._drop(surplus(self._segments, self.settings, self._held))

    def _drop(self, number: int) -> None:
        """Drop so many segments, the oldest first: a crash leaves no hole."""
        if not number:
            return
        gone, self._segments = self._segments[:number], self._segments[number:]
        for segment in gone:
            self._writer.drop(segment.path)
        first = self._dropped.first if self._dropped else gone[0].first
        was_held = self._held is not None and gone[-1].last >= self._held
        self._dropped = Dropped(first, gone[-1].last, was_held or bool(self._dropped and self._dropped.was_held))

    def _rewrite(self, segments: Sequence[Segment], keep: Keep) -> Compacted:
        """Put one segment with what is kept in the place of `segments`, unless some were dropped meanwhile.

        The others go when the new name is durable. A crash before that leaves some which it stands for, too.
        """
        rewritten = rewrite(segments, keep)
        if rewritten is None or not self._replace(segments, rewritten):
            return Compacted(0, 0, 0)
        sync_directory(self._directory)
        for segment in segments[1:]:
            segment.path.unlink()
        records, size = sum(one.count for one in segments), sum(one.size for one in segments)
        return Compacted(len(segments), records - rewritten.count, size - rewritten.size)

    def _replace(self, segments: Sequence[Segment], rewritten: Segment) -> bool:
        with self._state:
            if not set(segments) <= set(self._segments):
                rewritten.path.unlink()
                return False
            rewritten.path = rewritten.path.rename(segments[0].path)
            at = self._segments.index(segments[0])
            self._segments = (*self._segments[:at], rewritten, *self._segments[at + len(segments) :])
            return True
