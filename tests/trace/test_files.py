"""Traces in files: what is written is read back, and a line that cannot be read is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import Case, cases
from vestnik import Event, Filter
from vestnik.errors import InvalidTrace
from vestnik.trace.files import from_lines, from_plain, to_lines, to_plain
from vestnik.trace.records import (
    Advertised,
    AnyRecord,
    Attached,
    Corrupted,
    Crashed,
    Cut,
    Detached,
    Dropped,
    Linked,
    Lost,
    Missing,
    Notified,
    Published,
    Rejected,
    Restarted,
    Resumed,
    Sent,
    Settled,
    Stalled,
    Subscribed,
    Unadvertised,
    Unsubscribed,
    Vanished,
)

HEADER = b'{"vestnik":"trace","version":1}\n'
EVENT = Event("t", {"x": [1, 2.5, {"y": None}]}, source="p", id="e", stream=("b", "p"), seq=3, priority=7)
WANTED = Filter.parse("x > 1 OR s LIKE 'é%'")
RECORDS: list[AnyRecord] = [
    Subscribed(0.0, "c", "s", WANTED),
    Unsubscribed(1.0, "c", "s"),
    Advertised(1.0, "p", "a", WANTED),
    Unadvertised(1.5, "p", "a"),
    Published(2.0, "p", EVENT),
    Rejected(2.0, "p", EVENT, "not advertised"),
    Notified(2.5, "c", EVENT, (("s", 1), ("t", 4))),
    Lost(2.5, "c", "s", 2, 3),
    Missing(2.5, "c", "s"),
    Settled(3.0),
    Attached(3.0, "c", "b"),
    Detached(3.0, "c", "b"),
    Stalled(3.0, "c", "b"),
    Resumed(3.0, "c", "b"),
    Sent(3.0, "b", "d", "Routed", (("p", "e"),)),
    Dropped(3.0, "b", EVENT, "expired"),
    Vanished(3.0, "b", "d", "AdminS"),
    Linked(3.0, "b", "d"),
    Cut(3.0, "b", "d"),
    Crashed(3.0, "b"),
    Restarted(3.0, "b"),
    Corrupted(3.0, "b", "a table"),
]


def test_a_trace_is_read_back() -> None:
    lines = list(to_lines(RECORDS))
    assert lines[0] == HEADER and all(line.endswith(b"\n") for line in lines)
    assert list(from_lines(lines)) == RECORDS
    assert [from_plain(to_plain(record)) for record in RECORDS] == RECORDS


def test_what_is_written_alike_is_read_once() -> None:
    others = [EVENT.replace(data={"x": value}) for value in (1, 1.0, True)]
    events = [EVENT, EVENT, *others]
    found = [record.event for record in from_lines(to_lines(Published(2.0, "p", event) for event in events))]  # type: ignore[union-attr]
    assert found == events and found[0] is found[1] and len({id(event) for event in found}) == 4


def test_blank_lines_are_passed_over() -> None:
    assert list(from_lines([b"\n", HEADER, b" \n", *list(to_lines(RECORDS))[1:], b"\n"])) == RECORDS


@given(cases(trees=2, events=2, added=False), st.floats(allow_nan=False, allow_infinity=False))
def test_any_filter_and_event_is_read_back(case: Case, at: float) -> None:
    records: list[AnyRecord] = [Subscribed(at, "c", "s", wanted) for wanted in case.filters]
    records += [Published(at, "p", event) for event in case.events]
    assert list(from_lines(to_lines(records))) == records


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "truncated"),
        (b"3", "Expected `object`"),
        (b'{"op": "Nonsense", "at": 1}', "Nonsense"),
        (b'{"op": "Settled", "at": null}', "Expected `float`"),
        (b'{"op": "Settled", "at": 1, "at": 2}', "there twice"),
        (b'{"op": "Subscribed", "at": 1, "client": "c", "name": "s", "filter": "a ="}', "column 4"),
        (b'{"op": "Subscribed", "at": 1, "client": "c", "name": "s", "filter": 3}', "a filter is text"),
        (b'{"op": "Published", "at": 1, "client": "c", "event": {"type": ""}}', "must not be empty"),
        (
            b'{"op": "Published", "at": 1, "client": "c", "event": {"type": "t", "data": {"x": 1%s}}}' % (b"0" * 19),
            "64",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: bytes, reason: str) -> None:
    with pytest.raises(InvalidTrace, match=r"t\.jsonl:3: ") as caught:
        list(from_lines([HEADER, b'{"op":"Settled","at":1}', line], "t.jsonl"))
    assert caught.value.line == 3 and reason in caught.value.reason


@pytest.mark.parametrize(
    "header", [b"", b"{}", b"[]", b"x", b'{"vestnik": "trace"}', b'{"vestnik":"trace","version":2}']
)
def test_a_trace_has_a_header(header: bytes) -> None:
    with pytest.raises(InvalidTrace, match=r"^trace:1: "):
        list(from_lines([header]))
