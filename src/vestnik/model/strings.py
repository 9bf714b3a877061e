"""Sets of strings: intervals in code-point order where they suffice, an automaton where not.

The form is a function of the set: it is intervals exactly when the set is a union of few
enough of them, so equal sets are equal objects. A set that came from patterns also remembers
them, as an expression that prints; the expression takes no part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any, TypeAlias

from vestnik.model import cuts as line
from vestnik.model.cuts import ALL_STRINGS, STRING_BOTTOM, StringCuts
from vestnik.model.regular.automata import Automaton
from vestnik.model.regular.patterns import compile_glob, compile_like
from vestnik.model.regular.regex import compile_regex

LONG_TEXT = 256
"""Length from which searching a text for the literal parts of a LIKE is faster than running its automaton."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as it was written: `verb` is LIKE, GLOB or MATCHES."""

    verb: str
    text: str
    escape: str | None = None


@dataclass(frozen=True, slots=True)
class Combination:
    """AND, OR or NOT of string expressions; a bare tuple of cuts is an expression too."""

    verb: str
    parts: tuple[Expression, ...]


Expression: TypeAlias = Pattern | Combination | StringCuts


@dataclass(frozen=True, slots=True)
class StringSet:
    """`cuts` describe the set, or `automaton` does and `origin` says how it was written."""

    cuts: StringCuts
    automaton: Automaton | None = None
    origin: Expression = field(default=(), compare=False)

    @staticmethod
    def like(pattern: str, escape: str | None = None) -> StringSet:
        simple = _without_wildcards(pattern) if escape is None else None
        if simple is not None:
            return StringSet(simple)
        return _of_automaton(compile_like(pattern, escape), Pattern("LIKE", pattern, escape))

    @staticmethod
    def glob(pattern: str) -> StringSet:
        return _of_automaton(compile_glob(pattern), Pattern("GLOB", pattern))

    @staticmethod
    def regex(pattern: str) -> StringSet:
        return _of_automaton(compile_regex(pattern), Pattern("MATCHES", pattern))

    @staticmethod
    def of(expression: Expression) -> StringSet:
        """The set that an expression describes."""
        if isinstance(expression, tuple):
            return StringSet(expression)
        if isinstance(expression, Pattern):
            if expression.verb == "LIKE":
                return StringSet.like(expression.text, expression.escape)
            return (StringSet.glob if expression.verb == "GLOB" else StringSet.regex)(expression.text)
        first, *rest = (StringSet.of(part) for part in expression.parts)
        for other in rest:
            first = first.union(other) if expression.verb == "OR" else first.intersection(other)
        return first.complement() if expression.verb == "NOT" else first

    @property
    def expression(self) -> Expression:
        return self.cuts if self.automaton is None else self.origin

    def __bool__(self) -> bool:
        return bool(self.cuts) or self.automaton is not None

    def __contains__(self, text: str) -> bool:
        if self.automaton is None:
            return line.contains(self.cuts, text)
        if len(text) > LONG_TEXT and isinstance(self.origin, Pattern):
            parts = _literal_parts(self.origin)
            if parts is not None:
                return _has_in_order(text, parts)
        return self.automaton.accepts(text)

    def complement(self) -> StringSet:
        if self.automaton is None:
            return StringSet(line.complement(self.cuts, STRING_BOTTOM))
        return _of_automaton(self.automaton.complement(), _negated(self.origin))

    def union(self, other: StringSet) -> StringSet:
        if self.automaton is None and other.automaton is None:
            return StringSet(line.union(self.cuts, other.cuts))
        if not self or other.is_everything:
            return other
        if not other or self.is_everything or self == other:
            return self
        return _choose(_automaton(self).union(_automaton(other)), "OR", self, other)

    def intersection(self, other: StringSet) -> StringSet:
        if self.automaton is None and other.automaton is None:
            return StringSet(line.intersection(self.cuts, other.cuts))
        if not self or other.is_everything:
            return self
        if not other or self.is_everything or self == other:
            return other
        for some, points in ((self, other.points), (other, self.points)):
            if points is not None:
                return StringSet(line.string_points(p for p in points if p in some))
        return _choose(_automaton(self).intersection(_automaton(other)), "AND", self, other)

    def includes(self, other: StringSet) -> bool:
        if self.automaton is None and other.automaton is None:
            return line.includes(self.cuts, other.cuts)
        points = other.points
        if points is not None:
            return all(p in self for p in points)
        return self == other or _automaton(self).includes(_automaton(other))

    def sort_key(self) -> tuple[Any, ...]:
        """What orders string sets the same way in every process."""
        if self.automaton is None:
            return 0, self.cuts
        return 1, self.automaton.starts, self.automaton.targets, self.automaton.accepting

    @property
    def is_everything(self) -> bool:
        return self.cuts == ALL_STRINGS

    @property
    def points(self) -> list[str] | None:
        """The strings of the set where it is nothing but single strings, else None."""
        cuts = self.cuts
        if self.automaton is not None or len(cuts) % 2:
            return None
        out: list[str] = []
        for low, high in zip(cuts[0::2], cuts[1::2], strict=True):
            while low < high and len(low) <= len(high):
                out.append(low)
                low += "\0"
            if low != high:
                return None
        return out


NO_STRINGS = StringSet(())
EVERY_STRING = StringSet(ALL_STRINGS)


def _without_wildcards(pattern: str) -> StringCuts | None:
    """The intervals of a constant or of a prefix with one trailing `%`; None for other patterns."""
    stem = pattern.rstrip("%")
    if "%" in stem or "_" in stem:
        return None
    if stem == pattern:
        return line.string_points([pattern])
    return line.string_range(stem, line.after_prefix(stem))


@lru_cache(maxsize=4096)
def _literal_parts(pattern: Pattern) -> tuple[str, ...] | None:
    """Return the parts between the `%` of a LIKE without other wildcards, or None for other patterns."""
    if pattern.verb != "LIKE" or pattern.escape is not None or "_" in pattern.text:
        return None
    return tuple(pattern.text.split("%"))


def _has_in_order(text: str, parts: tuple[str, ...]) -> bool:
    """Return whether `text` starts with the first part, ends with the last, and has the others in order in between."""
    first, *others, last = parts
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in others:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _automaton(strings: StringSet) -> Automaton:
    return strings.automaton or Automaton.from_intervals(line.intervals(strings.cuts))


def _of_automaton(automaton: Automaton, origin: Expression) -> StringSet:
    found = automaton.intervals()
    if found is None:
        return StringSet((), automaton, origin)
    return StringSet(tuple(cut for pair in found for cut in pair if cut is not None))


def _choose(automaton: Automaton, verb: str, a: StringSet, b: StringSet) -> StringSet:
    """The set of `automaton`, written as one of its operands where it equals it."""
    for operand in (a, b):
        if operand.automaton == automaton:
            return operand
    return _of_automaton(automaton, _combined(verb, a.expression, b.expression))


def _combined(verb: str, *expressions: Expression) -> Expression:
    """The AND or OR, without nesting of the same verb, its parts once each and in a fixed order."""
    parts = [part for e in expressions for part in (e.parts if isinstance(e, Combination) and e.verb == verb else (e,))]
    combine = line.union if verb == "OR" else line.intersection
    cuts = [part for part in parts if isinstance(part, tuple)]
    others = sorted({part for part in parts if not isinstance(part, tuple)}, key=repr)
    return Combination(verb, (*([reduce(combine, cuts)] if cuts else []), *others))


def _negated(origin: Expression) -> Expression:
    if isinstance(origin, Combination) and origin.verb == "NOT":
        return origin.parts[0]
    return Combination("NOT", (origin,))
