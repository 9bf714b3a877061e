"""Filters as plain data: maps, lists, strings, numbers, booleans and null, for JSON and msgpack.

Reading checks what it is given and brings it to normal form, since it comes from another process.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any

from vestnik.errors import FilterError, PatternError
from vestnik.model import lists
from vestnik.model.boxes import Box, make_box
from vestnik.model.cuts import NUMBER_BOTTOM, NumberCut, tidy
from vestnik.model.kinds import make_atom
from vestnik.model.lists import ListBox, ListSet
from vestnik.model.regions import Region
from vestnik.model.spaces import ELEMENT, Path, Space
from vestnik.model.strings import Combination, Expression, Pattern, StringSet
from vestnik.model.values import ALL_FLAGS, ValueSet


def write_region(region: Region) -> dict[str, Any]:
    return {"boxes": [_write_box(box) for box in region.boxes]}


def read_region(space: Space, data: Any) -> Region:
    """The region that `write_region` gave `data` for; FilterError where it is nothing of the kind."""
    try:
        boxes = [_read_box(space, box) for box in data["boxes"]]
    except (PatternError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise FilterError(f"this is no filter in plain data ({type(error).__name__}: {error})") from error
    return Region.of(space, (box for box in boxes if box is not None))


def _write_box(box: Box) -> dict[str, Any]:
    data: dict[str, Any] = {"sets": [[list(path), _write_set(values)] for path, values in box.sets]}
    if box.literals:
        data["literals"] = [[list(p), a.kind, list(a.literals), holds] for p, a, holds in sorted(box.literals)]
    return data


def _read_box(space: Space, data: Any) -> Box | None:
    sets = {_read_path(space, path): _read_set(values) for path, values in data["sets"]}
    literals = frozenset(
        (_read_path(space, path), make_atom(kind, tuple(given)), bool(holds))
        for path, kind, given, holds in data.get("literals", ())
    )
    return make_box(space, sets, literals)


def _read_path(space: Space, names: Any) -> Path:
    path = tuple(names)
    if not all(isinstance(name, str) for name in path) or not space.has(path):
        raise ValueError(f"{names!r} is no path")
    return path


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
        _rising([_read_number_cut(cut) for cut in data.get("numbers", ())]),
        StringSet.of(_read_strings(data.get("strings", ()))),
        _read_lists(data.get("lists", ())),
    )


def _read_number_cut(cut: Any) -> NumberCut:
    value, side = cut
    if value is None:
        return NUMBER_BOTTOM
    if isinstance(value, bool) or not isinstance(value, int | float) or side not in (0, 1) or not _finite(value):
        raise ValueError(f"{cut!r} is no cut of the number line")
    return tidy(value), side


def _finite(value: float) -> bool:
    return -(2**63) <= value <= 2**63 if isinstance(value, int) else -inf < value < inf


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
        if not all(isinstance(cut, str) for cut in data):
            raise ValueError(f"{data!r} are no strings")
        return _rising(list(data))
    verb = data["verb"]
    if verb in ("LIKE", "GLOB", "MATCHES"):
        return Pattern(verb, str(data["text"]), data.get("escape"))
    if verb not in ("AND", "OR", "NOT") or not data["parts"]:
        raise ValueError(f"{verb!r} is no combination of string sets")
    return Combination(verb, tuple(_read_strings(part) for part in data["parts"]))


def _write_list_box(box: ListBox) -> dict[str, Any]:
    data: dict[str, Any] = {"some": [write_region(some) for some in sorted(box.some, key=Region.sort_key)]}
    if box.every is not None:
        data["every"] = write_region(box.every)
    return data


def _read_lists(data: Any) -> ListSet:
    found = lists.NO_LISTS
    for box in data:
        met = lists.every_element(read_region(ELEMENT, box["every"])) if "every" in box else lists.ALL_LISTS
        for some in box["some"]:
            met = lists.intersection(met, lists.some_element(read_region(ELEMENT, some)))
        found = lists.union(found, met)
    return found
