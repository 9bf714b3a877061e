"""CloudEvents both ways, and everything that JSON text from outside can do wrong."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_events import events, fewer
from vestnik.errors import InvalidEvent
from vestnik.model.cloudevents import from_cloudevent, to_cloudevent
from vestnik.model.events import FIELDS, Event
from vestnik.model.strict_json import check_names, read_json
from vestnik.model.times import format_rfc3339

FULL = Event(
    "market.quote",
    {"symbol": "ACME", "price": 10.0, "odd: name": ["a:b", {"deep": None}]},
    source="nyse",
    id="1",
    subject="/exchange",
    time="2024-05-01T12:30:00.000001Z",
    priority=9,
    not_before="2024-05-01T12:31:00Z",
    expires="2024-05-01T12:32:00Z",
    causes=[("nyse", "0"), ("lse", 'a"b')],
    extensions={"traceparent": "00-ab", "sampled": True, "hops": 3},
    stream=("b1", "nyse"),
    seq=42,
)


@fewer
@given(events())
def test_json_and_back_is_the_identity(event: Event) -> None:
    text = event.to_json()
    for twin in (Event.from_json(text), Event.from_json(text.encode()), from_cloudevent(to_cloudevent(event))):
        assert twin == event and repr(twin) == repr(event)


@fewer
@given(events())
def test_any_json_encoder_will_do(event: Event) -> None:
    assert Event.from_json(json.dumps(to_cloudevent(event), indent=1)) == event


def test_the_attributes_of_a_cloudevent() -> None:
    assert to_cloudevent(FULL) == {
        "specversion": "1.0",
        "id": "1",
        "source": "nyse",
        "type": "market.quote",
        "subject": "/exchange",
        "time": "2024-05-01T12:30:00.000001Z",
        "datacontenttype": "application/json",
        "sequence": "42",
        "priority": 9,
        "notbefore": "2024-05-01T12:31:00Z",
        "expires": "2024-05-01T12:32:00Z",
        "stream": "b1",
        "causes": '[["nyse","0"],["lse","a\\"b"]]',
        "traceparent": "00-ab",
        "sampled": True,
        "hops": 3,
        "data": FULL.data,
    }


def test_the_short_form_needs_only_a_type() -> None:
    event = Event.from_json('{"type": "a", "data": {"x": 1}}')
    assert event == Event("a", {"x": 1}, id=event.id)


def test_the_short_form_has_the_names_of_the_envelope() -> None:
    short = {name: getattr(FULL, name) for name in FIELDS}
    short |= {name: format_rfc3339(short[name]) for name in ("time", "not_before", "expires")}
    assert Event.from_json(json.dumps(short)) == FULL


@pytest.mark.parametrize(
    "name", ["price", "sequence", "notbefore", "trace", "datacontenttype", "data_base64", "", "Type", "a\nb"]
)
@pytest.mark.parametrize("value", [5, None])
def test_the_short_form_knows_no_other_names(name: str, value: object) -> None:
    with pytest.raises(InvalidEvent, match="an unknown attribute") as caught:
        Event.from_json(json.dumps({"type": "a", name: value}))
    assert caught.value.path == name


def test_attributes_that_are_null_are_absent() -> None:
    nulls = {"subject": None, "priority": None, "time": None}
    assert Event.from_json(json.dumps({"type": "a", "id": "1", "seq": None, **nulls})) == Event("a", id="1")
    assert Event.from_json(json.dumps({**REQUIRED, "trace": None, **nulls})) == Event("a", source="s", id="1")


@pytest.mark.parametrize("kind", ["application/json", "Text/JSON; charset=utf-8", "application/vnd.x+json"])
def test_json_content(kind: str) -> None:
    assert Event.from_json(json.dumps({**REQUIRED, "datacontenttype": kind, "data": {"x": 1}})).data == {"x": 1}


REQUIRED = {"specversion": "1.0", "id": "1", "source": "s", "type": "a"}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({}, "type"),
        ({"type": None}, "type"),
        ({"type": ""}, "type"),
        ({"type": "a", "data": None}, "data"),
        ({"type": "a", "seq": "1"}, "seq"),
        ({"type": "a", "not_before": 1}, "not_before"),
        ({"type": "a", "time": 1714566600}, "time"),
        ({"type": "a", "stream": "b"}, "stream"),
        ({"type": "a", "stream": ["b", "elsewhere"]}, "stream"),
        ({"type": "a", "causes": "[]"}, "causes"),
        ({"type": "a", "extensions": {"Trace": "t"}}, "extensions"),
        ({**REQUIRED, "specversion": None}, "specversion"),
        ({**REQUIRED, "id": None}, "id"),
        ({**REQUIRED, "source": None}, "source"),
        ({**REQUIRED, "type": None}, "type"),
        ({**REQUIRED, "id": ""}, "id"),
        ({**REQUIRED, "specversion": "0.3"}, "specversion"),
        ({**REQUIRED, "specversion": 1.0}, "specversion"),
        ({**REQUIRED, "data": None}, "data"),
        ({**REQUIRED, "data": [1]}, "data"),
        ({**REQUIRED, "data": "text"}, "data"),
        ({**REQUIRED, "data": {"a": [{"b": 2**63}]}}, "data.a[0].b"),
        ({**REQUIRED, "data_base64": "AA=="}, "data_base64"),
        ({**REQUIRED, "datacontenttype": "text/plain"}, "datacontenttype"),
        ({**REQUIRED, "datacontenttype": "application/jsonp"}, "datacontenttype"),
        ({**REQUIRED, "datacontenttype": ["application/json"]}, "datacontenttype"),
        ({**REQUIRED, "time": 1}, "time"),
        ({**REQUIRED, "notbefore": "soon"}, "notbefore"),
        ({**REQUIRED, "expires": True}, "expires"),
        ({**REQUIRED, "priority": "4"}, "priority"),
        ({**REQUIRED, "priority": 4.0}, "priority"),
        ({**REQUIRED, "sequence": 1}, "sequence"),
        ({**REQUIRED, "sequence": "0"}, "sequence"),
        ({**REQUIRED, "sequence": "01"}, "sequence"),
        ({**REQUIRED, "sequence": "9223372036854775808"}, "seq"),
        ({**REQUIRED, "stream": ["b", "s"]}, "stream"),
        ({**REQUIRED, "causes": [["s", "1"]]}, "causes"),
        ({**REQUIRED, "causes": "{}"}, "causes"),
        ({**REQUIRED, "causes": '[["s"]]'}, "causes[0]"),
        ({**REQUIRED, "causes": '[["s",1]]'}, "causes[0]"),
        ({**REQUIRED, "not_before": "2024-05-01T12:31:00Z"}, "extensions"),
        ({**REQUIRED, "Trace": "t"}, "extensions"),
        ({**REQUIRED, "trace": 1.5}, "extensions.trace"),
        ({**REQUIRED, "trace": {}}, "extensions.trace"),
        ({**REQUIRED, "trace": []}, "extensions.trace"),
    ],
)
def test_documents_that_are_no_event(document: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        Event.from_json(json.dumps(document))
    assert caught.value.path == path and caught.value.reason


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"Type": "a"}, "type: is required; Type is another name"),
        ({**REQUIRED, "type": None, "TYPE": "a"}, "type: is required; TYPE is another name"),
        ({"type": "a", "Source": "s"}, "Source: an unknown attribute; it is written source"),
        ({"type": "a", "price": 1}, "price: an unknown attribute; what the event is about goes under data"),
    ],
)
def test_names_in_the_wrong_case_are_noticed(document: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        Event.from_dict(document)
    assert str(caught.value) == said


def test_decoded_json_is_read_as_its_text() -> None:
    for document in ({"type": "a", "id": "1", "time": "2024-05-01T12:31:00Z", "data": {"x": [1]}}, REQUIRED):
        assert Event.from_dict(document) == Event.from_json(json.dumps(document))


def in_data(value: bytes) -> bytes:
    return b'{"type":"a","data":{"x":' + value + b"}}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\xef\xbb\xbf" + in_data(b"1"), "byte order mark; remove it"),
        (in_data(b'"\xff"'), "not UTF-8: invalid start byte (byte 25)"),
        (in_data(b"1").decode().encode("utf-16"), "not UTF-8"),
        (in_data(b'"\xed\xa0\x80"'), "not UTF-8"),
        (in_data(b'"\\ud800"'), "surrogate"),
        (in_data(b'"\\ud800\\u0041"'), "surrogate"),
        (in_data(b'"\\udc00"'), "surrogate"),
        (in_data(b"NaN"), "NaN and infinities are not numbers"),
        (in_data(b"Infinity"), "NaN and infinities are not numbers"),
        (in_data(b"-Infinity"), "NaN and infinities are not numbers"),
        (in_data(b'"NaN", Infinite'), "malformed"),
        (in_data(b"1e999"), "range"),
        (in_data(b"-1e999"), "range"),
        (in_data(b"1" + b"0" * 400 + b".0"), "range"),
        (in_data(b"9223372036854775808"), "64 bits"),
        (in_data(b"-9223372036854775809"), "64 bits"),
        (in_data(b"18446744073709551616"), "64 bits"),
        (in_data(b"1" * 30), "64 bits"),
        (in_data(b"1" * 5000), "range"),
        (in_data(b"01"), "no JSON"),
        (in_data(b"'a'"), "no JSON"),
        (in_data(b'"a\nb"'), "no JSON"),
        (in_data(b"[1,]"), "no JSON"),
        (in_data(b"1") + b"x", "trailing"),
        (in_data(b"1") + b"\x00", "trailing"),
        (in_data(b"1")[:-1], "no JSON"),
        (in_data(b"[" * 40 + b"]" * 40), "deeper than 32"),
        (in_data(b"[" * 100_000), "deep"),
        (in_data(b'{"a":' * 100_000), "deep"),
        (in_data(b"[" * 100_000 + b"]" * 100_000), "deep"),
        (b"[]", "JSON object"),
        (b"null", "JSON object"),
        (b'"a"', "JSON object"),
        (b'{"type":"a","type":"b"}', "'type' is there twice"),
        (in_data(b'1,"x":1'), "'x' is there twice"),
        (in_data(b'[{"b":{"c":1,"c":2}}]'), "'c' is there twice"),
        (in_data(b'1,"\\u0078":1'), "'x' is there twice"),
        (in_data(b'1,"y":"\\u003a","x":1'), "'x' is there twice"),
        (in_data(b'1,"x":18446744073709551616'), "'x' is there twice"),
    ],
)
def test_text_that_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        Event.from_json(text)
    assert reason in str(caught.value)


def test_brackets_in_strings_do_not_nest() -> None:
    text = in_data(b'["' + b"[{" * 1000 + b'","\\\\","\\"' + b"[" * 1000 + b'"]')
    assert len(Event.from_json(text).data["x"]) == 3


def test_wide_text_is_not_deep() -> None:
    assert len(Event.from_json(in_data(b"[" + b",".join([b"[{}]"] * 1000) + b"]")).data["x"]) == 1000


@pytest.mark.parametrize("text", [b"[" * 1_000_000, b'{"a":' * 100_000, b'["]"' + b",[" * 100_000])
def test_a_raised_recursion_limit_is_no_danger(text: bytes) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        with pytest.raises(InvalidEvent, match="too deep"):
            Event.from_json(text)
    finally:
        sys.setrecursionlimit(limit)


def test_a_str_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(InvalidEvent, match="surrogate"):
        Event.from_json('{"type":"a\ud800"}')


@pytest.mark.parametrize("text", [None, 1, {"type": "a"}, bytearray(b"{}")])
def test_what_is_no_text(text: Any) -> None:
    with pytest.raises(InvalidEvent, match="str or bytes"):
        Event.from_json(text)


@pytest.mark.parametrize("mapping", [None, 1, [], "type"])
def test_what_is_no_mapping(mapping: Any) -> None:
    with pytest.raises(InvalidEvent, match="JSON object"):
        from_cloudevent(mapping)


def test_numbers_keep_their_kind_and_value() -> None:
    data = Event.from_json(in_data(b"[9223372036854775807,-9223372036854775808,9007199254740993,1.0,-0.0,1e16]")).data
    assert repr(data["x"]) == "[9223372036854775807, -9223372036854775808, 9007199254740993, 1.0, -0.0, 1e+16]"


json_names = st.sampled_from(['"a"', '"b"', '"\\u0061"', '":"', '"\\u003a"', '"\\u003A"', '"a:b"', '""', '"\\\\u003a"'])
json_scalars = st.sampled_from(["1", "null", "2e3", "18446744073709551616"]) | json_names
json_texts = st.recursive(
    json_scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(st.tuples(json_names, inner), max_size=4).map(
            lambda pairs: "{" + ",".join(f"{name} : {value}" for name, value in pairs) + "}"
        ),
    ),
    max_leaves=5,
)


def repeats_a_name(check: Any, data: bytes) -> bool:
    try:
        check(data)
    except InvalidEvent as error:
        return "twice" in error.reason
    return False


@given(json_texts)
def test_counting_colons_finds_what_comparing_names_finds(text: str) -> None:
    assert repeats_a_name(read_json, text.encode()) == repeats_a_name(check_names, text.encode())


DOCUMENTS = [
    FULL.to_json().encode(),
    in_data(b'[1,-2.5e3,"\\u00e9\xc3\xa9",true,null,{"y":{}}]'),
    b'{"type":"a","time":"2024-05-01T12:30:00Z","sequence":"1","causes":"[[\\"s\\",\\"1\\"]]"}',
    b'{"specversion":"1.0","id":"1","source":"s","type":"a.b","datacontenttype":"application/json","data":{}}',
]
PIECES = [b'"', b"\\", b":", b",", b"{", b"}", b"[", b"]", b"e9", b"9" * 20, b"-", b"\xff", b"\\ud800", b"null", b""]
changes = st.tuples(st.integers(0, 500), st.integers(0, 3), st.sampled_from(PIECES) | st.binary(max_size=3))


def is_event_or_refused(text: str | bytes) -> bool:
    try:
        event = Event.from_json(text)
    except InvalidEvent as error:
        return bool(error.reason)
    return Event.from_json(event.to_json()) == event


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_noise_is_an_event_or_refused(text: str | bytes) -> None:
    assert is_event_or_refused(text)


@given(st.sampled_from(DOCUMENTS), st.lists(changes, min_size=1, max_size=3))
def test_damaged_documents_are_events_or_refused(text: bytes, damage: list[tuple[int, int, bytes]]) -> None:
    for position, length, piece in damage:
        at = position % len(text) if text else 0
        text = text[:at] + piece + text[at + length :]
    assert is_event_or_refused(text)
