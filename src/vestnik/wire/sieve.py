"""Finds, among packed events, the few that a filter may match, without unpacking the others.

Every box of a filter says of some path that a value must be there. Then the name of the path and the packed value stand
side by side in the bytes of an event that matches. What has no such place cannot match; what has one may.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from vestnik.model.boxes import Box
from vestnik.model.cuts import ALL_NUMBERS, intervals
from vestnik.model.envelope import MEDIUM
from vestnik.model.filters import Filter
from vestnik.model.regions import Region
from vestnik.model.spaces import DATA, Path
from vestnik.model.strings import StringSet
from vestnik.model.values import FLAG_FALSE, FLAG_MAP, FLAG_MISSING, FLAG_NULL, FLAG_TRUE, PRESENT, ValueSet
from vestnik.wire import encodings

MOST_WORDS: Final = 16
"""Words that are looked for. Each of them is another pass over the bytes."""
LONG: Final = 4
"""Bytes of a word that few events have by chance."""
NAMELESS: Final = (("type",), ("source",), ("id",))
"""Paths whose values are packed without a name."""
FLAGS: Final = (
    (FLAG_NULL, encodings.NULL),
    (FLAG_FALSE, encodings.FALSE),
    (FLAG_TRUE, encodings.TRUE),
    (FLAG_MAP, encodings.ANY_MAP),
)


class Sieve(NamedTuple):
    """Every packed event that may match has a place that one of the patterns matches."""

    patterns: tuple[re.Pattern[bytes], ...]

    def lets_through(self, packed: bytes) -> bool:
        return any(pattern.search(packed) for pattern in self.patterns)


class Clue(NamedTuple):
    """A word that is in every event of a box, and an expression for the bytes after it. The lowest rank is best."""

    rank: int
    word: bytes
    after: bytes


@lru_cache(maxsize=256)
def sieve_of(filters: tuple[Filter, ...]) -> Sieve | None:
    """Return a sieve for what any of some filters matches; None if they leave nothing to look for."""
    clues = _clues_of([box for one in filters for box in one.region.boxes])
    if not clues:
        return None
    words: dict[bytes, list[bytes]] = {}
    for clue in clues:
        words.setdefault(clue.word, []).append(clue.after)
    if len(words) > MOST_WORDS:
        return None
    return Sieve(tuple([_pattern(word, after) for word, after in words.items()]))


def _pattern(word: bytes, after: Iterable[bytes]) -> re.Pattern[bytes]:
    return re.compile(re.escape(word) + encodings.one_of(after), re.DOTALL)


def _clues_of(boxes: Iterable[Box]) -> list[Clue] | None:
    """Return clues of which each event in any of the boxes has one; None if some box has none."""
    found: list[Clue] = []
    for box in boxes:
        choices = [clues for path, values in box.sets for clues in _choices(path, values)]
        if not choices:
            return None
        found += min(choices, key=_rank)
    return found


def _rank(clues: Iterable[Clue]) -> int:
    return max([clue.rank for clue in clues])


def _choices(path: Path, values: ValueSet) -> list[list[Clue]]:
    """Return sets of clues; each event with one of the values at the path has one of each set."""
    if values.flags & FLAG_MISSING or path == ("seq",) or (path == ("priority",) and values.contains(MEDIUM)):
        return []  # it may be missing in the bytes
    choices = []
    if not path or path in NAMELESS:
        words = _words(values)
        choices += [words] if words is not None else []
    elif path != (DATA,):
        choices.append([Clue(_rank_of(values), path[-1].encode(), _packed(values))])
    if len(values.lists) == 1 and values == ValueSet(lists=values.lists):
        for some in values.lists[0].some:
            elements = _clues_of(some.boxes) if isinstance(some, Region) else None
            choices += [elements] if elements else []
    return choices


def _words(values: ValueSet) -> list[Clue] | None:
    """Return the words with which strings begin that have no name before them; None if some begin with anything."""
    if values != ValueSet(strings=values.strings) or values.strings.automaton is not None:
        return None
    if values.strings.points is not None:
        found = [(point.encode(), b"") for point in values.strings.points]
    else:
        found = [encodings.prefix(low, high) for low, high in intervals(values.strings.cuts)]
    if not all(word for word, _ in found):
        return None
    return [Clue(1 if len(word) >= LONG else 5, word, after) for word, after in found]


def _packed(values: ValueSet) -> bytes:
    """Return an expression for any of some values as they are packed."""
    if values == PRESENT:
        return b""
    parts = [packed for flag, packed in FLAGS if values.flags & flag]
    if values.numbers:
        parts.append(encodings.ANY_NUMBER if values.numbers == ALL_NUMBERS else encodings.numbers(values.numbers))
    if values.strings:
        parts.append(encodings.strings(values.strings))
    if values.lists:
        parts.append(encodings.ANY_LIST)
    return encodings.one_of(parts)


def _rank_of(values: ValueSet) -> int:
    """Return how good a clue is that these values are at some path, from 0 for the best."""
    if values.flags or values.lists or (values.numbers and values.strings):
        return 6 if values.lists or values.flags & FLAG_MAP else 5
    if values.strings:
        return _rank_of_strings(values.strings)
    spans = intervals(values.numbers)
    if all(high is not None and high[0] == low[0] for low, high in spans):
        return 0
    return 3 if spans[-1][1] is not None and values.numbers[0] != ALL_NUMBERS[0] else 4


def _rank_of_strings(strings: StringSet) -> int:
    if strings.points is not None:
        return 0
    starts = [encodings.prefix(low, high)[0] for low, high in intervals(strings.cuts)]
    return 2 if starts and all(starts) else 6
