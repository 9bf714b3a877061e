"""Where a box can be filed: under the single values that one of its constraints names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from vestnik.matching.single.paths import EACH, FALSE, TRUE, Steps
from vestnik.model.boxes import Box
from vestnik.model.lists import ALL_LISTS
from vestnik.model.spaces import Path
from vestnik.model.values import FLAG_FALSE, FLAG_MAP, FLAG_MISSING, FLAG_NULL, FLAG_TRUE, ValueSet

Key: TypeAlias = tuple[Steps, Any]
"""A path and a value there, by which a bucket is found."""


class Access(NamedTuple):
    """Buckets to file a box under. At `settled`, whoever finds the box there need not look at the value again."""

    keys: list[Key]
    settled: Path | None = None


EVERY_EVENT = Access([])

_SINGLES = ((FLAG_NULL, None), (FLAG_FALSE, FALSE), (FLAG_TRUE, TRUE))


def accesses(box: Box) -> list[Access]:
    """The ways to file a box; none where it names no single values."""
    found: list[Access] = []
    for path, values in box.sets:
        if values.lists:
            if values.lists != ALL_LISTS:
                found += [Access(into) for into in _element_keys(path, values)]
            continue
        single = single_values(values)
        if single is not None:
            found.append(Access([(path, key) for key in single], path))
    return found


def single_values(values: ValueSet) -> list[Any] | None:
    """The members as keys of a dict, where they are a few single values; else None."""
    flags, cuts = values.flags, values.numbers
    if values.lists or flags & (FLAG_MISSING | FLAG_MAP) or len(cuts) & 1:
        return None
    if cuts and cuts[0][0] != cuts[1][0]:
        return None
    numbers = [value for value, _ in cuts[::2]]
    if cuts != tuple([cut for value in numbers for cut in ((value, 0), (value, 1))]):
        return None
    strings = values.strings.points if values.strings else []
    if strings is None:
        return None
    singles = [key for flag, key in _SINGLES if flags & flag] if flags else []
    return [*singles, *numbers, *strings]


def key_of(value: Any) -> Any:
    """The key of a scalar."""
    return value if not isinstance(value, bool) else TRUE if value else FALSE


def _element_keys(path: Path, values: ValueSet) -> Iterator[list[Key]]:
    """For each set that every list of `values` has an element in: the single values that such an element needs."""
    if len(values.lists) > 1 or values != ValueSet(lists=values.lists):
        return
    for elements in values.lists[0].some:
        found = [_element_key(path, box) for box in elements.boxes]
        if all(found):
            yield list(dict.fromkeys(key for some in found for key in some))


def _element_key(path: Path, box: Box) -> list[Key]:
    for below, values in box.sets:
        single = single_values(values)
        if single is not None:
            return [((*path, EACH, *below), key) for key in single]
    return []
