"""JSON documents, of which only the paths in use are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vestnik import Event, Filter, InvalidEvent
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
            assert pairs.event_count == 100 and [len(found) for found in pairs.by_event()] == want


def test_blank_lines_are_passed_over_and_nothing_is_nothing() -> None:
    assert COMPILED.count_json('\n{"n": {"v": 6}}\n\n  \n{}\n').tolist() == [1, 0]
    nothings: list[Any] = ["", b"", [], "\n\n"]
    for nothing in nothings:
        assert COMPILED.count_json(nothing).tolist() == [] and len(COMPILED.match_json(nothing)) == 0


def test_documents_that_are_no_events_are_noticed() -> None:
    events = compile_filters({"f": Filter.parse("n = 1")})
    with pytest.raises(InvalidEvent, match=r"^line 2 has neither type nor data; .*layout='flat'"):
        events.count_json('\n{"n": 1}\n')
    assert events.count_json('{"type": "t"}\n{"data": {"n": 1}}').tolist() == [0, 1]


@pytest.mark.parametrize("value", [None, 7, "text", True, [1], {"v": 6}, {"v": "6"}, {"v": None}, {}])
def test_what_is_no_object_has_nothing_below_it(value: Any) -> None:
    assert COMPILED.count_json(json.dumps({"n": value})).tolist() == [int(value == {"v": 6})]


@pytest.mark.parametrize("line", ["{}{}", "{} {}", '{"type": "t"}{"type": "t"}'])
def test_two_on_a_line_are_none(line: str) -> None:
    good = '{"type": "t", "data": {}}'
    with pytest.raises(InvalidEvent, match="line 2 is no event in JSON"):
        COMPILED.match_json(f"{good}\n{line}\n\n{good}\n")


@pytest.mark.parametrize("bad", ["{", "[]", "5", '{"n": }', b'{"n": "\xff"}', "nothing", '{"n": ' + "[" * 5000])
def test_a_line_that_cannot_be_read_is_named(bad: str | bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BYTES_AT_ONCE", 10)
    line = bad.encode() if isinstance(bad, str) else bad
    text = b'{"n": {"v": 6}}\n\n{"n": {"v": 6}}\n' + line + b"\n{}"
    with pytest.raises(InvalidEvent, match="line 4 "):
        COMPILED.match_json(text)


ENVELOPE = [
    "type = 't'",
    "source = 'local'",
    "source != 's'",
    "EXISTS subject",
    "subject = '/s'",
    "time = 0",
    "NOT EXISTS time",
    "not_before = 6",
    "NOT EXISTS not_before AND NOT expires > 5",
    "priority = 4",
    "priority < 4",
    "seq = 8",
    "NOT EXISTS seq",
    "x = 1",
]


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"source": "s", "subject": "/s", "time": "1970-01-01T00:00:00Z", "priority": 2},
        dict.fromkeys(["source", "subject", "time", "priority", "not_before", "expires", "seq", "stream"]),
        {"source": "s", "seq": 8, "not_before": "1970-01-01T00:00:00.0000069Z"},
        {"specversion": "1.0", "id": "i", "source": "s", "sequence": "8", "notbefore": "1970-01-01T00:00:00.0000069Z"},
        {"specversion": "1.0", "id": "i", "source": "s", "seq": 8, "sequence": None, "notbefore": None},
    ],
)
def test_the_envelope_is_what_the_door_makes_of_it(attributes: dict[str, Any]) -> None:
    line = json.dumps({"type": "t", "data": {"x": 1}, **attributes})
    filters = {text: Filter.parse(text) for text in ENVELOPE}
    compiled = compile_filters(filters)
    event = Event.from_json(line)
    want = {text for text, wanted in filters.items() if wanted.matches(event)}
    assert set(compiled.ids_by_event(compiled.match_json(line))[0]) == want


def test_a_flat_document_has_the_default_priority_and_no_envelope_else() -> None:
    texts = ["priority = 4", "source = 'local'", "type = 't'"]
    compiled = compile_filters({text: Filter.parse(text) for text in texts}, layout="flat")
    line = '{"priority": 5, "source": "local", "type": "t"}'
    assert compiled.ids_by_event(compiled.match_json(line)) == [["priority = 4"]]


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        ({"time": "yesterday"}, "time"),
        ({"time": 5}, "time"),
        ({"expires": []}, "expires"),
        ({"not_before": "2024-13-01T00:00:00Z"}, "not_before"),
        ({"specversion": "1.0", "notbefore": "2024-13-01T00:00:00Z"}, "not_before"),
        ({"specversion": "1.0", "sequence": "eight"}, "seq"),
        ({"seq": 8.5}, "seq"),
        ({"seq": 2**64}, "seq"),
        ({"specversion": "1.0", "sequence": "9" * 30}, "seq"),
        ({"data": {"x": 2**64}}, "data.x"),
        ({"data": {"l": [1, 2**64]}}, ""),
        ({"data": {"l": "\ud800"}}, ""),
    ],
)
def test_a_value_that_no_event_can_hold_is_refused_with_its_line(
    bad: dict[str, Any], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "BYTES_AT_ONCE", 10)
    text = "time > 0 OR not_before > 0 OR expires > 0 OR seq > 1 OR x = 1 OR ANY l = 1"
    compiled = compile_filters({"f": Filter.parse(text)})
    lines = ['{"type": "t"}', "", '{"type": "t"}', json.dumps({"type": "t", **bad}, ensure_ascii=False), "{}"]
    for given in (lines, "\n".join(lines)):
        with pytest.raises(InvalidEvent, match=r"\bline 4\b") as caught:
            compiled.match_json(given)
        assert caught.value.path == path
