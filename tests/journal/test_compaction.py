"""The newest record of each key stays, where it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from journal.journals import SMALL, contents, entries, expected, files, filled, put, segments
from vestnik.journal import Compacted, Journal, Record, Settings, cursor
from vestnik.journal.directory import Directory
from vestnik.journal.disk import Source


def by_last_digit(record: Record) -> int | None:
    return record.position % 10 or None


def test_positions_stay_and_what_has_no_key_stays(tmp_path: Path) -> None:
    with filled(tmp_path, 60) as journal:
        journal.sync()
        size, active = journal.size, int(segments(tmp_path)[-1].stem)
        saved = journal.compact(by_last_digit)
        kept = contents(journal.read())
        wanted = {p for p in range(1, 61) if p % 10 == 0 or p > 50 or p >= active}
        assert kept == {position: entry for position, entry in expected(1, 60).items() if position in wanted}
        assert (saved.records, saved.size) == (60 - len(wanted), size - journal.size)
        assert str(saved).startswith(f"{saved.records} records and {saved.size:,} bytes less, by rewriting ")
        assert journal.compact(by_last_digit) == Compacted(0, 0, 0)
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.is_clean
        assert contents(journal.read()) == kept
        assert contents(journal.read(25, 55)) == {p: entry for p, entry in kept.items() if 25 < p <= 55}
        assert journal.append(entries(61, 61)) == 61


def test_what_is_not_committed_replaces_nothing(tmp_path: Path) -> None:
    with filled(tmp_path, 20) as journal:
        journal.sync()
        filled_up = [journal.append(entries(number, number)) for number in range(21, 30)]
        journal.compact(lambda record: "one key")
        kept = contents(journal.read())
        assert 20 in kept and set(filled_up) <= kept.keys()


def test_a_reader_that_is_on_its_way_goes_on(tmp_path: Path) -> None:
    with filled(tmp_path, 60) as journal:
        journal.sync()
        cursor = journal.read()
        assert next(iter(cursor)).position == 1
        journal.compact(by_last_digit)
        later = contents(cursor)
        assert later.items() <= expected(2, 60).items()
        assert later.items() >= contents(journal.read(1)).items()
        assert cursor.lost == []


def test_small_neighbours_become_one(tmp_path: Path) -> None:
    with filled(tmp_path, 200) as journal:
        journal.sync()
        before = files(tmp_path)
        journal.compact(lambda record: record.position % 30 or None)
        after = files(tmp_path)
        kept = contents(journal.read())
        assert 1 < len(after) < len(before) / 2
        assert max(map(len, after.values())) <= 300
    removed = {name: data for name, data in before.items() if name not in after}
    put(tmp_path, after | removed)
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.is_clean
        assert contents(journal.read()) == kept
        assert files(tmp_path) == after


@pytest.mark.parametrize(("count", "age"), [(160, None), (None, 240_000)])
def test_neighbours_stay_apart_where_retention_needs_it(tmp_path: Path, count: int | None, age: int | None) -> None:
    with Journal.open(tmp_path, Settings(retain_count=count, retain_age=age, fsync=False)) as journal:
        for number in range(1, 151):
            journal.append(entries(number, number))
            journal.retain(1_000 * number)
        journal.sync()
        before = len(segments(tmp_path))
        journal.compact(lambda record: record.position % 3 or None)
        shape = _shape(journal, tmp_path)
        assert len(shape) < before or age
        assert max(number for number, _ in shape) <= (20 if count else 32)
        assert max(span for _, span in shape) <= 60_000


def _shape(journal: Journal, directory: Path) -> list[tuple[int, int]]:
    """How many records each segment has, and how far their times are apart."""
    firsts = [int(path.stem) for path in segments(directory)]
    ends = [first - 1 for first in firsts[1:]] + [journal.last]
    times = [[record.time for record in journal.read(first - 1, end)] for first, end in zip(firsts, ends, strict=True)]
    return [(len(some), max(some, default=0) - min(some, default=0)) for some in times]


def test_a_file_that_is_rewritten_just_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(tmp_path, 60) as journal:
        journal.sync()

        def late(path: Path, directory: Directory) -> Source:
            monkeypatch.undo()
            journal.compact(by_last_digit)
            return Source(path, directory)

        monkeypatch.setattr(cursor, "Source", late)
        reading = journal.read()
        assert contents(reading) == contents(journal.read())
        assert reading.lost == []


def test_a_damaged_segment_is_not_rewritten(tmp_path: Path) -> None:
    """Rewritten, it would not show what is missing."""
    with filled(tmp_path, 20) as journal:
        journal.sync()
        path = segments(tmp_path)[0]
        data = path.read_bytes()
        path.write_bytes(data[:60] + b"?" + data[61:])
        journal.compact(lambda record: "one key")
        assert path.read_bytes()[60:61] == b"?"
        cursor = journal.read()
        assert {20} < contents(cursor).keys()
        assert cursor.lost[0].first == 1
