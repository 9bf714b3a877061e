"""What is dropped, and what is not."""

from __future__ import annotations

from pathlib import Path

from journal.journals import contents, entries, expected, filled, missing, segments
from vestnik.journal import Dropped, Journal, Settings


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
