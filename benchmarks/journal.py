"""How fast a journal takes, keeps, gives back and recovers records: script/bench journal [--quick] [SECTION ...]

Records of 200 bytes. Appending and reading are measured in CPU seconds; what waits for a disk is measured in seconds
that pass, and beside it how long the disk takes for one sync, since that is what it is made of. Before a figure is
printed, everything must have been read back as it was written.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.report import Report, Row, Timing, measure, run
from vestnik.journal import Entry, GroupCommit, Journal, Register, Settings

PAYLOAD = bytes(range(200))
BATCH = 1_000
IN_FLIGHT = 64
REPEAT = 5
LARGE = Settings(retain_size=1 << 40)


@dataclass(frozen=True)
class Scale:
    """How many records are appended and read, how many are waited for, and how many a journal has that is opened."""

    records: int
    durable: int
    opened: int


FULL = Scale(records=500_000, durable=50_000, opened=5_000_000)
QUICK = Scale(records=5_000, durable=500, opened=200_000)


class WrongAnswer(Exception):
    """`ours` records were read back in `case` where there were `truth`: there is no figure to print."""

    def __init__(self, case: str, ours: int, truth: int) -> None:
        super().__init__(case, ours, truth)


def batch(first: int) -> list[Entry]:
    return [(1, first + number, PAYLOAD) for number in range(BATCH)]


@contextmanager
def journal_in() -> Iterator[Journal]:
    """A journal of its own, in a directory that is removed with it."""
    with TemporaryDirectory() as directory, Journal.open(directory, LARGE) as journal:
        yield journal


def fill(journal: Journal, batches: list[list[Entry]]) -> Journal:
    for one in batches:
        journal.append(one)
    return journal


def agree(case: str, journal: Journal, truth: int) -> None:
    """Everything is there, in order and as it was."""
    ours = sum(
        record.position == number and record.time == number - 1 and record.payload == PAYLOAD
        for number, record in enumerate(journal.read(), 1)
    )
    if ours != truth:
        raise WrongAnswer(case, ours, truth)


class Table:
    """The peer: a table of SQLite with a write-ahead log that is not synced."""

    def __init__(self, directory: str) -> None:
        self._database = sqlite3.connect(Path(directory) / "journal.db")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE records (position INTEGER PRIMARY KEY, kind, time, payload)")

    def fill(self, batches: list[list[Entry]]) -> Table:
        for one in batches:
            with self._database:
                self._database.executemany("INSERT INTO records (kind, time, payload) VALUES (?, ?, ?)", one)
        return self

    def read(self) -> int:
        rows = self._database.execute("SELECT position, kind, time, payload FROM records ORDER BY position")
        return sum(1 for _ in rows)


def per_second(section: str, case: str, ours: Timing[int], target: float, peer: Timing[int]) -> Row:
    """A row of records a second, beside those of SQLite."""
    rate, other = ours.result / ours.median, peer.result / peer.median
    return Row(
        section,
        case,
        rate,
        "records/s",
        spread=ours.spread,
        peer=other,
        ratio=rate / other,
        target=target,
        note="peer: SQLite",
    )


def appending(report: Report, scale: Scale) -> None:
    """Batches that are there already; nothing is synced, and files are removed when all is measured."""
    batches = [batch(first) for first in range(0, scale.records, BATCH)]
    with ExitStack() as stack:
        timing = measure(lambda: fill(stack.enter_context(journal_in()), batches))
        agree("append", timing.result, scale.records)
        tables = measure(lambda: Table(stack.enter_context(TemporaryDirectory())).fill(batches))
    ours, peer = Timing(timing.seconds, scale.records), Timing(tables.seconds, scale.records)
    report.add(per_second("append", f"batches of {BATCH:,}, not synced", ours, 1_000_000, peer))


def reading(report: Report, scale: Scale) -> None:
    batches = [batch(first) for first in range(0, scale.records, BATCH)]
    with journal_in() as journal, TemporaryDirectory() as directory:
        agree("read", fill(journal, batches), scale.records)
        timing = measure(lambda: sum(1 for _ in journal.read()))
        peer = measure(Table(directory).fill(batches).read)
        report.add(per_second("read", "all in order", timing, 1_000_000, peer))
        middle = [scale.records * part // 100 for part in range(100)]
        seeking = measure(lambda: len([next(iter(journal.read(after))) for after in middle]))
        report.add(Row("read", "from a position", seeking.median / 100 * 1e6, "us", spread=seeking.spread))
        finding = measure(lambda: len([journal.position_at(time) for time in middle]))
        report.add(Row("read", "from a time", finding.median / 100 * 1e6, "us", spread=finding.spread))


def durable(report: Report, scale: Scale) -> None:
    """So many at a time append one record each, wait for it, and go on."""
    sync = [_sync_seconds() for _ in range(REPEAT)]
    seconds = []
    for _ in range(REPEAT):
        gc.collect()
        with journal_in() as journal:
            seconds.append(asyncio.run(_publish(journal, scale.durable)))
            agree("durable", journal, scale.durable)
    timing = Timing(tuple(seconds), scale.durable)
    rate, note = scale.durable / timing.median, f"a sync alone takes {median(sync) * 1e3:.2g} ms"
    case = f"{IN_FLIGHT} in flight, group commit"
    report.add(Row("durable", case, rate, "records/s", spread=timing.spread, note=note))


async def _publish(journal: Journal, records: int) -> float:
    """Seconds until all records are durable."""
    commit, numbers = GroupCommit(journal), iter(range(records))

    async def publish() -> None:
        for number in numbers:
            await commit.committed(journal.append([(1, number, PAYLOAD)]))

    start = perf_counter()
    await asyncio.gather(*(publish() for _ in range(IN_FLIGHT)))
    seconds = perf_counter() - start
    await commit.close()
    return seconds


def _sync_seconds() -> float:
    """How long the disk takes to sync a short append, as the median of some."""
    with TemporaryDirectory() as directory, (Path(directory) / "file").open("ab", buffering=0) as file:
        seconds = []
        for _ in range(50):
            file.write(PAYLOAD * IN_FLIGHT)
            start = perf_counter()
            os.fdatasync(file.fileno())
            seconds.append(perf_counter() - start)
    return median(seconds)


def opening(report: Report, scale: Scale) -> None:
    """Open a large journal by its indexes, find places in it, and open it without indexes, which reads all of it."""
    with TemporaryDirectory() as directory:
        with Journal.open(directory, LARGE) as journal:
            while journal.last < scale.opened:
                journal.append(batch(journal.last))
            last, size = journal.last, journal.size
        case = f"{size / 1e9:.3g} GB, {last:,} records"
        report.add(_passing("open by indexes: " + case, lambda: _reopened(directory, last), target=1.0))
        with Journal.open(directory, LARGE) as journal:
            for what, find in (("a time", _find_time), ("a position", _find_position)):
                report.add(_finding(f"find {what}: {case}", journal, find))
        report.add(_passing("open without indexes: " + case, lambda: _reopened(directory, last, without=True)))


def _passing(case: str, call: Callable[[], object], target: float | None = None) -> Row:
    """A row of the seconds that pass during a call."""
    seconds = []
    for _ in range(REPEAT):
        gc.collect()
        start = perf_counter()
        call()
        seconds.append(perf_counter() - start)
    timing = Timing(tuple(seconds), None)
    return Row("recovery", case, timing.median, "s", spread=timing.spread, target=target, at_most=True)


def _finding(case: str, journal: Journal, find: Callable[[Journal, int], int]) -> Row:
    """A row of the milliseconds until a place is found, at 100 places; the slowest is in the note."""
    seconds = []
    for place in range(0, journal.last, journal.last // 100):
        start = perf_counter()
        if (found := find(journal, place)) != place + 1:
            raise WrongAnswer(case, found, place + 1)
        seconds.append(perf_counter() - start)
    return Row("recovery", case, median(seconds) * 1e3, "ms", note=f"the slowest takes {max(seconds) * 1e3:.2g} ms")


def _find_time(journal: Journal, time: int) -> int:
    return journal.position_at(time)


def _find_position(journal: Journal, after: int) -> int:
    return next(iter(journal.read(after))).position


def _reopened(directory: str, last: int, *, without: bool = False) -> None:
    for path in Path(directory).glob("*.index") if without else ():
        path.unlink()
    with Journal.open(directory, LARGE) as journal:
        if not journal.recovery.is_clean or journal.recovery.records != last:
            raise WrongAnswer("open", journal.recovery.records, last)


def registering(report: Report, scale: Scale) -> None:
    """What is written under ten names changes all the time, with a sync now and then."""

    def change() -> int:
        with TemporaryDirectory() as directory:
            register = Register.open(directory, fsync=False)
            for number in range(scale.durable):
                register[b"name %d" % (number % 10)] = PAYLOAD
                if number % BATCH == 0:
                    register.sync()
            register.close()
        return scale.durable

    timing = measure(change)
    report.add(Row("register", "changes", timing.median / scale.durable * 1e6, "us", spread=timing.spread))


SECTIONS: dict[str, Callable[[Report, Scale], None]] = {
    "append": appending,
    "read": reading,
    "durable": durable,
    "recovery": opening,
    "register": registering,
}


if __name__ == "__main__":
    run("journal", "How fast a journal is.", SECTIONS, full=FULL, quick=QUICK)
