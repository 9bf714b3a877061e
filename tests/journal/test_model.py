"""A journal beside a plain dictionary, through everything that can happen to it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Hashable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from journal.journals import contents, crashed, files, missing, put, read_all
from vestnik.journal import Entry, Journal, Record, Settings

SETTINGS = Settings(segment_size=150, retain_size=1_500, retain_count=30, retain_age=1_000, fsync=False)
ENTRIES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2_000), st.binary(max_size=40)), max_size=6)


def key(record: Record) -> Hashable | None:
    return record.kind or None


class JournalMachine(RuleBasedStateMachine):
    """`truth` is what the journal should have, `durable` the files as a crash would leave them at worst."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.lives = 0
        self.truth: dict[int, Entry] = {}

    @initialize()
    def start(self) -> None:
        self.open()

    def open(self) -> None:
        self.journal = Journal.open(self.directory, SETTINGS)
        self.durable = files(self.directory)

    @property
    def directory(self) -> Path:
        return self.folder / str(self.lives)

    def teardown(self) -> None:
        self.journal.close()
        shutil.rmtree(self.folder)

    @rule(entries=ENTRIES)
    def append(self, entries: list[Entry]) -> None:
        first = self.journal.last + 1
        assert self.journal.append(entries) == first + len(entries) - 1
        self.truth |= dict(enumerate(entries, first))
        self.forget()

    def forget(self) -> None:
        """What was dropped is from the front."""
        for position in [position for position in self.truth if position < self.journal.first]:
            del self.truth[position]

    @rule()
    def sync(self) -> None:
        assert self.journal.sync() == self.journal.committed == self.journal.last
        self.durable = files(self.directory)

    @rule(now=st.integers(0, 4_000))
    def retain(self, now: int) -> None:
        before = self.journal.first
        dropped = self.journal.retain(now)
        assert (dropped.last + 1 if dropped else before) == self.journal.first
        self.forget()
        assert self.journal.size <= SETTINGS.retain_size + 6 * 70

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
        self.journal.close()
        self.open()
        assert self.journal.recovery.is_clean
        assert self.journal.recovery.records == len(self.truth)

    @rule(share=st.floats(0, 1))
    def crash(self, share: float) -> None:
        """Of what was not durable, only some is there afterwards."""
        left = crashed(files(self.directory), self.durable, share)
        self.restart({name: content for name, content in left.items() if any(content) or name in self.durable})

    def restart(self, left: dict[str, bytes]) -> None:
        committed, last = self.journal.committed, self.journal.last
        self.journal.close()
        self.lives += 1
        put(self.directory, left)
        self.open()
        recovery = self.journal.recovery
        found = read_all(self.journal.read())
        assert found.items() <= self.truth.items()
        assert {position for position in self.truth if position <= committed} <= found.keys()
        unsaid = self.truth.keys() - found.keys() - missing(recovery.lost, recovery.cut, last)
        assert all(position > recovery.last for position in unsaid)
        self.truth = found

    @rule(after=st.integers(0, 80), until=st.none() | st.integers(0, 120))
    def read(self, after: int, until: int | None) -> None:
        last = self.journal.last if until is None else until
        wanted = {position: entry for position, entry in self.truth.items() if after < position <= last}
        assert read_all(self.journal.read(after, until)) == wanted

    @rule(time=st.integers(-1, 2_001))
    def find_time(self, time: int) -> None:
        naive = (position for position, entry in self.truth.items() if entry[1] >= time)
        assert self.journal.position_at(time) == next(naive, self.journal.last + 1)

    @invariant()
    def no_file_is_longer_than_it_must_be(self) -> None:
        sizes = [len(data) for data in files(self.directory).values()]
        assert self.journal.size <= sum(sizes) <= self.journal.size + len(sizes) * SETTINGS.segment_size


TestJournal = JournalMachine.TestCase
TestJournal.settings = settings(stateful_step_count=30)
