"""Filters and events that have something to do with each other.

A vocabulary is drawn first: a few paths, some of which extend others, a few constants, a few patterns. Filters and
events are made of it, so that they meet, touch and miss each other. A filter is drawn as a syntax tree and written out
by `text_of`, in one of many ways to write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, TypeAlias, TypeVar

from hypothesis import reject
from hypothesis import strategies as st

from vestnik import Event, Filter, FilterTooComplex
from vestnik.model import syntax
from vestnik.model.keywords import KEYWORDS
from vestnik.model.parser import KINDS
from vestnik.model.spaces import ENVELOPE_PATHS, Path
from vestnik.model.syntax import Node, Scalar, Test
from vestnik.model.times import FIRST, LAST, format_rfc3339

STRINGS = (
    "", "a", "b", "ab", "a\0", "a/b", "/a/b", "/", "A", "t", "t.u", "é", "\ud7ff", "\ue000", "\U0010ffff", "\U0001f600",
    "\0", "'", '"', "%", "_", "\\", "a%", "10", "a.b", "\n", "a\U0010ffff", "t.", "t/",
)  # fmt: skip
NUMBERS = (
    0, 1, 2, 3, -1, 4, 9, 10, 1.5, 0.1, -0.0, 1.0, 1e300, -1e300, 5e-324, 2**53, 2**53 + 1, float(2**53), 2**63 - 1,
    -(2**63), float(2**63), FIRST, LAST, 1_700_000_000_000_000,
)  # fmt: skip
SCALARS: tuple[Scalar, ...] = (*STRINGS, *NUMBERS, None, True, False)
TYPES = ("t", "t.u", "t.u.v", "x y", "t.é", "is", "u")
LIKES = (
    "%", "_", "a%", "%a", "%a%", "a_", "_b%", "ab", "", "a%b", "%%a", "é%", "/a%", "a\U0010ffff%", "%\0", "__", "%_%",
)  # fmt: skip
ESCAPED = (("!%", "!"), ("a!_%", "!"), ("!!%", "!"), ("%%_", "%"), ("\\%%", "\\"), ("a__", "_"), ("'%'_", "'"))
GLOBS = ("**", "*", "a", "/a/*", "/a/**", "**/b", "/*/b", "a*", "/**/b", "**/a/**", "", "/", "a/**/b", "*a*/b", "**/")
REGEXES = (
    "a*", "a|b", "(ab)+", "[ab]{1,2}", "[^a]", ".*", "", "a.", "(?i)ab", "(?i)é.*", "a?b?", "(a|b)*a", "[/a]+", "\\.",
    ".", "a\\*", "(a|)(b|)", "'", "\U0001f600.*", "[^/]*/b",
)  # fmt: skip
ENVELOPE: tuple[Path, ...] = tuple((name,) for name in ("type", "subject", "priority", "time", "seq", "source"))
RARE: tuple[Path, ...] = (("id",), ("not_before",), ("expires",))
DATA: tuple[Path, ...] = (
    ("data", "a"), ("data", "a", "b"), ("data", "a", "b", "c"), ("data", "a", "c"), ("data", "odd name"),
    ("data", "type"), ("data", "x"), ("data", "x", "IN"),
)  # fmt: skip
FIELDS: tuple[Path, ...] = ((), ("b",), ("b", "c"), ("type",), ("odd name",))
FILTERS = ("TRUE", "a = 1", "a > 1", "FALSE", "NOT (a = 1 OR b = 'it''s')")
PATHS = (*DATA, *DATA, *ENVELOPE, *RARE)
PATTERNS = (
    *(("LIKE", text, None) for text in LIKES),
    *(("LIKE", text, escape) for text, escape in ESCAPED),
    *(("GLOB", text, None) for text in GLOBS),
    *(("MATCHES", text, None) for text in REGEXES),
)
Leaf: TypeAlias = syntax.Condition | syntax.Quantified | syntax.Added

Option = TypeVar("Option")
_BELOW = [st.integers(0, n - 1) for n in range(1, 200)]


class Pick:
    """Choices, each one draw from hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def below(self, n: int) -> int:
        return self._draw(_BELOW[n - 1])

    def one(self, options: Sequence[Option]) -> Option:
        return options[self.below(len(options))]

    def some(self, options: Sequence[Option], low: int, high: int) -> list[Option]:
        return [self.one(options) for _ in range(low + self.below(high - low + 1))]

    def chance(self, one_in: int = 2) -> bool:
        return self.below(one_in) == one_in - 1


@dataclass(frozen=True)
class Vocabulary:
    """What the filters and events of one example are made of."""

    paths: list[Path]
    fields: list[Path]
    literals: list[Scalar]
    patterns: list[tuple[str, str, str | None]]
    added: bool

    @cached_property
    def near(self) -> list[Scalar]:
        """The constants, and what lies just beside them."""
        found: list[Scalar] = [None, True, False, *self.literals]
        for literal in self.literals:
            if isinstance(literal, str):
                found += [literal + "\0", literal + "a", literal[:-1], literal.upper(), literal + "/b", "b" + literal]
            elif isinstance(literal, float):
                found += [literal * 2, literal / 2, int(literal) if abs(literal) < 2**63 else -literal]
            elif isinstance(literal, int) and not isinstance(literal, bool):
                found += [min(literal + 1, 2**63 - 1), max(literal - 1, -(2**63)), literal + 0.5, float(literal)]
        return found


def vocabulary(pick: Pick, added: bool) -> Vocabulary:
    return Vocabulary(
        paths=pick.some(PATHS, 1, 3),
        fields=pick.some(FIELDS, 1, 2),
        literals=pick.some(pick.one([NUMBERS[:9], STRINGS[:9], SCALARS, SCALARS]), 1, 4),
        patterns=pick.some(PATTERNS, 1, 2),
        added=added and pick.chance(8),
    )


# --- trees ---


def condition(pick: Pick, words: Vocabulary, of_type: bool = False) -> Test:
    """What can be said of a value; with `of_type`, of the envelope's type."""
    if of_type and pick.chance():
        return syntax.IsType(pick.one(TYPES))
    match pick.below(9):
        case 0 | 1:
            return syntax.Comparison(pick.one(["=", "!="]), pick.one(words.literals))
        case 2 | 3:
            return syntax.Comparison(pick.one(["<", "<=", ">", ">="]), _ordered(pick.one(words.literals)))
        case 4:
            low, high = _ordered(pick.one(words.literals)), _ordered(pick.one(words.literals))
            return syntax.Between(low, high if isinstance(high, str) == isinstance(low, str) else low, pick.chance())
        case 5:
            return syntax.In(tuple(pick.some(words.literals, 1, 3)), pick.chance())
        case 6 | 7:
            return syntax.PatternTest(*pick.one(words.patterns), negated=pick.chance())
        case _:
            return syntax.IsKind(pick.one(KINDS), pick.chance())


def _ordered(literal: Scalar) -> str | int | float:
    return 1 if literal is None or isinstance(literal, bool) else literal


def leaf(pick: Pick, words: Vocabulary, deep: int = 0, path: Path | None = None) -> Leaf:
    """One condition, at `path` if given; `deep` counts the lists around it."""
    if path is None:
        path = pick.one(words.fields if deep else words.paths)
    match pick.below(10):
        case 0:
            return syntax.Condition(path, syntax.Exists())
        case 1 if words.added:
            return syntax.Added("OVERLAPS", path, (pick.one(FILTERS),))
        case 2 | 3 | 4 if deep < 2 and (deep or path[0] == "data"):
            return quantified(pick, words, path, deep)
        case _:
            return syntax.Condition(path, condition(pick, words, of_type=not deep and path == ("type",)))


def quantified(pick: Pick, words: Vocabulary, path: Path, deep: int) -> syntax.Quantified:
    quantifier = pick.one(["ANY", "ALL"])
    if pick.chance():
        return syntax.Quantified(quantifier, path, syntax.Condition((), condition(pick, words)), False)
    inner = tree(pick, words, deep + 1, 3)
    return syntax.Quantified(quantifier, path, inner, not mentions_element(inner))


def mentions_element(inner: Node) -> bool:
    """Whether `@` stands somewhere in `inner` for the element that `inner` is about."""
    match inner:
        case syntax.And(parts) | syntax.Or(parts):
            return any(map(mentions_element, parts))
        case syntax.Not(part):
            return mentions_element(part)
        case syntax.Constant():
            return False
        case _:
            return inner.path == ()


def tree(pick: Pick, words: Vocabulary, deep: int = 0, most: int = 5) -> Node:
    """A filter of at most `most` conditions, and some more."""
    size = 1 + pick.below(most)
    if size == 1:
        return leaf(pick, words, deep) if pick.below(12) < 11 else syntax.Constant(pick.chance())
    match pick.below(4):
        case 0:
            return syntax.Not(tree(pick, words, deep, size))
        case way:
            left = 1 + pick.below(size - 1)
            parts = [tree(pick, words, deep, left), tree(pick, words, deep, size - left)]
            if pick.chance(4):
                parts.append(leaf(pick, words, deep))
            return syntax.And(tuple(parts)) if way == 1 else syntax.Or(tuple(parts))


def box(pick: Pick, words: Vocabulary) -> Node:
    """A conjunction of conditions, some denied: one box, unless a condition takes several."""
    parts = [leaf(pick, words) for _ in range(1 + pick.below(4))]
    return syntax.And(tuple(syntax.Not(part) if pick.chance(3) else part for part in parts))


# --- text ---


def text_of(node: Node, spelling: int = 0) -> str:
    """A text that parses to `node`; other spellings differ in case, blanks, quotes and needless parentheses."""
    return _Writer(Random(spelling) if spelling else None).filter(node, in_element=False)


class _Writer:
    def __init__(self, chance: Random | None) -> None:
        self._chance = chance

    def _maybe(self) -> bool:
        return self._chance is not None and self._chance.random() < 0.3

    def _word(self, word: str) -> str:
        return word.lower() if self._maybe() else word

    def _blank(self) -> str:
        return self._chance.choice([" ", "  ", "\n", "\t "]) if self._chance is not None and self._maybe() else " "

    def filter(self, node: Node, in_element: bool) -> str:
        match node:
            case syntax.And(parts) | syntax.Or(parts):
                word = self._word("AND" if isinstance(node, syntax.And) else "OR")
                tight = syntax.Or if isinstance(node, syntax.And) else syntax.Constant
                texts = [self._unit(part, in_element, isinstance(part, (tight, type(node)))) for part in parts]
                return f"{self._blank()}{word}{self._blank()}".join(texts)
            case syntax.Not(inner):
                return f"{self._word('NOT')} {self._unit(inner, in_element, isinstance(inner, syntax.And | syntax.Or))}"
            case syntax.Constant(value):
                return self._word(str(value).upper())
            case syntax.Condition(path, syntax.Exists()):
                return f"{self._word('EXISTS')} {self.path(path, in_element)}"
            case syntax.Condition(path, test):
                return f"{self.path(path, in_element)}{self._test(test)}"
            case syntax.Quantified():
                return self._quantified(node, in_element)
            case syntax.Added(name, path, literals):
                given = ",".join([self.path(path, in_element), *map(self.scalar, literals)])
                return f"{self._word(name)}({given})"

    def _unit(self, node: Node, in_element: bool, parenthesised: bool) -> str:
        text = self.filter(node, in_element)
        return f"({text})" if parenthesised or self._maybe() else text

    def _quantified(self, node: syntax.Quantified, in_element: bool) -> str:
        head = f"{self._word(node.quantifier)} {self.path(node.path, in_element)}"
        match node.inner:
            case syntax.Condition((), test) if not isinstance(test, syntax.Exists) and not self._maybe():
                return f"{head}{self._test(test)}"
        return f"{head}{self._blank()}({self.filter(node.inner, in_element=True)})"

    def path(self, path: Path, in_element: bool) -> str:
        if in_element and not path:
            return "@"
        if not in_element and path[0] == "data" and path[1] not in ENVELOPE_PATHS and not self._maybe():
            path = path[1:]
        return ".".join(self._name(name) for name in path)

    def _name(self, name: str) -> str:
        if name.isidentifier() and name.upper() not in KEYWORDS and not self._maybe():
            return name
        return '"' + name.replace('"', '""') + '"'

    def _test(self, test: Test) -> str:
        denied = f" {self._word('NOT')}" if getattr(test, "negated", False) else ""
        match test:
            case syntax.Comparison(operator, literal):
                blank = "" if self._maybe() else " "
                return f"{blank}{operator}{blank}{self.scalar(literal)}"
            case syntax.Between(low, high):
                return f"{denied} {self._word('BETWEEN')} {self.scalar(low)} {self._word('AND')} {self.scalar(high)}"
            case syntax.In(literals):
                return f"{denied} {self._word('IN')}{self._blank()}({','.join(map(self.scalar, literals))})"
            case syntax.PatternTest(verb, pattern, escape):
                tail = "" if escape is None else f" {self._word('ESCAPE')} {self.scalar(escape)}"
                return f"{denied} {self._word(verb)} {self.scalar(pattern)}{tail}"
            case syntax.IsKind(kind):
                return f" {self._word('IS')}{denied} {self._word(kind)}"
            case syntax.IsType(name):
                plain = all(part.isidentifier() and part.upper() not in KEYWORDS for part in name.split("."))
                return f" {self._word('IS')} {name if plain and not self._maybe() else self.scalar(name)}"
            case syntax.Exists():
                raise AssertionError("EXISTS comes before its path")

    def scalar(self, value: Scalar) -> str:
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        if value is None or isinstance(value, bool):
            return self._word("NULL" if value is None else str(value).upper())
        if isinstance(value, int) and FIRST <= value <= LAST and self._maybe():
            return f"{self._word('TIMESTAMP')} '{format_rfc3339(value)}'"
        return repr(value)


# --- events ---


def value(pick: Pick, words: Vocabulary, deep: int = 0) -> Any:
    """A value that may mean something to filters of this vocabulary."""
    match pick.below(10):
        case 0 | 1 | 2 if deep < 3:
            return [value(pick, words, deep + 1) for _ in range(pick.below(4))]
        case 3 | 4 | 5 if deep < 3:
            names = pick.some(["b", "c", "type", "odd name", "IN"], 0, 3)
            return {name: value(pick, words, deep + 1) for name in names}
        case 6:
            return pick.one([*FILTERS, "no filter", ""]) if words.added else "".join(pick.some("ab/%t.", 0, 4))
        case _:
            return pick.one(words.near)


def event(pick: Pick, words: Vocabulary) -> Event:
    names = [s for s in (*(text for text in words.near if isinstance(text, str)), "/a/b", "x") if s]
    whole = [int(n) for n in words.near if isinstance(n, int | float) and abs(n) < 2**63] + [0]
    instants = [None, *(n for n in whole if FIRST <= n <= LAST)]
    named = {path[0] if path[0] != "data" else path[1] for path in words.paths}
    return Event(
        pick.one([*TYPES, *(n for n in names if all(n.split(".")))]),
        {name: value(pick, words) for name in sorted(named) if not pick.chance(6)},
        source=pick.one(names) if "source" in named else "s",
        id=pick.one(names) if "id" in named else "i",
        subject=pick.one([None, *names]) if "subject" in named else None,
        time=pick.one(instants) if "time" in named else None,
        priority=pick.one([4, *(n for n in whole if 0 <= n <= 9)]),
        not_before=pick.one(instants) if "not_before" in named else None,
        expires=pick.one(instants) if "expires" in named else None,
        seq=pick.one([None, 1, *(n for n in whole if n >= 1)]) if "seq" in named else None,
    )


# --- what the laws are given ---


@dataclass(frozen=True)
class Case:
    """Trees of one vocabulary, and events."""

    trees: list[Node]
    events: list[Event]
    spelling: int

    def __repr__(self) -> str:
        return "\n".join(["Case:", *(f"  {text_of(node)}" for node in self.trees), *(f"  {e!r}" for e in self.events)])

    @cached_property
    def filters(self) -> list[Filter]:
        """The filters; an example that is beyond the limits is another law's."""
        try:
            return [Filter.parse(text_of(node)) for node in self.trees]
        except FilterTooComplex:
            reject()


@st.composite
def cases(
    draw: st.DrawFn, trees: int = 1, events: int = 0, added: bool = True, single: bool = False, size: int = 5
) -> Case:
    """Filters of one vocabulary and events. Not `added`: without kinds from outside; `single`: conjunctions."""
    pick = Pick(draw)
    words = vocabulary(pick, added)
    nodes = [box(pick, words) if single else tree(pick, words, most=size) for _ in range(trees)]
    return Case(nodes, [event(pick, words) for _ in range(events)], pick.below(20))


@st.composite
def neighbours(draw: st.DrawFn) -> Case:
    """Two conjunctions that differ in one path: the same conditions, but for one at the same place."""
    pick = Pick(draw)
    words = vocabulary(pick, added=False)
    common = [leaf(pick, words) for _ in range(pick.below(4))]
    path = pick.one(words.paths)
    ends: list[Node] = [leaf(pick, words, path=path) for _ in range(2)]
    ends = [syntax.Not(end) if pick.chance() else end for end in ends]
    return Case([syntax.And((*common, end)) if common else end for end in ends], [], 0)
