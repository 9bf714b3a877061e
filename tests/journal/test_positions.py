"""Positions may skip, and none is handed out twice."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from journal.journals import (
    NEW,
    SMALL,
    contents,
    entries,
    entry,
    expected,
    filled,
    missing,
    overwrite,
    read_all,
    segments,
)
from vestnik.errors import JournalFailed
from vestnik.journal import Entry, Journal, Observer, Settings
from vestnik.journal.reservation import FILE, RANGE, reserved_in
from vestnik.journal.watermark import FILE as WATERMARK
from vestnik.journal.writer import Writer

LARGE = Settings(segment_size=100_000, retain_size=1_000_000, fsync=False)


def everybody_reads(directory: Path, journal: Journal, truth: dict[int, Entry]) -> None:
    """A cursor and an observer read `truth`, and neither is told that anything is lost."""
    journal.sync()
    cursor = journal.read()
    assert (read_all(cursor), cursor.lost) == (truth, [])
    stretches = list(Observer(directory).read(0))
    assert contents(record for one in stretches for record in one.records) == truth
    assert [lost for one in stretches for lost in one.lost] == []


def killed(journal: Journal, directory: Path, to: Path) -> Path:
    """Copy the files of a journal as `kill -9` would leave them now."""
    shutil.copytree(directory, to)
    journal.close()
    return to


@pytest.mark.parametrize("settings", [SMALL, LARGE], ids=["many segments", "one segment"])
@pytest.mark.parametrize("skip", [1, 7, 10 * RANGE])
def test_positions_that_were_skipped_are_not_lost(tmp_path: Path, settings: Settings, skip: int) -> None:
    truth: dict[int, Entry] = {}
    with Journal.open(tmp_path, settings) as journal:
        for number in range(1, 40):
            at = journal.next + (skip if number % 3 == 0 else 0)
            assert journal.append([entry(number)], at) == at
            truth[at] = entry(number)
        everybody_reads(tmp_path, journal, truth)
    with Journal.open(tmp_path, settings) as journal:
        assert journal.recovery.is_clean and journal.recovery.records == journal.count == 39
        assert journal.next == journal.last + 1
        everybody_reads(tmp_path, journal, truth)
        journal.compact(lambda record: record.kind % 5 or None)
        kept = read_all(journal.read())
        assert kept.items() <= truth.items()
        everybody_reads(tmp_path, journal, kept)
    with Journal.open(tmp_path, settings) as journal:
        assert journal.recovery.is_clean
        everybody_reads(tmp_path, journal, kept)


def test_a_skip_may_fall_between_two_segments(tmp_path: Path) -> None:
    with filled(tmp_path, 4, LARGE) as journal:
        journal.roll()
        assert [int(path.stem) for path in segments(tmp_path)] == [1, 5]
        journal.append([NEW, NEW], 1_000)
        journal.roll()
        journal.append([NEW])
        assert [int(path.stem) for path in segments(tmp_path)] == [1, 5, 1_002]
        truth = expected(1, 4) | {1_000: NEW, 1_001: NEW, 1_002: NEW}
        everybody_reads(tmp_path, journal, truth)
        assert [record.position for record in journal.read(4)] == [1_000, 1_001, 1_002]
        assert [record.position for record in journal.read(999, 1_000)] == [1_000]
        assert [record.position for record in journal.recent(2)] == [1_001, 1_002]
    with Journal.open(tmp_path, LARGE) as journal:
        assert journal.recovery.is_clean
        everybody_reads(tmp_path, journal, truth)


def test_a_position_that_is_not_after_the_last_is_refused(tmp_path: Path) -> None:
    with filled(tmp_path, 4) as journal:
        for at in (0, 3, 4, 1 << 63):
            with pytest.raises(ValueError, match=f"position {at} is not after the last one, 4"):
                journal.append([NEW], at)
        assert journal.append([], 9) == 4 and journal.next == 5
        assert journal.append([NEW], 9) == 9 and journal.next == 10


def test_retention_counts_records_and_not_positions(tmp_path: Path) -> None:
    settings = Settings(segment_size=200, retain_size=100_000, retain_count=16, fsync=False)
    with Journal.open(tmp_path, settings) as journal:
        for number in range(1, 100):
            journal.append([entry(number)], journal.next + 100)
            assert min(number, 16 - 2) <= journal.count <= 16 + 2
        journal.trim(0)
        assert journal.count == len(read_all(journal.read())) == 16


@pytest.mark.parametrize("after", range(6))
def test_a_trim_that_is_interrupted_takes_no_skip_for_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    truth = {100 * number: entry(number) for number in range(1, 41)}
    with Journal.open(tmp_path, LARGE) as journal:
        for position, one in truth.items():
            journal.append([one], position)
        journal.roll()
    few = Settings(segment_size=200, retain_size=100_000, retain_count=25, fsync=False)
    journal = Journal.open(tmp_path, few)
    rename, renamed = Path.rename, iter(range(100))

    def some(path: Path, target: Path) -> Path:
        if next(renamed) == after:
            raise OSError(errno.EIO, "killed here")
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", some)
        patch.setattr(Path, "unlink", lambda path, missing_ok=False: None)
        with pytest.raises(OSError, match="killed"):
            journal.trim(0)
    journal.close()
    for _ in range(2):
        with Journal.open(tmp_path, few) as journal:
            assert journal.recovery.is_clean
            everybody_reads(tmp_path, journal, truth)
    with Journal.open(tmp_path, few) as journal:
        journal.trim(0)
        journal.trim(0)
        assert read_all(journal.read(journal.first - 1)) == dict(list(truth.items())[-25:])
        assert journal.first == 1_501, "the position after the last that was dropped"


def test_a_killed_journal_continues_at_the_reserved_end_and_nothing_is_lost(tmp_path: Path) -> None:
    journal = filled(tmp_path / "0", 10)
    truth = expected(1, 10)
    for life in range(1, 4):
        directory = killed(journal, tmp_path / str(life - 1), tmp_path / str(life))
        reserved = reserved_in(directory)
        journal = Journal.open(directory, SMALL)
        assert journal.recovery.is_clean and journal.next == reserved == 1 + life * RANGE
        truth[journal.append([NEW])] = NEW
        assert journal.last == reserved
        everybody_reads(directory, journal, truth)
    journal.close()


def test_a_journal_that_is_closed_again_without_an_append_keeps_its_next_position(tmp_path: Path) -> None:
    journal = filled(tmp_path / "journal", 10)
    directory = killed(journal, tmp_path / "journal", tmp_path / "killed")
    following = reserved_in(directory)
    for _ in range(3):
        with Journal.open(directory, SMALL) as journal:
            assert (journal.last, journal.next) == (10, following)


def test_a_range_is_durable_before_one_of_its_positions_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal.open(tmp_path) as journal:
        synced: list[int] = []
        sync = os.fsync

        def note(file: int) -> None:
            sync(file)
            if Path(f"/proc/self/fd/{file}").readlink() == tmp_path / FILE:
                synced.append(reserved_in(tmp_path) or 0)

        monkeypatch.setattr(os, "fsync", note)
        at = 1
        for _ in range(5):
            at = journal.append([NEW], at + RANGE + 1)
            assert (synced[-1], journal.last) == (at + 1 + RANGE, at)
        assert len(synced) == 5
        journal.append([NEW] * RANGE)
        assert len(synced) == 5, "what is reserved is not reserved again"
        journal.append([NEW])
        assert len(synced) == 6


def test_a_sync_reserves_ahead_so_that_appending_need_not(tmp_path: Path) -> None:
    with Journal.open(tmp_path, LARGE) as journal:
        for _ in range(4):
            journal.append([(0, 0, b"")] * (RANGE // 2 + 1))
            assert reserved_in(tmp_path) == journal._reservation.end > journal.last
            journal.sync()
            assert journal._reservation.end == journal.next + RANGE


def test_a_range_that_cannot_be_reserved_stops_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = filled(tmp_path, 3, Settings())
    journal.sync()

    def refuse(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(JournalFailed, match=f"could not write {tmp_path / FILE}"):
            journal.append([NEW], 10 * RANGE)
    with pytest.raises(JournalFailed):
        journal.append([NEW])
    assert journal.last == 3
    journal.close()
    with Journal.open(tmp_path) as journal:
        assert contents(journal.read()) == expected(1, 3) and journal.next > 3


@pytest.mark.parametrize("cut", [1, 40, 90, 200])
def test_a_tail_that_was_synced_and_is_gone_is_a_hole_up_to_the_reserved_end(tmp_path: Path, cut: int) -> None:
    journal = filled(tmp_path / "journal", 10, LARGE)
    journal.sync()
    directory = killed(journal, tmp_path / "journal", tmp_path / "killed")
    (path,) = segments(directory)
    overwrite(path, path.read_bytes().rstrip(b"\0")[:-cut])
    reserved = reserved_in(directory)
    assert reserved is not None
    found: dict[int, Entry] = {}
    for life in range(3):
        with Journal.open(directory, LARGE) as journal:
            found = found or contents(journal.read())
            hole = set(range(len(found) + 1, reserved))
            assert missing(journal.recovery.lost) == hole
            assert journal.next == reserved + life
            cursor = journal.read()
            truth = found | {reserved + n: NEW for n in range(life)}
            assert (read_all(cursor), missing(cursor.lost)) == (truth, hole)
            lost = [gap for one in Observer(directory).read(0) for gap in one.lost]
            assert missing(lost) == hole
            journal.append([NEW])


def test_a_hole_is_told_also_if_the_opening_that_found_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 10, LARGE).close()
    (path,) = segments(tmp_path)
    overwrite(path, path.read_bytes()[:-50])

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "killed here")

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "begin", refuse)
        with pytest.raises(OSError, match="killed"):
            Journal.open(tmp_path, LARGE)
    with Journal.open(tmp_path, LARGE) as journal:
        assert set(contents(journal.read())) | missing(journal.recovery.lost) == set(range(1, journal.next))
        assert missing(journal.recovery.lost) >= {10} and journal.next > 11


def test_a_tail_that_was_never_synced_and_is_gone_is_a_skip(tmp_path: Path) -> None:
    journal = filled(tmp_path / "journal", 6, LARGE)
    journal.sync()
    journal.append(entries(7, 10))
    directory = killed(journal, tmp_path / "journal", tmp_path / "killed")
    (path,) = segments(directory)
    overwrite(path, path.read_bytes().rstrip(b"\0")[:-50])
    with Journal.open(directory, LARGE) as journal:
        assert journal.recovery.cut and journal.recovery.lost == ()
        found = contents(journal.read())
        assert journal.next == reserved_in(directory) - RANGE > 10  # type: ignore[operator]
        everybody_reads(directory, journal, found | {journal.append([NEW]): NEW})


@pytest.mark.parametrize("content", [None, b"", b"VESTNIKR", b"?" * 24, bytes(24)])
@pytest.mark.parametrize("is_marked", [True, False])
def test_a_reservation_that_is_missing_or_damaged_leads_to_no_reuse(
    tmp_path: Path, content: bytes | None, is_marked: bool
) -> None:
    journal = filled(tmp_path / "journal", 10, LARGE)
    journal.sync()
    journal.append([NEW], 10 * RANGE if is_marked else None)
    used = journal.last
    directory = killed(journal, tmp_path / "journal", tmp_path / "killed")
    (path,) = segments(directory)
    overwrite(path, path.read_bytes().rstrip(b"\0")[:-10])
    if not is_marked:
        (directory / WATERMARK).unlink()
    (directory / FILE).unlink() if content is None else (directory / FILE).write_bytes(content)
    with Journal.open(directory, LARGE) as journal:
        recovery = journal.recovery
        assert not recovery.is_clean and recovery.lost == ()
        assert recovery.unreserved == journal.next > used
        assert f"the reserved end was missing or damaged; positions continue at {journal.next:,}" in str(recovery)
        assert contents(journal.read()) == expected(1, 10)
        journal.append([NEW])
    with Journal.open(directory, LARGE) as journal:
        assert journal.recovery.is_clean and journal.next == recovery.unreserved + 1


def test_a_reservation_that_is_older_than_the_records_is_not_believed(tmp_path: Path) -> None:
    with filled(tmp_path, 4):
        pass
    old = (tmp_path / FILE).read_bytes()
    with filled(tmp_path, 10):
        pass
    (tmp_path / FILE).write_bytes(old)
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.unreserved == journal.next > 10 + RANGE


@pytest.mark.parametrize("is_killed", [True, False])
def test_times_never_go_back(tmp_path: Path, is_killed: bool) -> None:
    directory = tmp_path / "journal"
    journal = Journal.open(directory, SMALL)
    journal.append([(0, 50, b""), (0, 40, b""), (0, 60, b"")])
    journal.append([(0, 10, b"")])
    assert [record.time for record in journal.read()] == [50, 50, 60, 60]
    if is_killed:
        directory = killed(journal, directory, tmp_path / "killed")
    journal.close()
    with Journal.open(directory, SMALL) as journal:
        assert journal.latest == 60
        journal.append([(0, 20, b""), (0, 70, b"")])
        assert [record.time for record in journal.read(4)] == [60, 70]
        journal.roll()
        journal.drop_before(journal.last + 1)
        assert journal.count == 0
    with Journal.open(directory, SMALL) as journal:
        journal.append([(0, 5, b"")])
        assert [record.time for record in journal.read()] == [70], "also after every record was dropped"
