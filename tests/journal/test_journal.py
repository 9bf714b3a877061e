"""Appending and reading."""

from __future__ import annotations

import stat
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.journals import SMALL, contents, entries, entry, expected, filled, segments
from vestnik.errors import InvalidSetting
from vestnik.journal import Journal, Record, Settings


def test_positions_count_from_one_for_ever(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        assert (journal.first, journal.last, journal.committed) == (1, 0, 0)
        assert journal.append(entries(1, 3)) == 3
        assert journal.append([]) == 3
        assert journal.append(entries(4, 4)) == 4
    with Journal.open(tmp_path) as journal:
        assert journal.recovery.is_clean
        assert str(journal.recovery) == "4 records, up to position 4"
        assert journal.append(entries(5, 5)) == 5
        assert contents(journal.read()) == expected(1, 5)


def test_what_is_appended_is_read_at_once_and_committed_by_sync(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        journal.append([(7, -5, b"payload")])
        assert list(journal.read()) == [Record(1, 7, -5, b"payload")]
        assert journal.committed == 0
        assert journal.sync() == journal.committed == 1


@pytest.mark.parametrize("settings", [SMALL, Settings(fsync=False)], ids=["many segments", "one segment"])
def test_reading_from_any_position_to_any(tmp_path: Path, settings: Settings) -> None:
    with filled(tmp_path, 40, settings) as journal:
        for after in range(42):
            for until in (None, 0, 17, 40, 99):
                last = 40 if until is None else min(until, 40)
                assert contents(journal.read(after, until)) == expected(after + 1, last)


def test_a_cursor_goes_on_where_it_was_left(tmp_path: Path) -> None:
    with filled(tmp_path, 20) as journal:
        cursor = journal.read()
        assert contents(islice(cursor, 7)) == expected(1, 7)
        assert cursor.position == 7
        assert contents(cursor) == expected(8, 20)
        assert contents(cursor) == {}
        journal.append(entries(21, 23))
        assert contents(cursor) == expected(21, 23)
        assert (cursor.position, cursor.lost) == (23, [])


def test_records_longer_than_what_is_read_at_a_time(tmp_path: Path) -> None:
    large = [(1, number, bytes([number]) * 300_000) for number in range(5)]
    with Journal.open(tmp_path, Settings(fsync=False)) as journal:
        journal.append(large)
        assert list(contents(journal.read()).values()) == large
    with Journal.open(tmp_path, Settings(fsync=False)) as journal:
        assert journal.recovery.is_clean
        assert list(contents(journal.read(3)).values()) == large[3:]


def test_files_sort_by_position_and_are_for_their_owner(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "journal"
    filled(directory, 20).close()
    paths = segments(directory)
    assert len(paths) > 3
    assert [int(path.stem) for path in paths] == sorted(int(path.stem) for path in paths)
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (directory, directory.parent)} == {0o700}


@pytest.mark.parametrize("bad", [(256, 0, b""), (-1, 0, b""), (0, 1 << 63, b"")])
def test_what_no_record_can_hold_is_refused_and_nothing_is_written(tmp_path: Path, bad: tuple[int, int, bytes]) -> None:
    with filled(tmp_path, 2) as journal:
        with pytest.raises(ValueError, match="no record can hold"):
            journal.append([entry(3), bad])
        journal.append([entry(3)])
        assert contents(journal.read()) == expected(1, 3)


def test_a_closed_journal_says_so(tmp_path: Path) -> None:
    journal = filled(tmp_path, 2)
    journal.close()
    journal.close()
    with pytest.raises(ValueError, match="is closed"):
        journal.append(entries(3, 3))


def open_files() -> set[str]:
    return {str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}


def test_no_file_stays_open(tmp_path: Path) -> None:
    before = open_files()
    with filled(tmp_path, 40) as journal:
        next(iter(journal.read()))
    assert open_files() == before


TIMES = st.lists(st.integers(0, 50), max_size=60)


@given(TIMES, st.sampled_from([SMALL, Settings(fsync=False)]), st.integers(-1, 52))
def test_the_first_position_of_a_time(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], settings: Settings, time: int
) -> None:
    """Times need not be in order."""
    with Journal.open(tmp_path_factory.mktemp("times"), settings) as journal:
        for one in times:
            journal.append([(0, one, b"")])
        naive = next((position for position, one in enumerate(times, 1) if one >= time), len(times) + 1)
        assert journal.position_at(time) == naive


def test_the_first_position_of_a_time_far_in_a_segment(tmp_path: Path) -> None:
    with Journal.open(tmp_path, Settings(fsync=False)) as journal:
        for first in range(1, 3_001, 10):
            journal.append([(0, number, bytes(500)) for number in range(first, first + 10)])
        assert len(segments(tmp_path)) == 1
        assert [journal.position_at(time) for time in (0, 1, 1_500, 2_999, 3_001)] == [1, 1, 1_500, 2_999, 3_001]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"segment_size": 0}, "segment_size: it is a whole number above 0, not 0"),
        ({"retain_count": -1}, "retain_count: it is a whole number above 0, not -1"),
        ({"retain_age": 1.5}, "retain_age: it is a whole number above 0, not 1.5"),
        ({"retain_size": None}, "retain_size: it is a whole number above 0, not None"),
        ({"retain_size": 1 << 20}, "retain_size: it is at least twice segment_size, 33,554,432, not 1,048,576"),
        ({"fsync": 1}, "fsync: it is true or false, not 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        Settings(**settings)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_the_cap_is_shown(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        assert "retain_size=1073741824" in repr(journal)
