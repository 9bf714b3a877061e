"""Event data: checked once, and read-only from then on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, NoReturn, TypeAlias

from vestnik.errors import InvalidEvent

MAX_DEPTH = 32
"""Maps and lists within one another, `data` itself being the first."""
MAX_INT = 2**63 - 1
MIN_INT = -(2**63)

_INSTEAD = {
    **dict.fromkeys(("datetime", "date", "time"), "RFC 3339 text"),
    **dict.fromkeys(("set", "frozenset", "ndarray", "generator"), "a list"),
    **dict.fromkeys(("float16", "float32"), "a float"),
    **dict.fromkeys(("bytes", "bytearray", "UUID"), "a string"),
    "Decimal": "a float or a string",
    "bool": "Python's own bool",
}
"""By the name of a type, what event data holds in its place."""

_CONTAINERS = frozenset({dict, list})

Place: TypeAlias = "tuple[Place, str | int] | None"
"""Where in the data a value is: the place around it and the name or position there. None is `data` itself."""


def _refuse(self: object, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError("event data is read-only; build a new event, or change a copy made with .copy()")


class FrozenDict(dict[str, Any]):
    """A dict that refuses to change. `copy()` gives a plain dict."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """A list that refuses to change. `copy()` gives a plain list."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenList, (list(self),)


def freeze(data: object) -> FrozenDict:
    """A read-only copy of `data`; InvalidEvent, with the path, when it holds what event data cannot.

    Scalars of derived types (an IntEnum's, numpy's float64) and other integers (numpy's) become plain ones, tuples
    become lists.
    """
    if not isinstance(data, dict):
        raise InvalidEvent(f"data must be a map, not {kind_name(data)}", "data")
    found = FrozenDict(data)
    for name, value in found.items():
        kind = type(value)
        if (
            type(name) is str
            and name.isascii()
            and (
                (kind is str and value.isascii())
                or (kind is float and value - value == 0.0)  # neither NaN nor infinite
                or (kind is int and MIN_INT <= value <= MAX_INT)
                or kind is bool
                or value is None
            )
        ):
            continue
        _freeze_items(found, found.items(), dict.__setitem__, None, 1)
        break
    return found


def frozen(data: dict[str, Any]) -> FrozenDict:
    """`data`, which was checked, read-only."""
    found = FrozenDict(data)
    if not _CONTAINERS.isdisjoint(map(type, data.values())):
        for name, value in data.items():
            dict.__setitem__(found, name, _frozen(value))
    return found


def _frozen(value: Any) -> Any:
    if type(value) is dict:
        return frozen(value)
    return FrozenList([_frozen(element) for element in value]) if type(value) is list else value


def plain_text(value: object, path: str) -> str:
    """`value` as a plain str that UTF-8 can carry; InvalidEvent at `path` when it is none."""
    if not isinstance(value, str):
        raise InvalidEvent(f"must be a string, not {kind_name(value)}", path)
    if not value.isascii() and _has_surrogate(value):
        raise InvalidEvent("a lone surrogate in a string", path)
    return value if type(value) is str else str.__str__(value)


def is_scalar(value: object) -> bool:
    """Whether `value` is null, a boolean, a number or a string that event data can hold."""
    if isinstance(value, str):
        return not _has_surrogate(value)
    if isinstance(value, float):
        return value - value == 0.0
    return value is None or (isinstance(value, int) and MIN_INT <= value <= MAX_INT)


def kind_name(value: object) -> str:
    """How a message names the kind of `value`."""
    return "null" if value is None else type(value).__name__


def _freeze_map(value: dict[Any, Any], place: Place, depth: int) -> FrozenDict:
    frozen = FrozenDict(value)
    _freeze_items(frozen, frozen.items(), dict.__setitem__, place, depth)
    return frozen


def _freeze_list(value: list[Any] | tuple[Any, ...], place: Place, depth: int) -> FrozenList:
    frozen = FrozenList(value)
    _freeze_items(frozen, enumerate(frozen), list.__setitem__, place, depth)
    return frozen


def _freeze_items(
    frozen: Any, items: Iterable[tuple[Any, Any]], put: Callable[[Any, Any, Any], None], place: Place, depth: int
) -> None:
    """Check the names of a map, pass over the ordinary scalars, and `put` the frozen form of all else in its place."""
    if depth > MAX_DEPTH:
        raise InvalidEvent(f"nested deeper than {MAX_DEPTH}", _path(place))
    is_map = put is dict.__setitem__
    for key, item in items:
        if is_map and (type(key) is not str or not key.isascii()):
            _check_name(key, place)
        kind = type(item)
        if kind is str:
            if item.isascii():
                continue
        elif kind is float:
            if item - item == 0.0:  # neither NaN nor infinite
                continue
        elif kind is int:
            if MIN_INT <= item <= MAX_INT:
                continue
        elif kind is bool or item is None:
            continue
        put(frozen, key, _freeze_value(item, (place, key), depth))


def _freeze_value(value: object, place: Place, depth: int) -> object:
    if isinstance(value, dict):
        return _freeze_map(value, place, depth + 1)
    if isinstance(value, list | tuple):
        return _freeze_list(value, place, depth + 1)
    if isinstance(value, str):
        return plain_text(value, _path(place))
    if isinstance(value, float):
        return _plain_float(value, place)
    if isinstance(value, int):
        return _plain_int(value, place)
    if isinstance(value, Integral):
        return _plain_int(int(value), place)
    kind = kind_name(value)
    hint = f"; use {_INSTEAD[kind]}" if kind in _INSTEAD else ""
    raise InvalidEvent(f"event data cannot hold {kind}{hint}", _path(place))


def _plain_float(value: float, place: Place) -> float:
    if value - value != 0.0:
        raise InvalidEvent("NaN and infinities are not numbers here", _path(place))
    return float.__float__(value)


def _plain_int(value: int, place: Place) -> int:
    if not MIN_INT <= value <= MAX_INT:
        raise InvalidEvent("an integer beyond 64 bits", _path(place))
    return int.__int__(value)


def _check_name(name: object, place: Place) -> None:
    if type(name) is not str:
        raise InvalidEvent(f"a name must be a string, not {kind_name(name)}", _path(place))
    if _has_surrogate(name):
        raise InvalidEvent("a lone surrogate in a name", _path((place, name)))


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _path(place: Place) -> str:
    """The place as people write it: `data.a."odd name"[3]`."""
    steps: list[str] = []
    while place is not None:
        place, key = place
        if isinstance(key, int):
            steps.append(f"[{key}]")
        else:
            steps.append(f".{key}" if key.isidentifier() or key.isdecimal() else f".{json.dumps(key)}")
    return "data" + "".join(reversed(steps))
