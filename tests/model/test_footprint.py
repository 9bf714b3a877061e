"""The memory of an event is estimated, and never for long."""

from __future__ import annotations

from vestnik import Event
from vestnik.model.footprint import LOOKED_AT, footprint


def taken(data: dict[str, object]) -> int:
    size = footprint(Event("q", data))
    assert size is not None
    return size


def test_characters_values_and_what_is_nested_count() -> None:
    nothing = taken({})
    assert taken({"x": "a" * 1_000}) - nothing >= 1_000
    assert taken({"x": [{}] * 100}) - nothing >= 6_400
    assert taken({"x": [{"y": ["z" * 1_000]}]}) - nothing >= 1_000


def test_a_signal_is_measured_whole_however_long() -> None:
    assert taken({"x": [0.5] * (3 * LOOKED_AT)}) >= 3 * LOOKED_AT * 64


def test_who_has_too_many_values_is_not_looked_at_further() -> None:
    assert footprint(Event("q", {"x": [{}] * (LOOKED_AT + 1)})) is None
    assert footprint(Event("q", {"x": [[{}] * 100] * (LOOKED_AT // 100)})) is None
