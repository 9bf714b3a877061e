"""Imperfect merging: one box that covers two filters, and how much more it lets in.

The estimate without a sample stands on a model: paths are independent, and at each path the values that the constants
of the two filters tell apart (each constant, a value between neighbours, one of each other kind) are equally likely.
With a sample of events it is the share among those that the hull matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from math import inf, prod
from random import Random
from typing import TYPE_CHECKING, Any

from vestnik.model.boxes import Box, make_box, projection
from vestnik.model.filters import Filter
from vestnik.model.regions import Region
from vestnik.model.spaces import EVENT, Path
from vestnik.model.values import ANYTHING, MISSING, NOTHING, ValueSet
from vestnik.model.work import within

if TYPE_CHECKING:
    from vestnik.model.events import Event

DRAWS = 4096


class Hull(Filter):
    """A filter of one box, with `unwanted`: the share of what it matches that neither filter wanted, 0.0 to 1.0."""

    __slots__ = ("unwanted",)

    unwanted: float

    def __init__(self, region: Region, unwanted: float) -> None:
        super().__init__(region)
        object.__setattr__(self, "unwanted", unwanted)

    def __reduce__(self) -> tuple[Any, ...]:
        return Hull, (self.region, self.unwanted)


def hull(one: Filter, other: Filter, sample: Iterable[Event] | None = None) -> Hull:
    """The smallest box around both, path by path."""
    boxes = (*one.region.boxes, *other.region.boxes)
    if not boxes:
        return Hull(Region.nothing(EVENT), 0.0)
    sets = {path: _joined(boxes, path) for path in _paths(boxes)}
    literals = frozenset.intersection(*(box.literals for box in boxes))
    around = make_box(EVENT, sets, literals)
    assert around is not None, "a box around satisfiable boxes is satisfiable"
    region = Region(EVENT, (around,))
    if sample is None:
        return Hull(region, _modelled(boxes, around))
    return Hull(region, _sampled(one, other, region, sample))


def _paths(boxes: tuple[Box, ...]) -> set[Path]:
    return {path for box in boxes for path, _ in box.sets}


def _joined(boxes: tuple[Box, ...], path: Path) -> ValueSet:
    """All that can be at `path` in one of the boxes; anything where that takes too much work to say."""

    def union() -> ValueSet:
        values = NOTHING
        for box in boxes:
            values = values.union(projection(EVENT, box, path))
        return values

    return within(union, otherwise=ANYTHING)


def _sampled(one: Filter, other: Filter, region: Region, sample: Iterable[Event]) -> float:
    caught = [event for event in sample if region.contains(event)]
    unwanted = sum(not one.matches(event) and not other.matches(event) for event in caught)
    return unwanted / len(caught) if caught else 0.0


def _modelled(boxes: tuple[Box, ...], around: Box) -> float:
    axes: dict[Path, list[Any]] = {}
    for path in sorted(_paths(boxes)):
        inside = projection(EVENT, around, path)
        told_apart = [v for v in _representatives(boxes, path) if inside.contains(v)]
        if told_apart:
            axes[path] = told_apart
    draws = list(_draws(list(axes.values())))
    wanted = [[(i, values) for i, path in enumerate(axes) for p, values in box.sets if p == path] for box in boxes]
    missed = sum(not any(all(v.contains(draw[i]) for i, v in box) for box in wanted) for draw in draws)
    return missed / len(draws)


def _draws(axes: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    if prod(len(axis) for axis in axes) <= DRAWS:
        return product(*axes)
    random = Random(0)
    return (tuple(random.choice(axis) for axis in axes) for _ in range(DRAWS))


def _representatives(boxes: tuple[Box, ...], path: Path) -> list[Any]:
    sets = [values for box in boxes for p, values in box.sets if p == path]
    ends = sorted({cut[0] for values in sets for cut in values.numbers if cut[0] != -inf})
    numbers = [*ends, *((a + b) / 2 for a, b in pairwise(ends))]
    numbers += [ends[0] - 1, ends[-1] + 1] if ends else [0]
    strings = {cut for values in sets for cut in values.strings.cuts}
    strings |= {cut + "\0" for cut in strings} | {""}
    for values in sets:
        if values.strings.automaton is not None:
            strings.add(values.strings.automaton.example() or "")
    return [MISSING, None, True, False, [], {}, *numbers, *sorted(strings)]
