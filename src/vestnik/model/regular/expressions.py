"""Regular expressions as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from vestnik.model.regular.tables import END, PAST_SURROGATES, SURROGATES


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set; `cuts` are the code points where membership changes, beginning outside."""

    cuts: tuple[int, ...]

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> Chars:
        """The characters of the inclusive `ranges`, surrogates left out."""
        cuts: list[int] = []
        for low, high in sorted(ranges):
            low = PAST_SURROGATES if SURROGATES <= low < PAST_SURROGATES else low
            end = PAST_SURROGATES if SURROGATES <= high + 1 < PAST_SURROGATES else high + 1
            if cuts and low <= cuts[-1]:
                cuts[-1] = max(cuts[-1], end)
            elif low < end:
                cuts += (low, end)
        return cls(tuple(cuts[:-1] if cuts and cuts[-1] == END else cuts))

    @classmethod
    def one(cls, char: str) -> Chars:
        """Just `char`; a lone surrogate is in no text and matches nothing."""
        return cls.of([(ord(char), ord(char))])

    def ranges(self) -> list[tuple[int, int]]:
        return [(low, end - 1) for low, end in zip(self.cuts[::2], (*self.cuts, END)[1::2], strict=False)]

    def negated(self) -> Chars:
        return Chars(self.cuts[1:] if self.cuts[:1] == (0,) else (0, *self.cuts))


@dataclass(frozen=True, slots=True)
class Concat:
    """One part after the other; with none, the empty string."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of the parts; with none, no string at all."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`part` from `low` to `high` times; no end to it with None."""

    part: Expression
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """The empty string, but only at the end of the text, or else only at its beginning."""

    at_end: bool


Expression: TypeAlias = "Chars | Concat | Choice | Repeat | Edge"
ANY = Chars((0,))
ANYTHING = Repeat(ANY, 0, None)
EMPTY = Concat(())
