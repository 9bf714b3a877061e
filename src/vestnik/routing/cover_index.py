"""Which of many filters cover a given one, and which does it cover.

Both questions are narrowed down by examples. A filter that covers F matches every event of F, so a matcher finds the
candidates by one of them. And F matches every event of what it covers, so the examples of all members are kept by the
values in them. The candidates are then asked by the algebra.

The indexes that a broker has for its neighbours hold nearly the same, and the same is asked of each. They share a
catalogue: a filter is filed there once for all of them, and what was found for one is there for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from itertools import chain, count
from typing import Any, TypeAlias
from weakref import finalize

from vestnik.matching import Matcher
from vestnik.matching.single.keys import key_of, single_values
from vestnik.model.boxes import Box
from vestnik.model.filters import Filter
from vestnik.model.spaces import DATA, EVENT, Path
from vestnik.model.values import FLAG_MISSING, MISSING, ValueSet

Numbers: TypeAlias = dict[int, None]
"""Members by number, in the order in which they came."""

Key: TypeAlias = tuple[Path, Any]
"""A path and a value there, in an example; or ANY."""

ANY = object()
NOWHERE: Key = (), ANY
"""Where members without an example are kept."""

FEW = 16
"""Members that are all asked: to narrow them down would cost more."""


class CoverIndex:
    """A set of filters. They are in its catalogue as long as an index has them; one that is dropped has none."""

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self._catalogue = Catalogue() if catalogue is None else catalogue
        self._members: dict[Filter, None] = {}
        finalize(self, self._catalogue.remove, self._members).atexit = False

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member: object) -> bool:
        return member in self._members

    def __iter__(self) -> Iterator[Filter]:
        return iter(self._members)

    def add(self, member: Filter) -> None:
        self._members[member] = None
        self._catalogue.add(member)

    def remove(self, member: Filter) -> None:
        del self._members[member]
        self._catalogue.remove((member,))

    def covering(self, narrow: Filter) -> Iterator[Filter]:
        """The members that cover `narrow`."""
        return self._catalogue.covering(narrow).among(self._members)

    def covered_by(self, wide: Filter) -> list[Filter]:
        """The members that `wide` covers."""
        return list(self._catalogue.covered_by(wide).among(self._members))


class Catalogue:
    """The filters of several indexes, each filed once. What is added and removed again leaves nothing behind."""

    def __init__(self) -> None:
        self._members: dict[Filter, int] = {}  # with the number of indexes that have it
        self._examples: _Examples | None = None
        self._wider = self._narrower = _Answers(Filter.none(), (), bool)  # to the last questions

    def __len__(self) -> int:
        return len(self._members)

    def add(self, member: Filter) -> None:
        """One more index has a filter."""
        indexes = self._members[member] = self._members.get(member, 0) + 1
        if indexes > 1:
            return
        self._wider.join(member)
        self._narrower.join(member)
        if self._examples is not None:
            self._examples.add(member)
        elif len(self._members) > FEW:
            self._examples = _Examples(self._members)

    def remove(self, members: Iterable[Filter]) -> None:
        """One index less has these filters."""
        gone: list[Filter] = []
        for member in members:
            self._members[member] -= 1
            if not self._members[member]:
                del self._members[member]
                gone.append(member)
        if len(self._members) <= FEW // 2:
            self._examples = None
        elif self._examples is not None:
            for member in gone:
                self._examples.remove(member)

    def covering(self, narrow: Filter) -> _Answers:
        """Which members cover `narrow`."""
        if self._wider.about is not narrow:
            members = self._members if self._examples is None else self._examples.around(narrow)
            self._wider = _Answers(narrow, members, lambda member: member.covers(narrow))
        return self._wider

    def covered_by(self, wide: Filter) -> _Answers:
        """Which members `wide` covers."""
        if self._narrower.about is not wide:
            members = self._members if self._examples is None else self._examples.inside(wide)
            self._narrower = _Answers(wide, members, wide.covers)
        return self._narrower


class _Answers:
    """Which candidates stand in a relation to the filter that is asked `about`; each is asked when it matters, once."""

    def __init__(self, about: Filter, candidates: Iterable[Filter], holds: Callable[[Filter], bool]) -> None:
        self.about = about
        self._holds = holds
        self._answers: dict[Filter, bool | None] = dict.fromkeys(candidates)

    def join(self, candidate: Filter) -> None:
        self._answers[candidate] = None

    def among(self, members: Container[Filter]) -> Iterator[Filter]:
        """Those of `members` that do, in the order in which they came to the catalogue."""
        for candidate, answer in self._answers.items():
            if candidate in members:
                if answer is None:
                    answer = self._answers[candidate] = self._holds(candidate)
                if answer:
                    yield candidate


class _Examples:
    """Members by what is in their examples."""

    def __init__(self, members: Iterable[Filter]) -> None:
        self._count = count()
        self._numbers: dict[Filter, int] = {}
        self._matcher: Matcher[int] = Matcher()
        self._by_key: dict[Key, Numbers] = {}
        for member in members:
            self.add(member)

    def add(self, member: Filter) -> None:
        number = self._numbers[member] = next(self._count)
        self._matcher.add(number, member)
        for key in _keys(member):
            self._by_key.setdefault(key, {})[number] = None

    def remove(self, member: Filter) -> None:
        number = self._numbers.pop(member)
        self._matcher.remove(number)
        for key in _keys(member):
            del self._by_key[key][number]
            if not self._by_key[key]:
                del self._by_key[key]

    def around(self, narrow: Filter) -> Iterable[Filter]:
        """Members, among them all that cover `narrow`."""
        example = narrow.example()
        if example is None:
            return list(self._numbers)
        return [self._matcher[number] for number in sorted(self._matcher.match(example))]

    def inside(self, wide: Filter) -> Iterable[Filter]:
        """Members, among them all that `wide` covers."""
        boxes = wide.region.boxes
        numbers = {number for box in boxes for number in self._near(box, alone=len(boxes) == 1)}
        numbers.update(self._by_key.get(NOWHERE, {}))
        return [self._matcher[number] for number in sorted(numbers)]

    def _near(self, box: Box, *, alone: bool) -> Iterable[int]:
        """Members, among them all whose example is in `box`, and if it is `alone`, that it covers.

        A member is filed only under what it speaks of. Its example has some `type` and `priority` all the same: one
        box that asks for these cannot cover it, several together may.
        """
        choices = [
            self._at(path, values)
            for path, values in box.sets
            if not values.flags & FLAG_MISSING and (alone or path[0] == DATA)
        ]
        nearest = min(choices, key=_size, default=None)
        if nearest is None:
            return self._matcher
        return chain.from_iterable(nearest)

    def _at(self, path: Path, values: ValueSet) -> list[Numbers]:
        """Members, among them all whose example has at `path` one of `values`, which must be there."""
        keys = single_values(values)
        if keys is None:
            return [self._by_key.get((path, ANY), {})]
        return [self._by_key[path, key] for key in keys if (path, key) in self._by_key]


def _size(groups: list[Numbers]) -> int:
    return sum(map(len, groups))


def _keys(member: Filter) -> list[Key]:
    """Where a member is found: by what is in its example at the paths that it speaks of, and above them."""
    example = member.example()
    if example is None:
        return [NOWHERE]
    found: dict[Key, None] = {}
    for path in [path for box in member.region.boxes for path, _ in box.sets]:
        value = EVENT.read(example, path)
        if value is not MISSING:
            for end in range(2, len(path)):
                found[path[:end], ANY] = None
            found[path, ANY] = None
            if not isinstance(value, dict | list):
                found[path, key_of(value)] = None
    return list(found)
