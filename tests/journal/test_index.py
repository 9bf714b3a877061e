"""Closed segments have an index, so that opening does not read them. It is believed only if it fits."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from journal.journals import NEW, SMALL, contents, entries, expected, files, filled, missing, read_all, segments
from vestnik.journal import Journal, Observer, Record, Settings, salvage, scan
from vestnik.journal.disk import Source
from vestnik.journal.index import index_of, read_index

LAST = 20


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The segments that opening reads, in order."""
    found: list[Path] = []
    real = scan.pieces

    def pieces(source: Source, mark: int, at: int, end: int) -> object:
        found.append(source.path)
        return real(source, mark, at, end)

    monkeypatch.setattr(salvage, "pieces", pieces)
    return found


def indexes(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.index"))


def by_last_digit(record: Record) -> int | None:
    return record.position % 10 or None


def test_opening_reads_the_last_segment_only(tmp_path: Path, scanned: list[Path]) -> None:
    filled(tmp_path, LAST).close()
    assert indexes(tmp_path) == [index_of(path) for path in segments(tmp_path)[:-1]]
    for _ in range(2):
        scanned.clear()
        with Journal.open(tmp_path, SMALL) as journal:
            assert scanned == segments(tmp_path)[-1:]
            assert journal.recovery.is_clean and journal.recovery.rebuilt == ()
            assert journal.recovery.records == journal.count == LAST
            assert read_all(journal.read()) == expected(1, LAST)
            assert [journal.position_at(1_000 * n) for n in range(1, LAST + 1)] == list(range(1, LAST + 1))


@pytest.mark.parametrize("how", ["synced", "compacted", "trimmed"])
def test_what_an_index_says_is_what_reading_finds(tmp_path: Path, how: str) -> None:
    settings = SMALL
    if how == "trimmed":
        settings = Settings(segment_size=200, retain_size=100_000, retain_count=LAST, fsync=False)
        filled(tmp_path, LAST, Settings(segment_size=100_000, retain_size=1_000_000, fsync=False)).close()
    with filled(tmp_path, LAST, settings) as journal:
        journal.sync()
        if how == "compacted":
            journal.compact(by_last_digit)
        if how == "trimmed":
            journal.trim(0)
    written = {path.name: read_index(path) for path in segments(tmp_path)[:-1]}
    for path in indexes(tmp_path):
        path.unlink()
    with Journal.open(tmp_path, settings) as journal:
        assert journal.recovery.is_clean
        assert journal.recovery.rebuilt == tuple(index_of(tmp_path / name).name for name in written)
        assert ", ".join(journal.recovery.rebuilt) in str(journal.recovery)
    for name, index in written.items():
        again = read_index(tmp_path / name)
        assert index is not None and again is not None
        assert vars(index.segment) == vars(again.segment)
    with Journal.open(tmp_path, settings) as journal:
        assert journal.recovery.rebuilt == ()


def flipped(data: bytes) -> bytes:
    return data[:30] + bytes([data[30] ^ 1]) + data[31:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "a flipped bit": flipped,
    "cut short": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "longer": lambda data: data + b"?",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_index_is_written_again_and_that_is_said(
    tmp_path: Path, damage: Callable[[bytes], bytes], scanned: list[Path]
) -> None:
    filled(tmp_path, LAST).close()
    one = indexes(tmp_path)[1]
    before = one.read_bytes()
    one.write_bytes(damage(before))
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.rebuilt == (one.name,) and journal.recovery.is_clean
        assert str(journal.recovery).endswith(f"indexes that were missing or damaged were written again: {one.name}")
        assert len(scanned) == 2
        assert read_all(journal.read()) == expected(1, LAST)
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.rebuilt == ()


def test_damage_to_any_byte_of_an_index_changes_nothing(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    one = indexes(tmp_path)[1]
    data = one.read_bytes()
    for at in range(len(data)):
        one.write_bytes(data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
        with Journal.open(tmp_path, SMALL) as journal:
            assert journal.recovery.rebuilt == (one.name,)
            assert read_all(journal.read()) == expected(1, LAST)


def test_the_index_of_another_segment_is_not_believed(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    one, other = indexes(tmp_path)[:2]
    shutil.copyfile(one, other)
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.rebuilt == (other.name,)
        assert read_all(journal.read()) == expected(1, LAST)


def test_the_index_of_the_same_segment_in_another_journal_is_not_believed(tmp_path: Path) -> None:
    """Only the mark is another."""
    for name in ("one", "other"):
        filled(tmp_path / name, LAST).close()
    one, other = (indexes(tmp_path / name)[0] for name in ("one", "other"))
    shutil.copyfile(one, other)
    with Journal.open(tmp_path / "other", SMALL) as journal:
        assert journal.recovery.rebuilt == (other.name,)
        assert read_all(journal.read()) == expected(1, LAST)


def test_a_segment_of_another_size_is_read(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    path = segments(tmp_path)[1]
    path.write_bytes(path.read_bytes()[:-1])
    gone = int(segments(tmp_path)[2].stem) - 1
    for _ in range(2):
        with Journal.open(tmp_path, SMALL) as journal:
            assert missing(journal.recovery.lost) == {gone}
            assert journal.recovery.rebuilt == (), "what is damaged is read, and said, at every opening"


def test_the_index_of_what_compaction_has_rewritten_since_is_not_believed(tmp_path: Path) -> None:
    """A crash comes between the segment and its index."""
    with filled(tmp_path, LAST) as journal:
        journal.sync()
        before = {path: path.read_bytes() for path in indexes(tmp_path)}
        journal.compact(by_last_digit)
        kept = read_all(journal.read())
    for path, data in before.items():
        path.write_bytes(data)
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.is_clean and journal.recovery.rebuilt
        assert read_all(journal.read()) == kept
    assert {index_of(path) for path in segments(tmp_path)[:-1]} == set(indexes(tmp_path)), "others are removed"


def test_a_segment_that_goes_takes_its_index_along(tmp_path: Path) -> None:
    with filled(tmp_path, LAST) as journal:
        journal.sync()
        journal.drop_before(11)
        assert indexes(tmp_path) == [index_of(path) for path in segments(tmp_path)[:-1]]
        journal.compact(lambda record: "one key")
        assert indexes(tmp_path) == [index_of(path) for path in segments(tmp_path)[:-1]]


def test_a_segment_that_is_dropped_before_it_is_synced_leaves_no_index(tmp_path: Path) -> None:
    with filled(tmp_path, LAST) as journal:
        journal.drop_before(LAST)
        journal.sync()
        assert indexes(tmp_path) == [index_of(path) for path in segments(tmp_path)[:-1]]


def test_a_killed_process_leaves_no_index_of_what_was_not_synced(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    with filled(directory, 10) as journal:
        journal.sync()
        known = len(indexes(directory))
        for number in range(11, LAST + 1):
            journal.append(entries(number, number))
        assert len(indexes(directory)) == known < len(segments(directory)) - 1
        shutil.copytree(directory, tmp_path / "killed")
    with Journal.open(tmp_path / "killed", SMALL) as journal:
        assert journal.recovery.is_clean and journal.recovery.rebuilt
        assert read_all(journal.read()) == expected(1, LAST)


def test_the_last_segment_grows_again_without_its_index(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    for path in segments(tmp_path)[2:]:
        path.unlink()
    with Journal.open(tmp_path, SMALL) as journal:
        assert indexes(tmp_path) == [index_of(segments(tmp_path)[0])]
        assert missing(journal.recovery.lost) == set(range(journal.recovery.records + 1, LAST + 1))
        assert journal.append([NEW]) == LAST + 1


def test_damage_in_an_indexed_segment_is_told_to_whoever_reads_it(tmp_path: Path) -> None:
    filled(tmp_path / "original", LAST).close()
    for name, data in list(files(tmp_path / "original").items())[:-1]:
        directory = shutil.copytree(tmp_path / "original", tmp_path / name)
        path, first = directory / name, int(Path(name).stem)
        path.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
        with Journal.open(directory, SMALL) as journal:
            assert journal.recovery.is_clean
            for after in (0, first - 1):
                cursor = journal.read(after)
                assert read_all(cursor).keys() == set(range(after + 1, LAST + 1)) - {first}
                assert missing(cursor.lost) == {first}
            told = [gap for one in Observer(directory).read(0) for gap in one.lost]
            assert missing(told) == {first}
            journal.compact(lambda record: "one key")
            assert path.read_bytes()[60] == data[60] ^ 1, "what is damaged is not rewritten"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
def test_an_index_that_cannot_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    real = os.open

    def refuse(path: Path | str, *arguments: int, **named: int) -> int:
        if str(path).endswith(".index"):
            raise OSError(error, os.strerror(error))
        return real(path, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        filled(tmp_path, LAST).close()
        assert indexes(tmp_path) == []
        with Journal.open(tmp_path, SMALL) as journal:
            assert journal.recovery.is_clean and journal.recovery.rebuilt == ()
            assert contents(journal.read()) == expected(1, LAST)
    with Journal.open(tmp_path, SMALL) as journal:
        assert len(journal.recovery.rebuilt) == len(segments(tmp_path)) - 1


def test_what_was_not_synced_before_its_index_is_synced_at_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal was written without fsync, and is opened with it."""
    filled(tmp_path, LAST).close()
    settled: list[Path] = []
    monkeypatch.setattr(Source, "settle", lambda source: settled.append(source.path))
    with Journal.open(tmp_path, Settings(segment_size=200)) as journal:
        journal.append(entries(LAST + 1, LAST + 1))
    assert settled == segments(tmp_path)[: len(settled)] and len(settled) > 2
    settled.clear()
    shutil.rmtree(tmp_path)
    filled(tmp_path, LAST, Settings(segment_size=200)).close()
    with Journal.open(tmp_path, Settings(segment_size=200)):
        assert settled == segments(tmp_path)[-1:]
