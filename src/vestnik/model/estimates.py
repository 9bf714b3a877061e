"""How large a part of a box is outside of other boxes, under a model of what events are like.

Paths are independent, and at each path the values that the constants of the boxes tell apart (each constant, a value
between neighbours, one of each other kind, and of lists one for each such element) are equally likely. Of a constraint
of an added kind nothing is known: in its domain it holds as often as not, whatever else does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from math import inf, prod
from random import Random
from typing import Any, NamedTuple, TypeAlias

from vestnik.model.boxes import Box, projection
from vestnik.model.kinds import Atom
from vestnik.model.lists import ListBox
from vestnik.model.spaces import EVENT, Path
from vestnik.model.values import BOOLEAN, MAP, MISSING, ValueSet, value_points

DRAWS = 4096
Axis: TypeAlias = Path | tuple[Path, Atom]
"""A path, or whether an atom holds at a path."""


class Tie(NamedTuple):
    """What is on the axis at place `below` where the value at place `above` is outside of `domain`."""

    above: int
    below: int
    domain: ValueSet
    otherwise: object


def share_outside(boxes: tuple[Box, ...], around: Box) -> float:
    """The share of what is in `around` that is in none of `boxes`, 0.0 to 1.0."""
    wanted = [_said(box) for box in boxes]
    axes: dict[Axis, list[Any]] = {}
    for axis, inside in _axes(boxes, around):
        told_apart = [v for v in _told_apart([said[axis] for said in wanted if axis in said]) if inside.contains(v)]
        if told_apart:
            axes[axis] = told_apart
    places = {axis: place for place, axis in enumerate(axes)}
    ties = _ties(boxes, places)
    draws = [_settled(draw, ties) for draw in _draws(list(axes.values()))]
    tests = [[(places[axis], values) for axis, values in said.items() if axis in places] for said in wanted]
    missed = sum(not any(all(v.contains(draw[i]) for i, v in test) for test in tests) for draw in draws)
    return missed / len(draws)


def _said(box: Box) -> dict[Axis, ValueSet]:
    """What `box` says on each axis."""
    return {**dict(box.sets), **{(path, atom): value_points([holds]) for path, atom, holds in box.literals}}


def _axes(boxes: tuple[Box, ...], around: Box) -> Iterator[tuple[Axis, ValueSet]]:
    """The axes that `boxes` speak of, each with what is on it in `around`."""
    for path in sorted(_paths(boxes)):
        yield path, projection(EVENT, around, path)
    said = _said(around)
    for atom in _atoms(boxes):
        yield atom, said.get(atom, BOOLEAN)


def _atoms(boxes: tuple[Box, ...]) -> list[tuple[Path, Atom]]:
    return sorted({(path, atom) for box in boxes for path, atom, _ in box.literals})


def _ties(boxes: tuple[Box, ...], places: dict[Axis, int]) -> list[Tie]:
    """Nothing is below what is no map, and nothing outside its domain satisfies an atom."""
    paths = sorted(_paths(boxes))
    ties: list[tuple[Axis, Axis, ValueSet, object]] = [
        (path[:i], path, MAP, MISSING) for path in paths for i in range(1, len(path))
    ]
    ties += [(path, (path, atom), atom.domain, False) for path, atom in _atoms(boxes)]
    return [Tie(places[a], places[b], values, other) for a, b, values, other in ties if a in places and b in places]


def _settled(draw: tuple[Any, ...], ties: list[Tie]) -> list[Any]:
    settled = list(draw)
    for tie in ties:
        if not tie.domain.contains(settled[tie.above]):
            settled[tie.below] = tie.otherwise
    return settled


def _paths(boxes: tuple[Box, ...]) -> set[Path]:
    return {path for box in boxes for path, _ in box.sets}


def _draws(axes: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    if prod(len(axis) for axis in axes) <= DRAWS:
        return product(*axes)
    random = Random(0)
    return (tuple(random.choice(axis) for axis in axes) for _ in range(DRAWS))


def _told_apart(sets: list[ValueSet]) -> list[Any]:
    """Values that the constants of `sets` tell apart, and one of each other kind."""
    ends = sorted({cut[0] for values in sets for cut in values.numbers if cut[0] != -inf})
    numbers = [*ends, *((a + b) / 2 for a, b in pairwise(ends))]
    numbers += [ends[0] - 1, ends[-1] + 1] if ends else [0]
    strings = {cut for values in sets for cut in values.strings.cuts}
    strings |= {cut + "\0" for cut in strings} | {""}
    for values in sets:
        if values.strings.automaton is not None:
            strings.add(values.strings.automaton.example() or "")
    return [MISSING, None, True, False, {}, *numbers, *sorted(strings), *_lists([b for v in sets for b in v.lists])]


def _lists(boxes: list[ListBox]) -> list[list[Any]]:
    """The empty list, a list of each element that `boxes` tell apart, and for several ANY at once one that has all."""
    regions = [region for box in boxes for region in (box.every, *box.in_order) if region]
    if not regions:
        return [[]]
    elements = _elements([box for region in regions for box in region.boxes])
    several = [box.in_order for box in boxes if len(box.some) > 1]
    together = [[next(filter(region.contains, elements), None) for region in some] for some in several]
    return [[], *([element] for element in elements), *together]


def _elements(boxes: list[Box]) -> list[Any]:
    """Elements that `boxes` tell apart: as a whole, or by a map for each box."""
    whole = [values for box in boxes for path, values in box.sets if not path]
    maps = [_map(box) for box in dict.fromkeys(boxes) if any(path for path, _ in box.sets)]
    return [*(value for value in _told_apart(whole) if value is not MISSING), *maps]


def _map(box: Box) -> dict[str, Any]:
    """A map that is in `box`, where one is found."""
    found: dict[str, Any] = {}
    for path, values in box.sets:
        value = next(filter(values.contains, _told_apart([values])), MISSING)
        if path and value is not MISSING:
            _put(found, path, value)
    return found


def _put(within: Any, path: Path, value: Any) -> None:
    """Put `value` in its place, unless what is above it is no map."""
    for name in path[:-1]:
        within = within.setdefault(name, {})
        if not isinstance(within, dict):
            return
    within[path[-1]] = value
