"""Filters as plain data: maps, lists, strings, numbers, booleans and null, for JSON and msgpack.

Reading checks what it is given and brings it to normal form, since it comes from another process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from vestnik.errors import FilterError, FilterTooComplex, PatternError
from vestnik.model import lists
from vestnik.model.boxes import Box, make_box
from vestnik.model.cuts import NUMBER_BOTTOM, NumberCut, tidy
from vestnik.model.frozen import MAX_INT, is_scalar
from vestnik.model.kinds import Literals, make_atom
from vestnik.model.lists import ListBox, ListSet
from vestnik.model.regions import Region
from vestnik.model.spaces import ELEMENT, Path, Space
from vestnik.model.strings import Combination, Expression, Pattern, StringSet
from vestnik.model.values import ALL_FLAGS, ValueSet

_WRONG = (PatternError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError)


def write_region(region: Region) -> dict[str, Any]:
    return {"boxes": [_write_box(box) for box in region.boxes]}


def read_region(space: Space, data: Any, most_boxes: int | None) -> Region:
    """The region that `write_region` gave `data` for; FilterError, with the place, where it is nothing of the kind."""
    try:
        if most_boxes is not None and len(data["boxes"]) > most_boxes:
            raise FilterTooComplex("boxes", most_boxes)
        return _read_region(space, data)
    except (*_WRONG, RecursionError) as error:
        raise FilterError(f"this is no filter in plain data: {_reason(error)}") from error


def _read_region(space: Space, data: Any) -> Region:
    boxes = []
    for number, box in enumerate(_list(data["boxes"])):
        with _at(f"box {number}"):
            boxes.append(_read_box(space, box))
    return Region.of(space, (box for box in boxes if box is not None))


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Say of what is wrong inside that it is at `place`."""
    try:
        yield
    except _WRONG as error:
        raise ValueError(f"{place}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError | PatternError) else f"{type(error).__name__}: {error}"


def _list(data: Any) -> Sequence[Any]:
    if not isinstance(data, list | tuple):
        raise ValueError(f"{data!r} is no list")
    return data


def _text(data: Any) -> str:
    if not isinstance(data, str) or not is_scalar(data):
        raise ValueError(f"{data!r} is no text")
    return data


def _write_box(box: Box) -> dict[str, Any]:
    data: dict[str, Any] = {"sets": [[list(path), _write_set(values)] for path, values in box.sets]}
    if box.literals:
        data["literals"] = [[list(p), a.kind, list(a.literals), holds] for p, a, holds in sorted(box.literals)]
    return data


def _read_box(space: Space, data: Any) -> Box | None:
    sets: dict[Path, ValueSet] = {}
    for names, values in _list(data["sets"]):
        path = _read_path(space, names)
        with _at(f"path {'.'.join(path) or '@'}"):
            if path in sets:
                raise ValueError("it is there twice")
            sets[path] = _read_set(values)
    literals = frozenset(
        (_read_path(space, names), make_atom(_text(kind), _read_literals(given)), bool(holds))
        for names, kind, given, holds in _list(data.get("literals", ()))
    )
    return make_box(space, sets, literals)


def _read_path(space: Space, names: Any) -> Path:
    path = tuple(map(_text, _list(names)))
    if not space.has(path):
        raise ValueError(f"{names!r} is no path")
    return path


def _read_literals(data: Any) -> Literals:
    if not all(map(is_scalar, _list(data))):
        raise ValueError(f"{data!r} are no literals")
    return tuple(data)


def _write_set(values: ValueSet) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if values.flags:
        data["flags"] = values.flags
    if values.numbers:
        data["numbers"] = [[None if cut == NUMBER_BOTTOM else cut[0], cut[1]] for cut in values.numbers]
    if values.strings:
        data["strings"] = _write_strings(values.strings.expression)
    if values.lists:
        data["lists"] = [_write_list_box(box) for box in values.lists]
    return data


def _read_set(data: Any) -> ValueSet:
    return ValueSet(
        int(data.get("flags", 0)) & ALL_FLAGS,
        _rising([_read_number_cut(cut) for cut in _list(data.get("numbers", ()))]),
        StringSet.of(_read_strings(data.get("strings", ()))),
        _read_lists(data.get("lists", ())),
    )


def _read_number_cut(cut: Any) -> NumberCut:
    value, side = cut
    if value is None:
        return NUMBER_BOTTOM
    if isinstance(value, bool | str) or not (is_scalar(value) or value == MAX_INT + 1) or side not in (0, 1):
        raise ValueError(f"{cut!r} is no cut of the number line")
    return tidy(value), side


def _rising(cuts: list[Any]) -> tuple[Any, ...]:
    if any(a >= b for a, b in pairwise(cuts)):
        raise ValueError(f"the cuts {cuts!r} do not rise")
    return tuple(cuts)


def _write_strings(expression: Expression) -> Any:
    if isinstance(expression, tuple):
        return list(expression)
    if isinstance(expression, Pattern):
        return {"verb": expression.verb, "text": expression.text, "escape": expression.escape}
    return {"verb": expression.verb, "parts": [_write_strings(part) for part in expression.parts]}


def _read_strings(data: Any) -> Expression:
    if not isinstance(data, dict):
        return _rising([_text(cut) for cut in _list(data)])
    verb = data["verb"]
    if verb in ("LIKE", "GLOB", "MATCHES"):
        escape = data.get("escape")
        return Pattern(verb, _text(data["text"]), None if escape is None else _text(escape))
    if verb not in ("AND", "OR", "NOT") or not data["parts"]:
        raise ValueError(f"{verb!r} is no combination of string sets")
    return Combination(verb, tuple(_read_strings(part) for part in _list(data["parts"])))


def _write_list_box(box: ListBox) -> dict[str, Any]:
    data: dict[str, Any] = {"some": [write_region(some) for some in sorted(box.some, key=Region.sort_key)]}
    if box.every is not None:
        data["every"] = write_region(box.every)
    return data


def _read_lists(data: Any) -> ListSet:
    found = lists.NO_LISTS
    for box in _list(data):
        met = lists.every_element(_read_region(ELEMENT, box["every"])) if "every" in box else lists.ALL_LISTS
        for some in _list(box["some"]):
            met = lists.intersection(met, lists.some_element(_read_region(ELEMENT, some)))
        found = lists.union(found, met)
    return found
