"""An event that a filter matches: a witness for what is said about sets of events."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nextafter
from typing import Any

from vestnik.model import cuts as line
from vestnik.model.boxes import Box
from vestnik.model.cuts import NumberCuts
from vestnik.model.events import Event
from vestnik.model.lists import ListBox
from vestnik.model.regions import Region
from vestnik.model.spaces import DATA, Path
from vestnik.model.strings import StringSet
from vestnik.model.values import FLAG_FALSE, FLAG_MAP, FLAG_NULL, FLAG_TRUE, MISSING, ValueSet

_READABLE = ("a", "b", "x", "example")
_FLAGS = ((FLAG_TRUE, True), (FLAG_FALSE, False), (FLAG_NULL, None))


def example(region: Region) -> Event | None:
    """An event in `region`, always the same; None where none is found, which only added kinds bring about."""
    for box in region.boxes:
        content = _content(box)
        data = content.pop(DATA, {})
        event = Event(content.pop("type", "example"), data, **{"source": "example", "id": "example", **content})
        if box.contains(region.space, event):
            return event
    return None


def _content(box: Box) -> dict[str, Any]:
    """A value at each path of the box, as nested maps."""
    root: dict[str, Any] = {}
    for path, values in sorted(box.sets):
        value = _value(values)
        if value is not MISSING:
            _put(root, path, value)
    return root


def _put(root: dict[str, Any], path: Path, value: Any) -> None:
    """Put `value` at `path`, unless something above it is no map."""
    at: Any = root
    for name in path[:-1]:
        at = at.setdefault(name, {})
        if not isinstance(at, dict):
            return
    at[path[-1]] = value


def _value(values: ValueSet) -> Any:
    """A member, a telling one where there is a choice."""
    if values.strings:
        return _string(values.strings)
    if values.numbers:
        return next(_numbers(values.numbers))
    for flag, value in _FLAGS:
        if values.flags & flag:
            return value
    for box in values.lists:
        found = _list(box)
        if found is not None:
            return found
    return {} if values.flags & FLAG_MAP else MISSING


def _string(strings: StringSet) -> str:
    if strings.automaton is not None:
        return strings.automaton.example() or ""
    return next((text for text in _READABLE if text in strings), strings.cuts[0])


def _numbers(cuts: NumberCuts) -> Iterator[float]:
    for low, high in line.intervals(cuts):
        least, most = low[0], inf if high is None else high[0]
        near = [least, most, (least + most) / 2, least + 1, most - 1, 0, nextafter(least, inf), nextafter(most, -inf)]
        yield from (number for number in near if abs(number) < inf and line.contains(cuts, (line.tidy(number), 0)))


def _list(box: ListBox) -> list[Any] | None:
    elements = [_element(region) for region in box.in_order]
    return None if MISSING in elements else elements


def _element(region: Region) -> Any:
    for box in region.boxes:
        sets = dict(box.sets)
        value = _value(sets[()]) if () in sets else _content(box)
        if box.contains(region.space, value):
            return value
    return MISSING
