"""Boxes that are one interval of ranks at each of the same paths: a plan for whoever can join tables of integers.

What is exact about numbers, strings and what is missing is settled by the ranks, so a join that compares them gives
the pairs that the kernels give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vestnik.matching.batch.filing import MOST_SPREAD, Pieces, lines_of
from vestnik.matching.batch.lines import Line
from vestnik.model.boxes import Box
from vestnik.model.lists import ALL_LISTS, NO_LISTS
from vestnik.model.regions import Region
from vestnik.model.spaces import Path
from vestnik.model.values import ValueSet


class RankBoxes(NamedTuple):
    """Row i: a region, `owners[i]`, holds the events with `low[i] <= rank <= high[i]` at each path.

    At the first path, the key, both are the same. A region has a row for each of the cells that it takes there.
    """

    paths: list[Path]
    lines: list[Line]
    owners: NDArray[np.int32]
    low: NDArray[np.int32]
    high: NDArray[np.int32]


def rank_boxes(regions: Sequence[Region]) -> RankBoxes | None:
    """The regions in that form; None where some of them have no such form, or there are none."""
    boxes = [box for region in regions for box in region.boxes]
    if not boxes or any(len(region.boxes) > 1 for region in regions) or not all(map(_plain, boxes)):
        return None
    paths, lines = lines_of(boxes)
    if not paths or any(len(box.sets) != len(paths) for box in boxes):
        return None
    slots = {path: slot for slot, path in enumerate(paths)}
    pieces: list[list[Pieces]] = [[()] * len(boxes) for _ in paths]
    for number, box in enumerate(boxes):
        for path, values in box.sets:
            pieces[slots[path]][number] = lines[slots[path]].intervals(values)
    key = next((slot for slot in range(len(paths)) if all(map(_is_key, pieces[slot]))), None)
    if key is None or any(len(one) > 1 for slot in range(len(paths)) if slot != key for one in pieces[slot]):
        return None
    order = [key, *(slot for slot in range(len(paths)) if slot != key)]
    owners = [number for number, region in enumerate(regions) if region.boxes]
    rows = [
        (owner, cell, *(end for slot in order[1:] for end in pieces[slot][number][0]))
        for number, owner in enumerate(owners)
        for cell, _ in pieces[key][number]
    ]
    table = np.array(rows, np.int32)
    return RankBoxes(
        [paths[slot] for slot in order],
        [lines[slot] for slot in order],
        table[:, 0],
        table[:, [1, *range(2, table.shape[1], 2)]],
        table[:, [1, *range(3, table.shape[1], 2)]],
    )


def _plain(box: Box) -> bool:
    return not box.literals and all(map(_is_ranks, (values for _, values in box.sets)))


def _is_ranks(values: ValueSet) -> bool:
    return values.strings.automaton is None and values.lists in (NO_LISTS, ALL_LISTS)


def _is_key(pieces: Pieces) -> bool:
    return len(pieces) <= MOST_SPREAD and all(low == high for low, high in pieces)
