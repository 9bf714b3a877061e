"""Which of many filters cover a given one, and which does it cover.

Both questions are narrowed down by examples: a filter matches the example of whatever it covers. A filter *has* the
keys of its example, the values in it and where they are. And it *asks* for keys, for one at least of each choice. What
covers another asks for what the other has; so members are kept by what they have, for the one question, and by what
they ask for, for the other. Where that leaves many, a matcher says which of them match the example. The candidates are
then asked by the algebra.

The indexes that a broker has for its neighbours hold nearly the same, and the same is asked of each. They share a
catalogue: a filter is filed there once for all of them, and what was found for one is there for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple, TypeAlias
from weakref import finalize

from vestnik.matching import Matcher
from vestnik.matching.single.keys import key_of, single_values
from vestnik.model.boxes import Box
from vestnik.model.filters import Filter
from vestnik.model.spaces import DATA, EVENT, Path
from vestnik.model.values import FLAG_MISSING, MISSING, ValueSet

Key: TypeAlias = tuple[Path, Any]
"""A path and a value there, or that there is ANY."""

Choice: TypeAlias = tuple[Key, ...]
"""Keys of which an event must have one."""

Shelves: TypeAlias = dict[Key, dict[int, None]]
"""Members by key, as numbers that rise in the order in which they came."""

ANY = object()
ROOT: Key = (), ANY
"""What every example has."""
NOWHERE: Key = (), None
"""What filters have of which no example is found."""

FEW_MEMBERS = 16
"""Members that are all asked: to narrow them down further would cost more."""

MANY = 32
"""Values that a filter is not kept by one by one: merged filters have hundreds, and change with each that joins."""

REMEMBERED = 32_768
"""Filters whose keys are remembered: one that is new at a broker is soon new at others, and for other neighbours."""


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
        self._filed = _Filed()
        self._wider = self._narrower = _Answers(Filter.none(), (), bool)  # to the last questions

    def __len__(self) -> int:
        return len(self._members)

    def add(self, member: Filter) -> None:
        """One more index has a filter."""
        indexes = self._members[member] = self._members.get(member, 0) + 1
        if indexes == 1:
            self._filed.add(member)
            self._wider.join(member)
            self._narrower.join(member)

    def remove(self, members: Iterable[Filter]) -> None:
        """One index less has these filters."""
        for member in members:
            self._members[member] -= 1
            if not self._members[member]:
                del self._members[member]
                self._filed.remove(member)

    def covering(self, narrow: Filter) -> _Answers:
        """Which members cover `narrow`."""
        if self._wider.about is not narrow:
            self._wider = _Answers(narrow, self._filed.around(narrow), lambda member: member.covers(narrow))
        return self._wider

    def covered_by(self, wide: Filter) -> _Answers:
        """Which members `wide` covers."""
        if self._narrower.about is not wide:
            self._narrower = _Answers(wide, self._filed.inside(wide), wide.covers)
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


class _Filed:
    """Members by what they have and by what they ask for."""

    def __init__(self) -> None:
        self._count = count()
        self._members: dict[int, Filter] = {}
        self._places: dict[Filter, tuple[int, Choice]] = {}  # the number of a member, and what it is kept by in asking
        self._having: Shelves = {}
        self._asking: Shelves = {}
        self._matcher: Matcher[int] = Matcher()
        self._unasked: dict[int, Filter] = {}  # came since the matcher was last asked, and are not in it

    def add(self, member: Filter) -> None:
        number = next(self._count)
        had, boxes = _keys(member)
        asked = tuple([key for choices in boxes for key in min(choices, key=self._crowd)])
        self._members[number] = self._unasked[number] = member
        self._places[member] = number, asked
        _put(self._having, had, number)
        _put(self._asking, asked, number)

    def remove(self, member: Filter) -> None:
        number, asked = self._places.pop(member)
        del self._members[number]
        _take(self._having, _keys(member).had, number)
        _take(self._asking, asked, number)
        if number in self._unasked:
            del self._unasked[number]
        else:
            self._matcher.remove(number)

    def around(self, narrow: Filter) -> Iterable[Filter]:
        """Members, among them all that cover `narrow`."""
        example = narrow.example()
        if example is None:
            return self._members.values()
        found = _among(self._asking, _keys(narrow).had)
        if len(found) > FEW_MEMBERS:
            for number, member in self._unasked.items():
                self._matcher.add(number, member)
            self._unasked.clear()
            found = self._matcher.match(example)
        return [self._members[number] for number in sorted(found)]

    def inside(self, wide: Filter) -> Iterable[Filter]:
        """Members, among them all that `wide` covers."""
        boxes = _keys(wide).asked
        nearest = [key for choices in boxes for key in min(choices, key=lambda keys: _size(self._having, keys))]
        return [self._members[number] for number in sorted(_among(self._having, (NOWHERE, *nearest)))]

    def _crowd(self, choice: Choice) -> tuple[bool, int]:
        """How many are kept by these keys already. By values, if there are any, fewer are found that do not cover."""
        return choice[0][1] is ANY, _size(self._asking, choice)


def _put(shelves: Shelves, keys: Choice, number: int) -> None:
    for key in keys:
        if key in shelves:
            shelves[key][number] = None
        else:
            shelves[key] = {number: None}


def _take(shelves: Shelves, keys: Choice, number: int) -> None:
    for key in dict.fromkeys(keys):
        del shelves[key][number]
        if not shelves[key]:
            del shelves[key]


def _among(shelves: Shelves, keys: Choice) -> set[int]:
    """The members that are kept by one of these keys."""
    return {number for key in keys if key in shelves for number in shelves[key]}


def _size(shelves: Shelves, keys: Choice) -> int:
    return sum([len(shelves[key]) for key in keys if key in shelves])


class _Keys(NamedTuple):
    """What the example of a filter has, and the choices that each of its boxes asks for."""

    had: Choice
    asked: tuple[tuple[Choice, ...], ...]


@lru_cache(REMEMBERED)
def _keys(one: Filter) -> _Keys:
    boxes = one.region.boxes
    return _Keys(_had(one), tuple([_asked(box, alone=len(boxes) == 1) for box in boxes]))


def _had(one: Filter) -> Choice:
    """What is in the example at the paths that a filter speaks of, and above them."""
    example = one.example()
    if example is None:
        return (NOWHERE,)
    found: dict[Key, None] = {ROOT: None}
    for path in [path for box in one.region.boxes for path, _ in box.sets]:
        value = EVENT.read(example, path)
        if value is not MISSING:
            for end in range(2, len(path)):
                found[path[:end], ANY] = None
            found[path, ANY] = None
            if not isinstance(value, dict | list):
                found[path, key_of(value)] = None
    return tuple(found)


def _asked(box: Box, *, alone: bool) -> tuple[Choice, ...]:
    """What the example of whatever is in `box`, and if it is `alone`, of whatever it covers, must have.

    A filter has only what it speaks of. Its example has some `type` and `priority` all the same: one box that asks for
    these cannot cover it, several together may.
    """
    choices: list[Choice] = []
    for path, values in box.sets:
        if not values.flags & FLAG_MISSING and (alone or path[0] == DATA):
            singles = None if _is_many(values) else single_values(values)
            choices.append(((path, ANY),) if singles is None else tuple([(path, key) for key in singles]))
    return tuple(choices) or ((ROOT,),)


def _is_many(values: ValueSet) -> bool:
    return len(values.numbers) + len(values.strings.cuts) > 2 * MANY
