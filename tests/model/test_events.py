"""Events: what they are, what they refuse, and that nothing can change them."""

from __future__ import annotations

import ast
import copy
import enum
import inspect
import json
import pickle
import subprocess
import sys
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_events import events, fewer, hostile_data, maps, nested
from vestnik.errors import InvalidEvent
from vestnik.model.events import FIELDS, Event
from vestnik.model.frozen import MAX_DEPTH, MAX_INT, FrozenDict, FrozenList
from vestnik.model.spaces import ENVELOPE_PATHS


class Ward(enum.StrEnum):
    A = "a"


class Level(enum.IntEnum):
    HIGH = 3


class Ratio(float):
    pass


def test_an_event_with_nothing_but_a_type() -> None:
    event = Event("market.quote")
    assert (event.type, event.data, event.source, event.priority) == ("market.quote", {}, "local", 4)
    assert (event.subject, event.time, event.not_before, event.expires) == (None, None, None, None)
    assert (event.causes, event.extensions, event.stream, event.seq) == ((), {}, None, None)
    assert event.id and event.id != Event("market.quote").id


def test_type_and_data_by_keyword() -> None:
    assert Event(type="market.quote", source="nyse", data={"price": 10}).data["price"] == 10


def test_instants_are_kept_as_microseconds() -> None:
    moment = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    event = Event("a", time=moment, not_before="1970-01-01T00:00:02Z", expires=3)
    assert (event.time, event.not_before, event.expires) == (1_000_000, 2_000_000, 3)


def test_the_envelope_names_are_attributes() -> None:
    assert set(FIELDS) >= ENVELOPE_PATHS


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"type": ""}, "type"),
        ({"type": None}, "type"),
        ({"type": 1}, "type"),
        ({"type": "a\ud800"}, "type"),
        ({"source": ""}, "source"),
        ({"source": None}, "source"),
        ({"id": ""}, "id"),
        ({"id": 7}, "id"),
        ({"subject": ""}, "subject"),
        ({"subject": b"a"}, "subject"),
        ({"time": 1.5}, "time"),
        ({"time": True}, "time"),
        ({"time": datetime(2024, 5, 1)}, "time"),
        ({"not_before": "tomorrow"}, "not_before"),
        ({"expires": 2**62}, "expires"),
        ({"priority": 10}, "priority"),
        ({"priority": -1}, "priority"),
        ({"priority": True}, "priority"),
        ({"priority": 4.0}, "priority"),
        ({"priority": None}, "priority"),
        ({"seq": 0}, "seq"),
        ({"seq": True}, "seq"),
        ({"seq": 2**63}, "seq"),
        ({"stream": "b"}, "stream"),
        ({"stream": ("b", "elsewhere")}, "stream"),
        ({"stream": ("", "local")}, "stream"),
        ({"causes": "ab"}, "causes"),
        ({"causes": None}, "causes"),
        ({"causes": [("a", "1"), ("b",)]}, "causes[1]"),
        ({"causes": [("a", 1)]}, "causes[0]"),
        ({"extensions": ["a"]}, "extensions"),
        ({"extensions": {"Trace": "1"}}, "extensions"),
        ({"extensions": {"a_b": "1"}}, "extensions"),
        ({"extensions": {"": "1"}}, "extensions"),
        ({"extensions": {1: "1"}}, "extensions"),
        ({"extensions": {"priority": 4}}, "extensions"),
        ({"extensions": {"trace": 1.5}}, "extensions.trace"),
        ({"extensions": {"trace": None}}, "extensions.trace"),
        ({"extensions": {"trace": 2**31}}, "extensions.trace"),
        ({"extensions": {"trace": "\ud800"}}, "extensions.trace"),
        ({"data": []}, "data"),
        ({"data": "a"}, "data"),
    ],
)
def test_what_the_envelope_refuses(arguments: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        Event(**{"type": "a", **arguments})
    assert caught.value.path == path
    assert caught.value.reason


@fewer
@given(maps)
def test_data_is_an_equal_copy(data: dict[str, Any]) -> None:
    before = copy.deepcopy(data)
    event = Event("a", data)
    assert event.data == before
    assert repr(event.data) == repr(before)
    data["more"] = 1
    assert event.data == before


@fewer
@given(hostile_data())
def test_hostile_data_is_refused_where_it_is(case: tuple[dict[str, Any], str]) -> None:
    data, path = case
    with pytest.raises(InvalidEvent) as caught:
        Event("a", data)
    assert caught.value.path.startswith(path)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"a": {"b": [1, 2, 3, float("nan")]}}, "data.a.b[3]"),
        ({"a b": {"": b""}}, 'data."a b".""'),
        ({"a": [{"0": {1: 2}}]}, "data.a[0].0"),
        ({"a": {"\ud800": 1}}, 'data.a."\\ud800"'),
    ],
)
def test_the_path_of_a_refusal(data: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        Event("a", data)
    assert caught.value.path == path


def test_integers_of_numpy_become_plain() -> None:
    event = Event("a", {"x": np.int64(3), "y": [np.uint8(4)], "z": np.float64(0.5)})
    assert [type(value) for value in (event.data["x"], event.data["y"][0], event.data["z"])] == [int, int, float]
    with pytest.raises(InvalidEvent, match="beyond 64 bits"):
        Event("a", {"x": np.uint64(2**63)})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Decimal("1.5"), "event data cannot hold Decimal; use a float or a string"),
        (datetime(2024, 5, 1, tzinfo=UTC), "event data cannot hold datetime; use RFC 3339 text"),
        ({1}, "event data cannot hold set; use a list"),
        (np.array([1]), "event data cannot hold ndarray; use a list"),
        (np.array(1), "event data cannot hold ndarray; use a list"),
        (b"x", "event data cannot hold bytes; use a string"),
        (object(), "event data cannot hold object"),
    ],
)
def test_a_refusal_says_what_to_use(value: object, reason: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        Event("a", {"x": value})
    assert caught.value.reason == reason


def test_depth() -> None:
    assert Event("a", nested(MAX_DEPTH)).data == nested(MAX_DEPTH)
    with pytest.raises(InvalidEvent, match="deeper than 32"):
        Event("a", nested(MAX_DEPTH + 1))
    with pytest.raises(InvalidEvent, match="deeper than 32"):
        Event("a", nested(100_000))


def test_data_that_contains_itself() -> None:
    data: dict[str, Any] = {}
    data["self"] = [data]
    with pytest.raises(InvalidEvent, match="deeper than 32"):
        Event("a", data)


def test_derived_kinds_become_plain() -> None:
    given = OrderedDict(a=Ward.A, b=Level.HIGH, c=Ratio(0.5), d=(1, (2,)), e=[OrderedDict()])
    data = Event("a", given).data
    assert data == {"a": "a", "b": 3, "c": 0.5, "d": [1, [2]], "e": [{}]}
    assert [type(value) for value in data.values()] == [str, int, float, FrozenList, FrozenList]


DICT_CHANGES: list[tuple[str, tuple[Any, ...]]] = [
    ("__setitem__", ("a", 1)), ("__delitem__", ("a",)), ("__ior__", ({},)), ("clear", ()), ("pop", ("a",)),
    ("popitem", ()), ("setdefault", ("b", 1)), ("update", ({},)),
]  # fmt: skip
LIST_CHANGES: list[tuple[str, tuple[Any, ...]]] = [
    ("__setitem__", (0, 1)), ("__delitem__", (0,)), ("__iadd__", ([],)), ("__imul__", (2,)), ("append", (1,)),
    ("clear", ()), ("extend", ([],)), ("insert", (0, 1)), ("pop", ()), ("remove", (1,)), ("reverse", ()), ("sort", ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), DICT_CHANGES)
def test_maps_refuse_to_change(name: str, arguments: tuple[Any, ...]) -> None:
    data = Event("a", {"a": 1}).data
    with pytest.raises(TypeError, match="read-only"):
        getattr(data, name)(*arguments)
    assert data == {"a": 1}


@pytest.mark.parametrize(("name", "arguments"), LIST_CHANGES)
def test_lists_refuse_to_change(name: str, arguments: tuple[Any, ...]) -> None:
    data = Event("a", {"a": [1]}).data["a"]
    with pytest.raises(TypeError, match="read-only"):
        getattr(data, name)(*arguments)
    assert data == [1]


@pytest.mark.parametrize(
    ("frozen", "plain", "changes"), [(FrozenDict, dict, DICT_CHANGES), (FrozenList, list, LIST_CHANGES)]
)
def test_no_changing_method_is_forgotten(frozen: Any, plain: Any, changes: list[tuple[str, tuple[Any, ...]]]) -> None:
    reading = {"copy", "fromkeys", "get", "items", "keys", "values", "count", "index"}
    public = {name for name in vars(plain) if not name.startswith("_")} - reading
    in_place = {"__setitem__", "__delitem__", "__ior__", "__iadd__", "__imul__"} & set(vars(plain))
    assert public | in_place == {name for name, _ in changes}
    assert public | in_place <= set(vars(frozen))


@fewer
@given(maps)
def test_read_only_data_is_otherwise_plain(data: dict[str, Any]) -> None:
    frozen = Event("a", data).data
    assert json.dumps(frozen) == json.dumps(data)
    assert msgspec.json.encode(frozen) == msgspec.json.encode(data)
    assert msgspec.msgpack.encode(frozen) == msgspec.msgpack.encode(data)
    for twin in (pickle.loads(pickle.dumps(frozen)), copy.deepcopy(frozen), copy.copy(frozen)):
        assert twin == data and type(twin) is FrozenDict
    assert type(frozen.copy()) is dict


@pytest.mark.parametrize("name", [*FIELDS, "other"])
def test_events_refuse_to_change(name: str) -> None:
    event = Event("a", id="1")
    with pytest.raises(AttributeError, match="immutable"):
        setattr(event, name, 1)
    with pytest.raises(AttributeError, match="immutable"):
        delattr(event, name)
    assert event == Event("a", id="1")


@fewer
@given(events())
def test_pickled_and_copied_events_are_equal(event: Event) -> None:
    for twin in (pickle.loads(pickle.dumps(event)), copy.copy(event), copy.deepcopy(event)):
        assert twin == event and hash(twin) == hash(event) and repr(twin) == repr(event)
        assert type(twin.data) is FrozenDict


@fewer
@given(events())
def test_the_repr_is_an_expression_for_the_event(event: Event) -> None:
    assert eval(repr(event), {"Event": Event}) == event


def booleans(value: Any) -> Any:
    """Where in a value there is a boolean."""
    if isinstance(value, dict):
        return {name: booleans(item) for name, item in value.items()}
    return [booleans(item) for item in value] if isinstance(value, list) else isinstance(value, bool)


@fewer
@given(events(), events())
def test_equality_is_by_content(one: Event, other: Event) -> None:
    same = all(getattr(one, name) == getattr(other, name) for name in FIELDS)
    same = same and booleans(one.data) == booleans(other.data)
    same = same and booleans(one.extensions) == booleans(other.extensions)
    assert (one == other) is same
    assert (one != other) is not same
    assert one != other.data


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1}, {"a": True}, False),
        ({"a": 0.0}, {"a": False}, False),
        ({"a": [{"b": [1]}]}, {"a": [{"b": [True]}]}, False),
        ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0}, True),
        ({"a": [True, {}]}, {"a": [True, {}]}, True),
    ],
)
def test_booleans_are_not_equal_to_numbers(one: dict[str, Any], other: dict[str, Any], same: bool) -> None:
    assert (Event("a", one, id="1") == Event("a", other, id="1")) is same


def test_extensions_are_equal_when_their_kinds_are() -> None:
    assert Event("a", id="1", extensions={"x": 1}) != Event("a", id="1", extensions={"x": True})


def test_the_hash_is_by_identity() -> None:
    assert hash(Event("a", {"b": 1}, source="s", id="1")) == hash(Event("c", source="s", id="1", priority=9))


def test_tuple() -> None:
    event = Event.tuple("flight", "PR", 7, source="s")
    assert event == Event("tuple", {"0": "flight", "1": "PR", "2": 7}, source="s", id=event.id)
    assert Event.tuple(type="t.u").type == "t.u"


@fewer
@given(events(), events())
def test_replace_everything_gives_the_other(one: Event, other: Event) -> None:
    assert one.replace(**{name: getattr(other, name) for name in FIELDS}) == other
    assert one.replace() == one


def test_replace_changes_only_what_is_named() -> None:
    event = Event("a", {"x": [1]}, source="s", id="1")
    accepted = event.replace(stream=("b", "s"), seq=1)
    assert (accepted.stream, accepted.seq, event.stream, event.seq) == (("b", "s"), 1, None, None)
    assert accepted.data is event.data
    assert accepted.replace(stream=None, seq=None) == event


def test_replace_checks_what_it_changes() -> None:
    event = Event("a", source="s", stream=("b", "s"))
    with pytest.raises(InvalidEvent):
        event.replace(priority=10)
    with pytest.raises(InvalidEvent):
        event.replace(source="t")
    with pytest.raises(TypeError, match="colour"):
        event.replace(colour="red")  # type: ignore[call-arg]


def test_the_package_is_light_until_used() -> None:
    check = "import sys, vestnik; assert not {'numpy', 'msgspec', 'asyncio'} & set(sys.modules); vestnik.Event('a')"
    subprocess.run([sys.executable, "-c", check], check=True)


@given(events(), st.integers(1, MAX_INT))
def test_an_event_that_is_stamped_is_the_one_that_is_replaced(event: Event, seq: int) -> None:
    assert repr(event.stamped("b", seq)) == repr(event.replace(stream=("b", event.source), seq=seq))


def test_a_process_that_was_forked_gives_other_ids() -> None:
    code = (
        "import os\n"
        "from vestnik import Event\n"
        "Event('t')\n"
        "child = os.fork()\n"
        "if child: os.waitpid(child, 0)\n"
        "print([Event('t').id for _ in range(100)])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    one, other = done.stdout.splitlines()
    assert not set(ast.literal_eval(one)) & set(ast.literal_eval(other))
    assert len(set(ast.literal_eval(one))) == 100


def test_an_event_shows_what_it_is_made_of() -> None:
    names = list(inspect.signature(Event).parameters)
    assert names == list(FIELDS)
    with pytest.raises(TypeError, match=r"^Event\(\) got an unexpected keyword argument 'prio'"):
        Event("t", prio=1)  # type: ignore[call-arg]
    with pytest.raises(InvalidEvent):
        Event("t").__replace__(type="")


class Disguised(dict[str, Any]):
    """Shows other values than it holds."""

    def items(self) -> Any:
        return dict.fromkeys(self, "fine").items()


@pytest.mark.parametrize("value", [float("nan"), object(), 2**64])
def test_what_is_checked_is_what_is_stored(value: object) -> None:
    with pytest.raises(InvalidEvent):
        Event("t", Disguised(x=value))
    assert Event("t", Disguised(x=1)).data == {"x": 1}
