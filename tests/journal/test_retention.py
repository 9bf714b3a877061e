"""What is dropped, and what is not."""

from __future__ import annotations

import errno
from itertools import count
from pathlib import Path

import pytest

from journal.journals import contents, entries, expected, filled, missing, segments
from vestnik.errors import JournalFailed
from vestnik.journal import Dropped, Journal, Observer, Settings, trimming


def settings(retain_size: int = 1_000, retain_count: int | None = None, retain_age: int | None = None) -> Settings:
    return Settings(
        segment_size=200,
        retain_size=retain_size,
        retain_count=retain_count,
        retain_age=retain_age,
        fsync=False,
    )


def test_no_more_than_the_cap_is_ever_kept(tmp_path: Path) -> None:
    with Journal.open(tmp_path, settings()) as journal:
        for number in range(1, 200):
            journal.append(entries(number, number))
            assert journal.size <= 1_000 + 44
            assert contents(journal.read()) == expected(journal.first, number)
        dropped = journal.retain(0)
        assert dropped == Dropped(1, journal.first - 1)
        assert str(dropped) == f"positions 1 to {journal.first - 1} were dropped"
        assert journal.retain(0) is None
        journal.sync()
        assert sum(path.stat().st_size for path in segments(tmp_path)) <= journal.size + 200


def test_count(tmp_path: Path) -> None:
    with Journal.open(tmp_path, settings(retain_size=100_000, retain_count=80)) as journal:
        for number in range(1, 200):
            journal.append(entries(number, number))
            kept = number - journal.first + 1
            assert kept <= 80 + 10
            assert kept >= min(number, 80 - 10)


def test_age_is_that_of_the_newest_record_of_a_segment(tmp_path: Path) -> None:
    with filled(tmp_path, 40, settings(retain_size=100_000, retain_age=8_000)) as journal:
        assert journal.retain(1_000) is None
        dropped = journal.retain(30_000)
        assert dropped and 22 - 5 <= dropped.last <= 22
        assert journal.retain(1_000_000) == Dropped(dropped.last + 1, 40)
        assert (journal.first, journal.last) == (41, 40)
        assert journal.append(entries(41, 41)) == 41


def test_opening_drops_nothing(tmp_path: Path) -> None:
    filled(tmp_path, 40, settings(retain_size=100_000)).close()
    with Journal.open(tmp_path, settings()) as journal:
        assert journal.first == 1
        journal.retain(0)
        assert journal.size <= 1_000


@pytest.mark.parametrize(
    ("by", "kept"),
    [
        (settings(retain_size=100_000, retain_count=10), 10),
        (settings(retain_size=100_000, retain_age=10_000), 10),
        (settings(retain_size=100_000), 40),
        (settings(), None),
    ],
)
@pytest.mark.parametrize("segment_size", [100_000, 400])
def test_what_other_settings_left_is_trimmed_to_what_is_retained(
    tmp_path: Path, segment_size: int, by: Settings, kept: int | None
) -> None:
    """A record has the time of its position, in thousands."""
    filled(tmp_path, 40, Settings(segment_size=segment_size, retain_size=1_000_000, fsync=False)).close()
    with Journal.open(tmp_path, by) as journal:
        late = journal.read()
        journal.trim(41_000)
        assert kept is None or journal.first == 41 - kept
        dropped = journal.retain(41_000)
        first = journal.first if kept is None else 41 - kept
        assert (journal.first, journal.last) == (first, 40) and 41 - first >= 8
        assert dropped == (Dropped(1, first - 1) if first > 1 else None)
        assert dropped is None or dropped.records == first - 1
        assert journal.size <= by.retain_size
        assert contents(late) == expected(first, 40) and missing(late.lost) == set(range(1, first))
        journal.append(entries(41, 41))
    with Journal.open(tmp_path, by) as journal:
        assert journal.recovery.is_clean
        assert contents(journal.read()) == expected(journal.first, 41) and journal.first >= first


@pytest.mark.parametrize("before", [40, 60, 100, 1_000])
def test_later_no_more_is_dropped_than_if_the_settings_had_always_been_so(tmp_path: Path, before: int) -> None:
    filled(tmp_path, before, Settings(segment_size=1_000_000, retain_size=10_000_000, fsync=False)).close()
    with Journal.open(tmp_path, settings(retain_size=100_000, retain_count=80)) as journal:
        journal.trim(0)
        for number in range(before + 1, before + 200):
            journal.append(entries(number, number))
            kept = number - journal.first + 1
            assert min(number, 80 - 10) <= kept <= 80 + 10
            assert contents(journal.read()) == expected(journal.first, number)


def test_a_crash_while_a_journal_is_trimmed_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 40, Settings(segment_size=100_000, retain_size=1_000_000, fsync=False)).close()
    few = settings(retain_size=100_000, retain_count=10)
    journal = Journal.open(tmp_path, few)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(JournalFailed):
        journal.trim(0)
    monkeypatch.undo()
    journal.close()
    assert len(segments(tmp_path)) > 2, "what is trimmed, what is kept of it, and the one that grows"
    assert [record.position for part in Observer(tmp_path).read(0) for record in part.records] == list(range(1, 41))
    with Journal.open(tmp_path, few) as journal:
        assert journal.recovery.is_clean
        assert contents(journal.read()) == expected(1, 40)
        journal.trim(0)
        assert contents(journal.read()) == expected(31, 40)


@pytest.mark.parametrize("most", [25, 60])
@pytest.mark.parametrize("is_killed", [True, False])
@pytest.mark.parametrize("after", range(4))
def test_a_journal_that_is_trimmed_in_part_has_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int, is_killed: bool, most: int
) -> None:
    """The disk fails after so many renames; or the process ends there, and so cannot remove anything."""
    filled(tmp_path, 40, Settings(segment_size=100_000, retain_size=1_000_000, fsync=False)).close()
    few = settings(retain_size=100_000, retain_count=most)
    journal = Journal.open(tmp_path, few)
    renames, rename = count(), Path.rename

    def rename_some(path: Path, target: Path) -> Path:
        if next(renames) == after:
            raise OSError(errno.EIO, "the disk has failed")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", rename_some)
    if is_killed:
        monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: None)
    with pytest.raises(OSError, match="has failed"):
        journal.trim(0)
    monkeypatch.undo()
    assert contents(journal.read()) == expected(1, 40)
    journal.close()
    assert [record.position for part in Observer(tmp_path).read(0) for record in part.records] == list(range(1, 41))
    with Journal.open(tmp_path, few) as journal:
        assert journal.recovery.is_clean
        assert contents(journal.read()) == expected(1, 40)
        journal.trim(0)
        assert contents(journal.read()) == expected(max(1, 41 - most), 40)
    with Journal.open(tmp_path, few) as journal:
        assert journal.recovery.is_clean
        assert contents(journal.read()) == expected(max(1, 41 - most), 40)


def refuse(path: Path, missing_ok: bool = False) -> None:
    if path.exists():
        raise OSError(errno.EIO, "the process has ended")


def test_a_damaged_segment_is_not_trimmed(tmp_path: Path) -> None:
    """Its tail would not show that anything is missing."""
    filled(tmp_path, 40, Settings(segment_size=100_000, retain_size=1_000_000, fsync=False)).close()
    (path,) = segments(tmp_path)
    data = bytearray(path.read_bytes())
    data[-100] ^= 0xFF
    path.write_bytes(data)
    with Journal.open(tmp_path, settings(retain_size=100_000, retain_count=10)) as journal:
        assert not journal.recovery.is_clean
        journal.trim(0)
        assert journal.first == 1


def test_positions_go_on_after_everything_was_dropped(tmp_path: Path) -> None:
    with filled(tmp_path, 20) as journal:
        journal.roll()
        journal.drop_before(21)
        assert (journal.first, journal.last, len(segments(tmp_path))) == (21, 20, 1)
    with Journal.open(tmp_path, settings()) as journal:
        assert journal.recovery.is_clean
        assert journal.append(entries(21, 21)) == 21


def test_a_reader_is_told_what_was_dropped(tmp_path: Path) -> None:
    with filled(tmp_path, 40) as journal:
        cursor = journal.read()
        assert next(iter(cursor)).position == 1
        journal.drop_before(30)
        late = journal.read()
        assert contents(late) == expected(journal.first, 40)
        assert missing(late.lost) == set(range(1, journal.first))
        found = contents(cursor)
        assert found.keys() | missing(cursor.lost) == set(range(2, 41))
        assert not found.keys() & missing(cursor.lost)


def test_a_trim_on_a_full_disk_drops_nothing_that_is_retained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path, 40, Settings(segment_size=100_000, retain_size=1_000_000, fsync=False)).close()

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    few = Settings(segment_size=200, retain_size=100_000, retain_count=30, fsync=False)
    with Journal.open(tmp_path, few) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(trimming, "create", refuse)
            with pytest.raises(OSError, match="No space"):
                journal.trim(0)
            journal.retain(0)
            assert contents(journal.read()) == expected(1, 40) and not journal.is_trimmed
        journal.trim(0)
        assert contents(journal.read(10)) == expected(11, 40) and journal.first == 11 and journal.is_trimmed


def test_a_crash_in_a_trim_does_not_make_the_next_one_drop_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = filled(tmp_path, 40, Settings(segment_size=100_000, retain_size=1_000_000, fsync=False))
    journal.roll()
    journal.append(entries(41, 80))
    journal.close()
    few = Settings(segment_size=200, retain_size=100_000, retain_count=80, fsync=False)
    renames, rename = count(), Path.rename

    def some(path: Path, target: Path) -> Path:
        if next(renames) == 3:
            raise OSError(errno.EIO, "killed here")
        return rename(path, target)

    with monkeypatch.context() as patch:
        journal = Journal.open(tmp_path, few)
        patch.setattr(Path, "rename", some)
        patch.setattr(Path, "unlink", lambda path, missing_ok=False: None)
        with pytest.raises(OSError, match="killed"):
            journal.trim(0)
    journal.close()
    with Journal.open(tmp_path, few) as journal:
        assert contents(journal.read()) == expected(1, 80)
        journal.trim(0)
        assert contents(journal.read()) == expected(1, 80) and journal.first == 1
