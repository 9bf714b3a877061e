"""Random valid events, and data that no event may hold."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from vestnik.model.envelope import CLOUDEVENT_NAMES
from vestnik.model.events import Event
from vestnik.model.frozen import MAX_INT, MIN_INT
from vestnik.model.times import FIRST, LAST

fewer = settings(max_examples=max(100, settings().max_examples // 20))
"""For laws over whole events, which take long to draw."""

texts = st.text(st.characters(codec="utf-8"), max_size=12)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
segments = st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1, max_size=6)
types = st.one_of(st.sampled_from(["market.quote", "market.quote.nyse"]), st.lists(segments, min_size=1).map(".".join))
instants = st.integers(FIRST, LAST)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(MIN_INT, MAX_INT),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
maps = st.dictionaries(texts, values, max_size=4)
extension_names = st.text("abcxyz019", min_size=1, max_size=8).filter(lambda name: name not in CLOUDEVENT_NAMES)
extension_maps = st.dictionaries(
    extension_names, st.one_of(st.booleans(), st.integers(-(2**31), 2**31 - 1), texts), max_size=3
)


@st.composite
def events(draw: st.DrawFn) -> Event:
    """Any event at all."""
    source = draw(names)
    return Event(
        draw(types),
        draw(maps),
        source=source,
        id=draw(names),
        subject=draw(st.none() | names),
        time=draw(st.none() | instants),
        priority=draw(st.integers(0, 9)),
        not_before=draw(st.none() | instants),
        expires=draw(st.none() | instants),
        causes=draw(st.lists(st.tuples(names, names), max_size=3)),
        extensions=draw(extension_maps),
        stream=draw(st.none() | st.tuples(names, st.just(source))),
        seq=draw(st.none() | st.integers(1, MAX_INT)),
    )


def nested(depth: int) -> dict[str, Any]:
    """Maps within one another, `depth` of them."""
    data: dict[str, Any] = {}
    for _ in range(depth - 1):
        data = {"a": data}
    return data


hostile_values: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([float("nan"), float("inf"), float("-inf")]),
    st.integers(min_value=MAX_INT + 1),
    st.integers(max_value=MIN_INT - 1),
    st.sampled_from(["\ud800", "a\udfff", "\udc00\ud800"]),
    st.sampled_from([b"", bytearray(b"a"), set(), frozenset({1}), Decimal(1), 1j, object(), date(2024, 5, 1)]),
    st.just(datetime(2024, 5, 1, tzinfo=UTC)),
    st.sampled_from([{1: 2}, {None: 1}, {b"a": 1}, {"\ud800": 1}, {("a",): 1}]),
    st.integers(32, 40).map(nested),
)
"""Each is refused at any place inside data."""


@st.composite
def hostile_data(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """Data with one hostile value somewhere, and the path of that value."""
    value = draw(hostile_values)
    path = ""
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            before = draw(st.lists(scalars, max_size=3))
            value, path = [*before, value, *draw(st.lists(scalars, max_size=2))], f"[{len(before)}]{path}"
        else:
            value, path = {**draw(maps), "inner": value}, f".inner{path}"
    return {**draw(maps), "outer": value}, f"data.outer{path}"
