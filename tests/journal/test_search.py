"""Searching finds every record in which a pattern matches, and notices damage as reading does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.journals import SMALL, contents, entries, expected, filled, segments
from vestnik.journal import Journal, Settings, scan, search
from vestnik.journal.index import index_of, read_index
from vestnik.journal.records import MARK, encode

LAST = 60
SEVEN = re.compile(rb"record \d*7 ")


def found(journal: Journal, *patterns: re.Pattern[bytes], after: int = 0, until: int | None = None) -> list[int]:
    return [record.position for record in journal.read(after, until, patterns)]


def of_closed(journal: Journal, positions: list[int]) -> list[int]:
    """Return those in segments that are searched: the one that grows is read."""
    return [position for position in positions if position < first_growing(journal)]


def first_growing(journal: Journal) -> int:
    return journal._shelf.growing.first


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    filled(tmp_path, LAST).close()
    return Journal.open(tmp_path, SMALL)


def test_only_records_in_which_a_pattern_matches_come_of_closed_segments(journal: Journal) -> None:
    positions = found(journal, SEVEN)
    assert of_closed(journal, positions) == [n for n in (7, 17, 27, 37, 47, 57) if n < first_growing(journal)]
    assert set(range(first_growing(journal), LAST + 1)) <= set(positions)
    records = contents(journal.read(0, None, [SEVEN]))
    assert records == {number: expected(1, LAST)[number] for number in positions}


def test_positions_bound_a_search(journal: Journal) -> None:
    assert of_closed(journal, found(journal, SEVEN, after=7, until=36)) == [17, 27]
    assert of_closed(journal, found(journal, SEVEN, after=6, until=37)) == [7, 17, 27, 37]


def test_several_patterns_find_what_any_of_them_matches_once_and_in_order(journal: Journal) -> None:
    patterns = [SEVEN, re.compile(rb"record 2\d "), re.compile(rb"nothing")]
    assert of_closed(journal, found(journal, *patterns)) == [7, 17, *range(20, 30), 37, 47]


def test_steps_say_how_far_a_search_has_come(journal: Journal) -> None:
    steps = list(journal.read(0, None, [re.compile(rb"nothing")]).steps())
    closed = [step for step in steps if step.last < first_growing(journal)]
    assert [step.last for step in steps] == sorted({step.last for step in steps}) and steps[-1].last == LAST
    assert all(not step.records and step.size > 0 for step in closed) and len(closed) > 1


@pytest.mark.parametrize("stop", range(1, 12))
def test_a_segment_that_is_closed_while_it_is_read_is_read_on(tmp_path: Path, stop: int) -> None:
    with Journal.open(tmp_path, SMALL) as journal:
        cursor = journal.read(0, None, [SEVEN])
        found = []
        for number in range(1, LAST + 1):
            journal.append(entries(number, number))
            journal.sync()
            if number % stop == 0:
                found += [record.position for record in cursor]
        found += [record.position for record in cursor]
        assert set(range(7, LAST, 10)) <= set(found) and found == sorted(set(found)) and cursor.lost == []


def test_compacted_segments_are_searched(tmp_path: Path) -> None:
    with filled(tmp_path, LAST) as journal:
        journal.sync()
        journal.compact(lambda record: record.position % 10 or None)
        left = [record.position for record in journal.read()]
        searched = found(journal, SEVEN)
        assert set(searched) <= set(left) and [n for n in left if n % 10 == 7] == [n for n in searched if n % 10 == 7]


@pytest.mark.parametrize("end", [False, True])
def test_damage_is_told_by_a_search_as_by_reading(tmp_path: Path, end: bool) -> None:
    filled(tmp_path, LAST).close()
    path = segments(tmp_path)[1]
    with Journal.open(tmp_path, SMALL) as journal:
        data = bytearray(path.read_bytes())
        if end:
            del data[-5:]
        else:
            data[len(data) // 2] ^= 1
        path.write_bytes(data)
        read, searched = journal.read(), journal.read(0, None, [re.compile(rb"nothing")])
        list(read), list(searched)
        assert searched.lost == read.lost != []


def test_a_damaged_index_is_rebuilt_with_its_checksums(tmp_path: Path) -> None:
    filled(tmp_path, LAST).close()
    path = segments(tmp_path)[1]
    before = read_index(path)
    index_of(path).write_bytes(b"damaged")
    with Journal.open(tmp_path, SMALL) as journal:
        assert journal.recovery.rebuilt == (index_of(path).name,)
        assert of_closed(journal, found(journal, SEVEN))
    after = read_index(path)
    assert before is not None and after is not None and after.segment.checksums == before.segment.checksums != []


def test_large_segments_are_searched_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.journal.segments.STRIDE", 300)
    monkeypatch.setattr(scan, "CHUNK", 300)
    monkeypatch.setattr(search, "GROUP", 700)
    settings = Settings(segment_size=3_000, retain_size=100_000, fsync=False)
    with Journal.open(tmp_path, settings) as journal:
        for first in range(1, 400, 5):
            journal.append(entries(first, first + 4))
        journal.sync()
        assert len(journal._shelf.closed[0].checksums) > 4
        searched = found(journal, SEVEN)
        assert of_closed(journal, searched) == of_closed(journal, list(range(7, 400, 10)))


def test_a_match_that_spans_records_hides_no_other() -> None:
    payloads = [b"x", b"x" + bytes(40), b"y"]
    encoded = encode([(1, 1, one) for one in payloads], 0x01020304, 1).data
    records = search.find(encoded, 0x01020304, [re.compile(rb"x.{40}", re.DOTALL)])
    assert records is not None and 2 in [record.position for record in records]


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=20), st.data())
def test_every_record_with_a_match_is_found(payloads: list[bytes], data: st.DataObject) -> None:
    mark = 0x01020304
    tricky = st.sampled_from([b"", MARK.pack(mark), MARK.pack(mark)[:2], MARK.pack(mark) + b"\x01", b"xyx"])
    payloads = [data.draw(tricky) + one + data.draw(tricky) for one in payloads]
    encoded = encode([(1, 1, one) for one in payloads], mark, 1).data
    expressions = [rb"x", rb"xy", rb"yx", rb"[\x00-\x04]{2}", rb"x.{30}", rb""]
    pattern = re.compile(data.draw(st.sampled_from(expressions)), re.DOTALL)
    records = search.find(encoded, mark, [pattern])
    wanted = {number for number, one in enumerate(payloads, 1) if pattern.search(one)}
    assert records is not None and wanted <= {record.position for record in records}
    assert all(record.payload == payloads[record.position - 1] for record in records)
