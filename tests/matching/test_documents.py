"""JSON documents, of which only the paths in use are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vestnik import Filter, InvalidEvent
from vestnik.matching import compile_filters
from vestnik.matching.batch import documents

COMPILED = compile_filters(
    {"a": Filter.parse("n.v > 5"), "b": Filter.parse("NOT n.v > 5 AND ANY l = 1")}, layout="flat"
)


def test_text_in_pieces_is_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps({"n": {"v": i % 10}, "l": [i % 2]}) for i in range(100)]
    want = [int(i % 10 > 5) + int(i % 10 <= 5 and i % 2 == 1) for i in range(100)]
    for size in (1, 50, 1000, 1 << 22):
        monkeypatch.setattr(documents, "BYTES_AT_ONCE", size)
        monkeypatch.setattr(documents, "LINES_AT_ONCE", max(1, size // 100))
        for text in ("\n".join(lines), "\n".join(lines).encode() + b"\n", lines, [line + "\n" for line in lines]):
            assert COMPILED.count_json(text).tolist() == want
            pairs = COMPILED.match_json(text)
            assert pairs.count == 100 and [len(found) for found in pairs.by_event()] == want


def test_blank_lines_are_passed_over_and_nothing_is_nothing() -> None:
    assert COMPILED.count_json('\n{"n": {"v": 6}}\n\n  \n{}\n').tolist() == [1, 0]
    nothings: list[Any] = ["", b"", [], "\n\n"]
    for nothing in nothings:
        assert COMPILED.count_json(nothing).tolist() == [] and len(COMPILED.match_json(nothing)) == 0


@pytest.mark.parametrize("value", [None, 7, "text", True, [1], {"v": 6}, {"v": "6"}, {"v": None}, {}])
def test_what_is_no_object_has_nothing_below_it(value: Any) -> None:
    assert COMPILED.count_json(json.dumps({"n": value})).tolist() == [int(value == {"v": 6})]


@pytest.mark.parametrize("bad", ["{", "[]", "5", '{"n": }', b'{"n": "\xff"}', "nothing"])
def test_a_line_that_cannot_be_read_is_named(bad: str | bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BYTES_AT_ONCE", 10)
    line = bad.encode() if isinstance(bad, str) else bad
    text = b'{"n": {"v": 6}}\n\n{"n": {"v": 6}}\n' + line + b"\n{}"
    with pytest.raises(InvalidEvent, match="line 4 "):
        COMPILED.match_json(text)
