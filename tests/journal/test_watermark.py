"""Every reader is told what is missing at either end of a journal, in this life and in later ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from journal.journals import NEW, SMALL, entry, expected, filled, missing, overwrite, put, read_all, segments
from vestnik.journal import Entry, Journal, Observer, Settings
from vestnik.journal.index import index_of
from vestnik.journal.records import encode
from vestnik.journal.reservation import reserved_in
from vestnik.journal.segments import HEADER_SIZE
from vestnik.journal.watermark import FILE, watermark_in

LAST = 10


def told(directory: Path, after: int = 0) -> tuple[dict[int, Entry], set[int]]:
    """Return what an observer reads, and the positions that it says are missing."""
    found = list(Observer(directory).read(after))
    records = {record.position: (record.kind, record.time, record.payload) for one in found for record in one.records}
    return records, missing([lost for one in found for lost in one.lost])


def left_by_a_kill(journal: Journal, directory: Path, to: Path) -> Path:
    """Copy the files of a journal as `kill -9` would leave them now."""
    shutil.copytree(directory, to)
    journal.close()
    return to


def reached(directory: Path) -> tuple[int, int]:
    """Return the first and the last position by the watermark."""
    mark = watermark_in(directory)
    return mark.first, mark.last


def check(directory: Path, kept: set[int]) -> None:
    """Readers get the positions that are `kept`, and are told that all others before the reserved end are missing."""
    truth = {position: one for position, one in expected(1, LAST).items() if position in kept}
    lost = set(range(1, LAST + 1)) - kept
    assert told(directory) == (truth, lost), "nobody has opened it"
    end = reserved_in(directory)
    assert end is not None
    last = end - 1 if LAST in lost else LAST
    lost = set(range(1, last + 1)) - kept
    for life in range(3):
        with Journal.open(directory, SMALL) as journal:
            assert missing(journal.recovery.lost) == lost
            cursor = journal.read(until=last)
            assert (read_all(cursor), missing(cursor.lost)) == (truth, lost)
            assert (journal.first, journal.last) == (1, last + life), "no position is used twice"
            assert told(directory) == (truth | {last + n: NEW for n in range(1, life + 1)}, lost)
            journal.append([NEW])


@pytest.mark.parametrize("how", ["closed", "killed"])
@pytest.mark.parametrize("count", [1, 2, 100])
def test_the_last_segments_are_removed(tmp_path: Path, how: str, count: int) -> None:
    directory = tmp_path / "journal"
    journal = filled(directory, LAST)
    journal.sync()
    if how == "killed":
        directory = left_by_a_kill(journal, directory, tmp_path / "killed")
    journal.close()
    gone = segments(directory)[-count:]
    for path in gone:
        path.unlink()
    check(directory, set(range(1, int(gone[0].stem))))


def test_the_last_records_are_cut_off_cleanly(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    path = segments(tmp_path)[-1]
    size = len(encode([entry(LAST)], 1, 1).data)
    overwrite(path, path.read_bytes()[:-size])
    check(tmp_path, set(range(1, LAST)))


def test_all_records_of_the_last_segment_are_cut_off(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    path = segments(tmp_path)[-1]
    overwrite(path, path.read_bytes()[:HEADER_SIZE])
    check(tmp_path, set(range(1, int(path.stem))))


@pytest.mark.parametrize("at", [20, HEADER_SIZE + 30], ids=["header", "record"])
def test_damage_at_the_first_position(tmp_path: Path, at: int) -> None:
    filled(tmp_path, LAST).close()
    path, following = segments(tmp_path)[:2]
    index_of(path).unlink()  # with an index, only a reader finds it
    data = path.read_bytes()
    overwrite(path, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    check(tmp_path, set(range(2 if at > HEADER_SIZE else int(following.stem), LAST + 1)))


def test_what_is_lost_before_all_that_can_be_read_is_dropped_in_its_turn(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    path, following = segments(tmp_path)[:2]
    overwrite(path, b"?" * 100)
    keeping = Settings(segment_size=200, retain_size=100_000, retain_age=1_000_000, fsync=False)
    with Journal.open(tmp_path, keeping) as journal:
        cursor = journal.read()
        found = read_all(cursor).keys()
        assert found | missing(cursor.lost) == set(range(1, LAST + 1)) and not found & missing(cursor.lost)
        assert path.exists() and journal.first == 1
        later = int(path.stat().st_mtime * 1_000_000) + 2_000_000
        journal.retain(later)
        assert not path.exists() and journal.first > int(following.stem)


def test_what_was_never_committed_is_not_missed(tmp_path: Path) -> None:
    journal = filled(tmp_path / "journal", LAST - 2)
    journal.sync()
    journal.append([entry(LAST - 1), entry(LAST)])
    before = {path.name: path.read_bytes() for path in segments(tmp_path / "journal")}
    killed = left_by_a_kill(journal, tmp_path / "journal", tmp_path / "killed")
    (last, data) = max(before.items())
    tail = len(encode([entry(LAST - 1), entry(LAST)], 1, 1).data)
    used = len(data.rstrip(b"\0"))
    put(killed, before | {last: data[: used - tail]})
    assert told(killed) == (expected(1, LAST - 2), set())
    with Journal.open(killed, SMALL) as again:
        assert again.recovery.is_clean and again.last == LAST - 2


@pytest.mark.parametrize("content", [b"", b"VESTNIKW", b"\0" * 64, b"?" * 64])
def test_a_damaged_watermark_says_nothing(tmp_path: Path, content: bytes) -> None:
    filled(tmp_path, LAST).close()
    (tmp_path / FILE).write_bytes(content)
    assert told(tmp_path) == (expected(1, LAST), set())
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.is_clean and read_all(journal.read()) == expected(1, LAST)
    assert reached(tmp_path) == (1, LAST)


def test_a_journal_without_a_watermark_gets_one(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    (tmp_path / FILE).unlink()
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.is_clean
        assert reached(tmp_path) == (1, LAST)
        journal.append([NEW])
        assert reached(tmp_path) == (1, LAST), "what is not committed may be gone"
        journal.sync()
        assert reached(tmp_path) == (1, LAST + 1)


def test_the_end_of_a_compacted_segment_is_missed_by_an_observer_too(tmp_path: Path) -> None:
    with filled(tmp_path, LAST) as journal:
        journal.sync()
        journal.compact(lambda record: record.position % 2 or None)
        kept = read_all(journal.read())
    path = segments(tmp_path)[0]
    overwrite(path, path.read_bytes()[:HEADER_SIZE])
    gone = {position for position in kept if position < int(segments(tmp_path)[1].stem)}
    records, lost = told(tmp_path)
    assert gone and gone <= lost and records.keys() == kept.keys() - gone
    with Journal.open(tmp_path, SMALL) as journal:
        cursor = journal.read()
        assert read_all(cursor).keys() == kept.keys() - gone and gone <= missing(cursor.lost)
