"""Whatever happens to the files, nothing wrong is read, and what is missing is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest

from journal.journals import NEW, SMALL, entry, files, filled, missing, overwrite, put, read_all, segments
from vestnik.errors import InvalidJournal
from vestnik.journal import Cut, Entry, Journal, Settings, scan
from vestnik.journal.index import index_of
from vestnik.journal.records import encode
from vestnik.journal.segments import HEADER_SIZE, LAYOUT, Header
from vestnik.journal.watermark import FILE

LAST = 10
Damage = Callable[[bytes, int], bytes]


@pytest.fixture(params=["dense", "compacted"])
def original(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[int, Entry]]:
    """A closed journal of some segments, and what is in it."""
    directory = tmp_path / "original"
    with filled(directory, LAST) as journal:
        journal.sync()
        if request.param == "compacted":
            journal.compact(lambda record: record.position % 2 or None)
        return directory, read_all(journal.read())


def flipped(mask: int) -> Damage:
    return lambda data, at: data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def zeroed(data: bytes, at: int) -> bytes:
    return data[:at] + bytes(len(data) - at)


def truncated(data: bytes, at: int) -> bytes:
    return data[:at]


def extended(data: bytes, at: int) -> bytes:
    return data + data[:at]


def harm(path: Path, damage: Damage, at: int) -> None:
    overwrite(path, damage(path.read_bytes(), at))


DAMAGES = {
    "lowest bit": flipped(1),
    "all bits": flipped(255),
    "zeros from there": zeroed,
    "truncated there": truncated,
    "its beginning again": extended,
}


def everywhere(directory: Path, to: Path) -> Iterator[tuple[Path, int]]:
    """Each byte of each segment, of a fresh copy."""
    content = files(directory)
    for name, data in content.items():
        for at in range(len(data)):
            put(to, content)
            yield to / name, at


def looks_like_a_crash(path: Path, damage: Damage) -> bool:
    """Where the end of the last segment is missing, it may never have been written; how far it goes is said."""
    return damage in (truncated, zeroed) and path == segments(path.parent)[-1]


def agrees(found: dict[int, Entry], truth: dict[int, Entry], said: set[int]) -> bool:
    """Whether nothing is wrong, and all that is missing was said to be."""
    return found.items() <= truth.items() and truth.keys() - found.keys() <= said


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_to_any_byte_is_found_at_opening(
    original: tuple[Path, dict[int, Entry]], damage: Damage, tmp_path: Path
) -> None:
    directory, truth = original
    for path, at in everywhere(directory, tmp_path / "copy"):
        harm(path, damage, at)
        unwritten = looks_like_a_crash(path, damage)
        with Journal.open(path.parent, SMALL) as journal:
            recovery = journal.recovery
            found = read_all(journal.read())
            said = missing(recovery.lost, recovery.cut, LAST) | set(
                range(recovery.last + 1, LAST + 1) if unwritten else ()
            )
            assert agrees(found, truth, said), (path.name, at, recovery)
            assert recovery.records == len(found)
            assert journal.append([NEW]) > max(found, default=0)
        with Journal.open(path.parent, SMALL) as journal:
            assert journal.recovery.cut is None
            assert read_all(journal.read()) == found | {journal.last: NEW}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_to_any_byte_is_found_in_reading(
    original: tuple[Path, dict[int, Entry]], damage: Damage, tmp_path: Path
) -> None:
    directory, truth = original
    for path, at in everywhere(directory, tmp_path / "copy"):
        with Journal.open(path.parent, SMALL) as journal:
            harm(path, damage, at)
            cursor = journal.read()
            assert agrees(read_all(cursor), truth, missing(cursor.lost)), (path.name, at, cursor.lost)


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_damaged_record_costs_no_other(tmp_path: Path, is_indexed: bool) -> None:
    """It is found when it is read: if the segment has an index, not by opening."""
    filled(tmp_path, LAST).close()
    path = segments(tmp_path)[1]
    first = int(path.stem)
    harm(path, flipped(1), HEADER_SIZE + 30)
    if not is_indexed:
        index_of(path).unlink()
    with Journal.open(tmp_path, SMALL) as journal:
        cursor = journal.read()
        assert read_all(cursor).keys() == set(range(1, LAST + 1)) - {first}
        (lost,) = cursor.lost
        assert (lost.first, lost.last) == (first, first)
        assert str(lost).startswith(f"position {first} cannot be read: ")
        assert missing(journal.recovery.lost) == (set() if is_indexed else {first})


@pytest.mark.parametrize("chunk", range(60, 90))
def test_the_next_record_is_found_wherever_reading_was_interrupted(
    tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal.open(tmp_path, Settings(fsync=False)) as journal:
        journal.append([(0, 0, bytes(200)), entry(2), entry(3)])
    harm(segments(tmp_path)[0], flipped(1), HEADER_SIZE + 50)
    monkeypatch.setattr(scan, "CHUNK", chunk)
    with Journal.open(tmp_path, Settings(fsync=False)) as journal:
        assert read_all(journal.read()) == {2: entry(2), 3: entry(3)}


def test_a_missing_segment_is_said_at_opening_and_in_reading(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    gone, following = segments(tmp_path)[1:3]
    positions = set(range(int(gone.stem), int(following.stem)))
    gone.unlink()
    with Journal.open(tmp_path, SMALL) as journal:
        assert missing(journal.recovery.lost) == positions
        cursor = journal.read()
        assert read_all(cursor).keys() == set(range(1, LAST + 1)) - positions
        assert missing(cursor.lost) == positions


def test_a_segment_that_is_removed_under_an_open_journal_is_said_in_reading(
    original: tuple[Path, dict[int, Entry]], tmp_path: Path
) -> None:
    directory, truth = original
    for name in files(directory):
        put(tmp_path / "copy", files(directory))
        with Journal.open(tmp_path / "copy", SMALL) as journal:
            (tmp_path / "copy" / name).unlink()
            cursor = journal.read()
            found = read_all(cursor)
            assert found.keys() < truth.keys()
            assert agrees(found, truth, missing(cursor.lost))


def test_a_torn_tail_is_cut_off_and_reported_once(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    (tmp_path / FILE).unlink()  # it says that the last record was not torn when the journal was closed
    path = segments(tmp_path)[-1]
    harm(path, truncated, path.stat().st_size - 3)
    size = len(encode([entry(LAST)], 1, 1).data) - 3
    with Journal.open(tmp_path, SMALL) as journal:
        cut = f"{size} bytes of an unfinished write after position {LAST - 1} were cut off {path.name}"
        assert str(journal.recovery) == f"{LAST - 1} records, up to position {LAST - 1}\n{cut}"
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.is_clean


def test_room_that_was_not_used_is_no_loss_and_is_given_back(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    content = files(tmp_path)
    put(tmp_path, {name: data + bytes(1_000) for name, data in content.items()})
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.is_clean
        assert read_all(journal.read()).keys() == set(range(1, LAST + 1))
        assert [path.stat().st_size for path in segments(tmp_path)[:-1]] == [*map(len, content.values())][:-1]


def test_a_segment_whose_header_is_damaged_is_set_aside_and_its_positions_are_not_used_again(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    path = segments(tmp_path)[-1]
    harm(path, flipped(1), 20)
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.last >= LAST
        assert missing(journal.recovery.lost) == set(range(int(path.stem), journal.last + 1))
        assert path.with_name(path.name + ".damaged").exists()


def test_a_segment_under_the_name_of_another_is_not_believed(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    one, other = segments(tmp_path)[:2]
    overwrite(other, one.read_bytes())
    with Journal.open(tmp_path, SMALL) as journal:
        (lost,) = journal.recovery.lost
        assert lost.first == int(other.stem)
        assert lost.reason == f"the header was damaged; the file is now {other.name}.damaged"


def test_what_is_missing_is_said_again_after_more_was_appended(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    (tmp_path / FILE).unlink()
    short, *others = segments(tmp_path)
    last, size = int(others[0].stem) - 1, len(encode([entry(int(others[0].stem) - 1)], 1, 1).data)
    put(tmp_path, {short.name: short.read_bytes()[:-size], others[0].name: b""})
    for _ in range(2):
        with Journal.open(tmp_path, SMALL) as journal:
            assert missing(journal.recovery.lost) == {last}
            assert journal.append([NEW]) > last


def test_a_compacted_segment_is_never_appended_to(tmp_path: Path) -> None:
    with filled(tmp_path, LAST) as journal:
        journal.sync()
        journal.compact(lambda record: record.position % 2 or None)
    segments(tmp_path)[-1].unlink()
    with Journal.open(tmp_path, SMALL) as journal:
        journal.append([NEW])
        found = read_all(journal.read())
    with Journal.open(tmp_path, SMALL) as journal:
        assert read_all(journal.read()) == found


@pytest.mark.parametrize("version", [1, 3])
def test_another_version_is_refused(tmp_path: Path, version: int) -> None:
    filled(tmp_path, LAST).close()
    path = segments(tmp_path)[0]
    data = path.read_bytes()
    later = data[:8] + version.to_bytes(4, "little") + data[12 : LAYOUT.size]
    path.write_bytes(later + crc32(later).to_bytes(4, "little") + data[HEADER_SIZE:])
    with pytest.raises(
        InvalidJournal, match=f"is of version {version}, and .* reads version 2; ingest or export .* choose another"
    ):
        Journal.open(tmp_path, SMALL)
    path.write_bytes(data)
    Journal.open(tmp_path, SMALL).close()


def test_a_payload_that_imitates_a_record_is_never_taken_for_one(tmp_path: Path) -> None:
    """Even where the record that it is in is damaged, and the mark is that of another segment."""
    filled(tmp_path, 1).close()
    header = Header.decode(segments(tmp_path)[0].read_bytes()[:HEADER_SIZE], segments(tmp_path)[0])
    assert header is not None
    forged = encode([(66, 0, b"forged")], header.mark, 5).data
    other = tmp_path / "other"
    with Journal.open(other, SMALL) as journal:
        journal.append([(1, 0, forged), (1, 0, b"after")])
    harm(segments(other)[0], flipped(1), HEADER_SIZE + 8)
    with Journal.open(other, SMALL) as journal:
        assert read_all(journal.read()) == {2: (1, 0, b"after")}


def test_what_an_old_file_left_on_the_disk_is_not_taken_for_records(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    old = encode([entry(LAST + 1)], 12345, LAST + 1).data
    path = segments(tmp_path)[-1]
    overwrite(path, path.read_bytes() + old)
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.cut == Cut(path.name, len(old), LAST)
        assert journal.last == LAST


def test_what_a_crash_left_of_compaction_is_removed(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    unfinished = tmp_path / f"{segments(tmp_path)[0].name}.new"
    unfinished.write_bytes(b"half a segm")
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.is_clean
    assert not unfinished.exists()
