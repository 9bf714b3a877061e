"""A journal beside a plain dictionary, through everything that can happen to it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Hashable
from itertools import accumulate
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from journal.journals import contents, crashed, files, overwrite, put, read_all, segments
from vestnik.journal import Entry, Journal, Lost, Observer, Record, Settings
from vestnik.journal.records import NEVER
from vestnik.journal.reservation import FILE as RESERVED
from vestnik.journal.watermark import FILE as WATERMARK

SETTINGS = Settings(segment_size=150, retain_size=1_500, retain_count=30, retain_age=1_000, fsync=False)
ENTRIES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2_000), st.binary(max_size=40)), max_size=6)
SKIPS = st.just(0) | st.integers(0, 5) | st.integers(0, 200_000)
SHARES = st.floats(0, 1)


def key(record: Record) -> Hashable | None:
    return record.kind or None


def is_told(position: int, lost: list[Lost] | tuple[Lost, ...]) -> bool:
    return any(gap.first <= position <= gap.last for gap in lost)


class JournalMachine(RuleBasedStateMachine):
    """`truth` is what the journal should have, `durable` the files as a crash would leave them at worst.

    No position up to `used` may be handed out again. If `is_harmed`, something that was synced is missing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.lives = self.used = 0
        self.latest = NEVER
        self.is_harmed = False
        self.truth: dict[int, Entry] = {}

    @initialize()
    def start(self) -> None:
        self.open()

    def open(self) -> None:
        self.journal = Journal.open(self.directory, SETTINGS)
        self.remember()

    def remember(self) -> None:
        """All that is there now is durable."""
        self.durable = files(self.directory)
        self.watermark = (self.directory / WATERMARK).read_bytes()

    @property
    def directory(self) -> Path:
        return self.folder / str(self.lives)

    def teardown(self) -> None:
        self.journal.close()
        shutil.rmtree(self.folder)

    @rule(entries=ENTRIES, skip=SKIPS)
    def append(self, entries: list[Entry], skip: int) -> None:
        first = self.journal.next + skip
        assert first > self.used, "no position is handed out twice"
        last = first + len(entries) - 1 if entries else self.journal.last
        assert self.journal.append(entries, first if skip else None) == self.journal.last == last
        times = list(accumulate([self.latest, *(time for _, time, _ in entries)], max))
        kept = [(kind, time, payload) for (kind, _, payload), time in zip(entries, times[1:], strict=True)]
        self.latest, self.used = times[-1], max(self.used, last)
        self.truth |= dict(enumerate(kept, first))
        self.forget()

    def forget(self) -> None:
        """What was dropped is from the front."""
        for position in [position for position in self.truth if position < self.journal.first]:
            del self.truth[position]

    @rule()
    def sync(self) -> None:
        assert self.journal.sync() == self.journal.committed == self.journal.last
        self.remember()

    @rule(now=st.integers(0, 4_000))
    def retain(self, now: int) -> None:
        before = self.journal.first
        dropped = self.journal.retain(now)
        end = dropped.last + 1 if dropped else before
        assert end == self.journal.first or (self.is_harmed and end < self.journal.first)
        self.forget()
        assert self.journal.size <= SETTINGS.retain_size + 6 * 70
        assert self.journal.count == len(self.truth) <= 30 + 6

    @rule()
    def compact(self) -> None:
        before = files(self.directory)
        committed = self.journal.committed
        newest = {entry[0]: position for position, entry in self.truth.items() if position <= committed}
        self.journal.compact(key)
        kept = contents(self.journal.read())
        assert kept.items() <= self.truth.items()
        for position in self.truth.keys() - kept.keys():
            assert self.truth[position][0] != 0 and position < newest[self.truth[position][0]]
        self.truth = kept
        for name, data in files(self.directory).items():
            if data[:44] != before[name][:44]:
                self.durable[name] = data

    @rule()
    def reopen(self) -> None:
        following = self.journal.next
        self.journal.close()
        self.open()
        assert self.journal.recovery.is_clean or self.is_harmed
        assert self.journal.recovery.records == len(self.truth)
        assert self.journal.next == following and self.journal.latest == self.latest

    @rule(share=SHARES, marked=st.booleans(), indexed=st.booleans())
    def crash(self, share: float, marked: bool, indexed: bool) -> None:
        """Of what was not durable, only some is there afterwards."""
        left = crashed(files(self.directory), self.durable, share)
        left = {name: content for name, content in left.items() if any(content) or name in self.durable}
        kept = {RESERVED: (self.directory / RESERVED).read_bytes()}
        self.restart(left, kept | ({WATERMARK: self.watermark} if marked else {}), indexed)

    @rule(is_damaged=st.booleans())
    def lose_the_reservation(self, is_damaged: bool) -> None:
        """The process is killed, and the file with the reserved end is missing or damaged."""
        kept = {WATERMARK: (self.directory / WATERMARK).read_bytes()} | ({RESERVED: b"?" * 24} if is_damaged else {})
        self.restart(files(self.directory), kept, indexed=True)
        assert self.journal.recovery.unreserved == self.journal.next

    def restart(self, left: dict[str, bytes], beside: dict[str, bytes], indexed: bool) -> None:
        """Open a copy with the segments `left`: all that was committed is there, and nothing is said to be lost."""
        committed = self.journal.committed
        self.move(left, beside, indexed)
        found = read_all(self.journal.read())
        assert found.items() <= self.truth.items()
        assert {position for position in self.truth if position <= committed} <= found.keys()
        self.truth = found
        assert self.is_harmed or self.journal.recovery.lost == ()

    def move(self, left: dict[str, bytes], beside: dict[str, bytes], indexed: bool) -> None:
        if indexed:
            beside |= {path.name: path.read_bytes() for path in self.directory.glob("*.index")}
        self.journal.close()
        self.lives += 1
        put(self.directory, left)
        for name, data in beside.items():
            overwrite(self.directory / name, data)
        self.open()
        assert self.journal.next > self.used
        self.latest = self.journal.latest
        assert all(time <= self.latest for time in [record.time for record in self.journal.read()])

    @rule(share=SHARES)
    def cut(self, share: float) -> None:
        """The process is killed, and the last segment loses its end, whether that was synced or not."""
        committed, last = self.journal.committed, max(files(self.directory))
        left = files(self.directory)
        left[last] = left[last][: round(share * len(left[last].rstrip(b"\0")))]
        kept = {name: (self.directory / name).read_bytes() for name in (RESERVED, WATERMARK)}
        self.move(left, kept, indexed=True)
        found = read_all(self.journal.read())
        assert found.items() <= self.truth.items()
        gone = {position for position in self.truth.keys() - found.keys() if position <= committed}
        self.is_harmed = self.is_harmed or bool(gone)
        self.truth = found
        for _ in range(2):
            assert all(is_told(position, self.journal.recovery.lost) for position in gone)
            self.reopen()

    @rule(share=SHARES, beside=st.integers(-1, 1), until=st.none() | SHARES)
    def read(self, share: float, beside: int, until: float | None) -> None:
        positions = [0, *self.truth]
        after = max(0, positions[round(share * (len(positions) - 1))] + beside)
        last = None if until is None else positions[round(until * (len(positions) - 1))]
        end = self.journal.last if last is None else last
        wanted = {position: entry for position, entry in self.truth.items() if after < position <= end}
        assert read_all(self.journal.read(after, last)) == wanted

    @rule()
    def read_all(self) -> None:
        """Everybody reads the same, and positions that were skipped are not lost."""
        cursor = self.journal.read(self.journal.first - 1)
        assert read_all(cursor) == self.truth
        seen = list(Observer(self.directory).read(self.journal.first - 1))
        assert contents(record for one in seen for record in one.records) == self.truth
        lost = [gap for one in seen for gap in one.lost]
        assert self.is_harmed or (cursor.lost == [] and lost == [])
        assert not any(is_told(position, [*cursor.lost, *lost]) for position in self.truth)

    @rule(count=st.integers(0, 20))
    def read_the_last(self, count: int) -> None:
        wanted = list(self.truth.items())[max(0, len(self.truth) - count) :]
        assert read_all(self.journal.recent(count)) == dict(wanted)

    @rule(time=st.integers(-1, 2_001))
    def find_time(self, time: int) -> None:
        naive = (position for position, entry in self.truth.items() if entry[1] >= time)
        assert self.journal.position_at(time) == next(naive, self.journal.last + 1)

    @invariant()
    def no_file_is_longer_than_it_must_be(self) -> None:
        sizes = [len(data) for data in files(self.directory).values()]
        assert self.journal.size <= sum(sizes) <= self.journal.size + len(sizes) * SETTINGS.segment_size

    @invariant()
    def every_index_has_its_segment(self) -> None:
        closed = {path.name for path in segments(self.directory)[:-1]}
        assert {path.name.removesuffix(".index") for path in self.directory.glob("*.index")} <= closed


TestJournal = JournalMachine.TestCase
TestJournal.settings = settings(stateful_step_count=30)
