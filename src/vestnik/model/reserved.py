"""Types of the tree `vestnik`: events of the infrastructure itself, which only those get who ask for them by type.

A filter asks for what it names: a type or a tree of types in `vestnik`, alone or beside others. One that lets them in
because it says little or nothing of `type` does not ask: `TRUE`, `type != 'a'`, `type < 'x'`.
"""

from __future__ import annotations

from typing import Final

from vestnik.model import cuts as line
from vestnik.model.boxes import Box, make_box
from vestnik.model.filters import Filter
from vestnik.model.meaning import type_and_descendants
from vestnik.model.regions import Region
from vestnik.model.spaces import DATA, EVENT, Path
from vestnik.model.strings import NO_STRINGS, StringSet
from vestnik.model.values import FLAG_MISSING, ValueSet

ROOT: Final = "vestnik"
SUBSCRIPTION: Final = f"{ROOT}.subscription"
ADVERTISEMENT: Final = f"{ROOT}.advertisement"
BROKER: Final = f"{ROOT}.broker"
WORDS: Final = frozenset({"filter", "client", "name", "broker", "replay"})
"""What the data of such events may hold."""

_TREE: Final = type_and_descendants(ROOT)
_OTHERS: Final = _TREE.complement()
_TYPE: Final[Path] = ("type",)
_OURS: Final = Filter(Region.at(EVENT, _TYPE, ValueSet(strings=_TREE)))
_THEIRS: Final = Filter(Region.at(EVENT, _TYPE, ValueSet(strings=_OTHERS)))


def is_reserved(type: str) -> bool:
    """Whether events of a type are the infrastructure's own."""
    return type.startswith(ROOT) and type in _TREE


def asks(wanted: Filter) -> bool:
    """Whether a filter asks for events of the infrastructure."""
    return any(values and _named(values.strings) for box in wanted.region.boxes for values in [_types(box)])


def reaches(wanted: Filter) -> bool:
    """Whether a filter lets in an event of the infrastructure, asked for or not."""
    return any(map(_lets_in, wanted.region.boxes))


def ordinary(wanted: Filter) -> Filter:
    """The filter without the events of the infrastructure that it does not ask for."""
    boxes = wanted.region.boxes
    if not any(map(_lets_in, boxes)):
        return wanted
    narrowed = [_without_unasked(box) if _lets_in(box) else box for box in boxes]
    return Filter(Region.of(EVENT, [box for box in narrowed if box is not None]))


def others(wanted: Filter) -> Filter:
    """The filter without any events of the infrastructure."""
    return wanted & _THEIRS if asks(wanted) else wanted


def announcements(wanted: Filter) -> Filter:
    """The filter without all other events; nothing where it does not ask for those of the infrastructure."""
    return wanted & _OURS if asks(wanted) else Filter.none()


def _types(box: Box) -> ValueSet | None:
    return next((values for path, values in box.sets if path == _TYPE), None)


def _named(types: StringSet) -> StringSet:
    """The part of a set of types that names some of the tree: of a pattern all or nothing, of intervals some."""
    if types.automaton is not None:
        return types if _TREE.includes(types) else NO_STRINGS
    runs = [(low, high) for low, high in line.intervals(types.cuts) if high is not None]
    return StringSet(tuple([cut for run in runs if line.includes(_TREE.cuts, run) for cut in run]))


def _lets_in(box: Box) -> bool:
    """Whether an event of the infrastructure may be in a box: its data hold nothing but the words for them."""
    for path, values in box.sets:
        if path[0] == DATA and path[1] not in WORDS and not values.flags & FLAG_MISSING:
            return False
    types = _types(box)
    return types is None or bool(types.strings.intersection(_TREE))


def _without_unasked(box: Box) -> Box | None:
    types = (_types(box) or EVENT.universe(_TYPE)).strings
    left = types.intersection(_OTHERS).union(_named(types))
    return make_box(EVENT, {**dict(box.sets), _TYPE: ValueSet(strings=left)}, box.literals)
