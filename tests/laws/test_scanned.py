"""Values that are found in JSON text are those that a decoder finds, and no text is read that a decoder refuses."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vestnik import Filter, InvalidEvent
from vestnik.matching.batch.columns import Columns, Strings
from vestnik.matching.batch.documents import DocumentReader
from vestnik.matching.batch.filing import lines_of
from vestnik.matching.batch.scanned import Scanner
from vestnik.model.values import MISSING

NAMES = ["a", "b", "ab", "é"]
PATHS = [("data", *rest) for rest in (["a"], ["b"], ["a", "b"], ["b", "a"], ["b", "a", "ab"], ["ab"], ["é", "a"])]
WANTED = "> 1.5 < -3 = 0.1 >= 1e300 = 9007199254740993 >= 'b' = 'é' < 'a%' = '\n'".split(" ")
TESTS = [f"{operator} {value}" for operator, value in zip(WANTED[::2], WANTED[1::2], strict=True)]
LINES = {
    path: lines_of(box for test in TESTS for box in Filter.parse(f"{'.'.join(path[1:])} {test}").region.boxes)[1][0]
    for path in PATHS
}

numbers = (
    st.integers()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, -0.0, 0.1, 1.5, 2**53 + 1, 2**63 - 1, 2**63, 10**18, 10**17 + 1, 5e-324, 1.7e308, 1e22])
)
texts = st.text(max_size=4) | st.sampled_from(["", "b", "é", "\n", '"', "\\", "😀", "\x7f", "{", "},"])
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from([*NAMES, "other", "x\ty"]), values, max_size=4)
written = st.builds(
    lambda found, indent, ascii: json.dumps(found, indent=indent, ensure_ascii=ascii),
    objects,
    st.sampled_from([None, 0, 2]),
    st.booleans(),
)


def read_both(rows: list[bytes]) -> tuple[Columns | None, Columns | None]:
    column = pa.array(rows, pa.binary())
    return Scanner(PATHS).read(column, str), DocumentReader(PATHS, "flat").read_rows([*map(one_line, rows)], str)


def one_line(row: bytes) -> bytes:
    """Line breaks of JSON are in no string."""
    return row.strip(b" \t\r\n").replace(b"\n", b" ")


def texts_of(found: Strings) -> list[bytes]:
    ends = found.offsets.tolist()
    each = [found.text[a:b].tobytes() for a, b in pairwise(ends)]
    return [each[code] for code in found.codes.tolist()]


def asked(columns: Columns, first: int, last: int) -> dict[str, Any]:
    """All that can be asked of the rows from `first` to before `last`; what no event can hold as an error."""
    found: dict[str, Any] = {}
    for path in PATHS:
        try:
            found[f"ranks {path}"] = columns.ranks(path, LINES[path], first, last).tolist()
        except InvalidEvent as error:
            found[f"ranks {path}"] = str(error)
        found[f"strings {path}"] = texts_of(columns.strings(path, first, last))
        owners, elements = columns.elements(path, first, last)
        found[f"elements {path}"] = owners.tolist(), [repr(elements.value((), n)) for n in range(len(elements))]
        found[f"values {path}"] = [shown(columns.value(path, row)) for row in range(first, last)]
    return found


def shown(value: Any) -> str:
    return "" if value is MISSING else "0" if value == 0 and not isinstance(value, bool) else repr(value)


def agree(rows: list[bytes]) -> None:
    scanned, decoded = read_both(rows)
    if scanned is not None:
        assert decoded is not None, rows
        for first, last in ((0, len(rows)), (1, len(rows)), (0, 0)):
            assert asked(scanned, first, max(first, last)) == asked(decoded, first, max(first, last))


@given(st.lists(written, min_size=1, max_size=4))
def test_what_is_found_is_what_a_decoder_finds(lines: list[str]) -> None:
    agree([line.encode() for line in lines])


@settings(max_examples=settings().max_examples // 10)
@given(st.lists(objects, min_size=1, max_size=3))
def test_what_brokers_write_is_read(found: list[dict[str, Any]]) -> None:
    rows = [json.dumps(one, ensure_ascii=False).encode() for one in found if "x\ty" not in one]
    assert not rows or Scanner(PATHS).read(pa.array(rows, pa.binary()), str) is not None


@given(written, st.data())
@example('{"a": "\\ud83d\\ude00", "b": "\\ud83d"}', None)
@example('{"a": 1, "a": {"b": 2}, "a": {}}', None)
@example('{"b": {"a": {"ab": 1}}, "b": {"a": {}}, "a": 1e400}', None)
@example('{"a": 1' + "0" * 400 + "}", None)
@example('{"ab": ' + "[" * 150 + "]" * 150 + "}", None)
def test_what_a_decoder_refuses_is_not_read(line: str, data: Any) -> None:
    row = bytearray(line.encode())
    for _ in range(data.draw(st.integers(0, 3)) if data else 0):
        at = data.draw(st.integers(0, len(row)))
        row[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\u00e9", b"\\ud800", b"0", b"-"])
            | st.sampled_from([b"1.", b"e5", b"E+999", b"\xff", b"\xc3\xa9", b"\x01", b" ", b"true", b"nul", b'"a":1,'])
        )
    agree([b'{"a": 1}', bytes(row)])


def test_a_part_of_a_column_is_read_as_what_it_is() -> None:
    column = pa.array(['{"a": "x"}', '{"a": 2}', '{"a": "y"}', "nothing"])
    found = Scanner(PATHS).read(column.slice(1, 2), str)
    assert found is not None and [found.value(("data", "a"), row) for row in (0, 1)] == [2, "y"]
    assert Scanner(PATHS).read(column, str) is None
    assert len(Scanner(PATHS).read(column.slice(0, 0), str) or ()) == 0
