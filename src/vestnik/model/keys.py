"""Which values the events of a filter can have at a path, where these are finitely many."""

from __future__ import annotations

from typing import Any

from vestnik.model import cuts as line
from vestnik.model.boxes import projection
from vestnik.model.filters import Filter
from vestnik.model.regions import Region
from vestnik.model.spaces import EVENT, Path
from vestnik.model.values import FLAG_FALSE, FLAG_MAP, FLAG_TRUE, ValueSet, value_points


def values_at(wanted: Filter, path: Path) -> frozenset[Any] | None:
    """The strings, numbers and booleans that there may be at `path`; None where there is no end of them, or of others.

    That it is missing or null counts for nothing.
    """
    found: set[Any] = set()
    for box in wanted.region.boxes:
        values = _scalars(projection(EVENT, box, path))
        if values is None:
            return None
        found.update(values)
    return frozenset(found)


def having(path: Path, value: Any) -> Filter:
    """The events with this value at `path`."""
    return Filter(Region.at(EVENT, path, value_points([value])))


def _scalars(values: ValueSet) -> list[Any] | None:
    strings = values.strings.points
    runs = line.intervals(values.numbers)
    if strings is None or values.lists or values.flags & FLAG_MAP:
        return None
    if any(high is None or (low[0], 1) != high for low, high in runs):
        return None
    flags = [value for flag, value in ((FLAG_TRUE, True), (FLAG_FALSE, False)) if values.flags & flag]
    return [*strings, *(low[0] for low, _ in runs), *flags]
