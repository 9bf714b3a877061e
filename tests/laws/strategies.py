"""Filters and events that have something to do with each other.

A vocabulary is drawn first: a few paths, some of which extend others, a few constants, a few patterns. Filters and
events are made of it, so that they meet, touch and miss each other. A filter is drawn as a syntax tree and written out
by `text_of`, in one of many ways to write it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

from hypothesis import reject, settings
from hypothesis import strategies as st

from vestnik import Event, Filter, FilterTooComplex
from vestnik.model import syntax
from vestnik.model.lexer import KEYWORDS
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
LIKES = ("%", "_", "a%", "%a", "%a%", "a_", "_b%", "ab", "", "a%b", "%%a", "é%", "/a%", "a\U0010ffff%", "%\0", "__", "%_%")
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

Tree: TypeAlias = st.SearchStrategy[Node]


def share(part: int) -> settings:
    """For a law whose examples cost more: one part in `part` of the examples that the profile gives."""
    return settings(max_examples=max(20, settings.default.max_examples // part) if settings.default else 100)


@dataclass(frozen=True)
class Vocabulary:
    """What the filters and events of one example are made of."""

    paths: tuple[Path, ...]
    fields: tuple[Path, ...]
    literals: tuple[Scalar, ...]
    patterns: tuple[tuple[str, str, str | None], ...]
    added: bool = True


ALL_PATTERNS = (
    *(("LIKE", text, None) for text in LIKES),
    *(("LIKE", text, escape) for text, escape in ESCAPED),
    *(("GLOB", text, None) for text in GLOBS),
    *(("MATCHES", text, None) for text in REGEXES),
)


def _some(pool: tuple[Any, ...], low: int, high: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.sampled_from(pool), min_size=low, max_size=high).map(tuple)


vocabularies = st.builds(
    Vocabulary,
    paths=_some((*DATA, *DATA, *DATA, *ENVELOPE, *ENVELOPE, *RARE), 1, 3),
    fields=_some(FIELDS, 1, 2),
    literals=_some(SCALARS, 1, 4) | _some(NUMBERS[:9], 1, 4) | _some(STRINGS[:9], 1, 3),
    patterns=_some(ALL_PATTERNS, 1, 2),
    added=st.integers(0, 9).map(lambda n: n == 0),
)
plain_vocabularies = vocabularies.map(lambda vocabulary: replace(vocabulary, added=False))
"""Without kinds added from outside, so that all answers are exact."""

# --- trees ---


@st.composite
def tests(draw: st.DrawFn, words: Vocabulary, path: Path) -> Test:
    """What can be said of the value at `path`."""
    if path == ("type",) and draw(st.integers(0, 2)) == 0:
        return syntax.IsType(draw(st.sampled_from(TYPES)))
    literal = st.sampled_from(words.literals)
    negated = draw(st.booleans())
    match draw(st.integers(0, 8)):
        case 0 | 1:
            return syntax.Comparison("!=" if negated else "=", draw(literal))
        case 2 | 3:
            return syntax.Comparison(draw(st.sampled_from(["<", "<=", ">", ">="])), _ordered(draw(literal)))
        case 4:
            low, high = _ordered(draw(literal)), _ordered(draw(literal))
            return syntax.Between(low, high if isinstance(high, str) == isinstance(low, str) else low, negated)
        case 5:
            return syntax.In(tuple(draw(st.lists(literal, min_size=1, max_size=3))), negated)
        case 6 | 7:
            verb, text, escape = draw(st.sampled_from(words.patterns))
            return syntax.PatternTest(verb, text, escape, negated)
        case _:
            return syntax.IsKind(draw(st.sampled_from(KINDS)), negated)


def _ordered(literal: Scalar) -> str | int | float:
    return 1 if literal is None or isinstance(literal, bool) else literal


@st.composite
def leaves(draw: st.DrawFn, words: Vocabulary, deep: int = 0) -> Node:
    """One condition; `deep` counts the lists around it."""
    path = draw(st.sampled_from(words.fields if deep else words.paths))
    match draw(st.integers(0, 11)):
        case 0:
            return syntax.Condition(path, syntax.Exists())
        case 1:
            return syntax.Constant(draw(st.booleans()))
        case 2 if words.added:
            return syntax.Added("OVERLAPS", path, (draw(st.sampled_from(FILTERS)),))
        case 3 | 4 | 5 if deep < 2 and (deep or path[0] == "data"):
            return draw(quantified(words, path, deep))
        case _:
            return syntax.Condition(path, draw(tests(words, ("element",) if deep else path)))


@st.composite
def quantified(draw: st.DrawFn, words: Vocabulary, path: Path, deep: int) -> Node:
    quantifier = draw(st.sampled_from(["ANY", "ALL"]))
    if draw(st.booleans()):
        return syntax.Quantified(quantifier, path, syntax.Condition((), draw(tests(words, ()))), False)
    inner = draw(trees(words, deep + 1, 3))
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


@st.composite
def trees(draw: st.DrawFn, words: Vocabulary, deep: int = 0, most: int = 5) -> Node:
    """A filter of at most `most` conditions."""
    size = draw(st.integers(1, most))
    if size == 1:
        return draw(leaves(words, deep))
    match draw(st.integers(0, 3)):
        case 0:
            return syntax.Not(draw(trees(words, deep, size)))
        case way:
            left = draw(st.integers(1, size - 1))
            parts = [draw(trees(words, deep, left)), draw(trees(words, deep, size - left))]
            if draw(st.booleans()):
                parts.append(draw(leaves(words, deep)))
            return syntax.And(tuple(parts)) if way == 1 else syntax.Or(tuple(parts))


def boxes(words: Vocabulary) -> Tree:
    """A conjunction of conditions: one box, unless a condition takes several."""
    return st.lists(leaves(words), min_size=1, max_size=4).map(lambda parts: syntax.And(tuple(parts)))


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
                texts = [
                    self._unit(part, in_element, isinstance(part, (tight, type(node)))) for part in parts
                ]
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


spellings = st.integers(0, 20)


def filter_of(node: Node) -> Filter:
    """The filter; an example that is beyond the limits is another law's."""
    try:
        return Filter.parse(text_of(node))
    except FilterTooComplex:
        reject()


@st.composite
def filters(draw: st.DrawFn, words: Vocabulary | None = None) -> Filter:
    return filter_of(draw(trees(words or draw(vocabularies))))


# --- events ---


def _near(literals: tuple[Scalar, ...]) -> list[Scalar]:
    """The constants, and what lies just beside them."""
    found: list[Scalar] = [None, True, False, *literals]
    for literal in literals:
        if isinstance(literal, str):
            found += [literal + "\0", literal + "a", literal[:-1], literal.upper(), literal + "/b", "b" + literal]
        elif isinstance(literal, float):
            found += [literal * 2, literal / 2, int(literal) if abs(literal) < 2**63 else -literal]
        elif isinstance(literal, int) and not isinstance(literal, bool):
            found += [min(literal + 1, 2**63 - 1), max(literal - 1, -(2**63)), literal + 0.5, float(literal)]
    return found


@st.composite
def values(draw: st.DrawFn, words: Vocabulary, deep: int = 0) -> Any:
    """A value that may mean something to filters of this vocabulary."""
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2 if deep < 3:
            return draw(st.lists(values(words, deep + 1), max_size=3))
        case 3 | 4 | 5 if deep < 3:
            names = st.sampled_from(["b", "c", "type", "odd name", "IN"])
            return draw(st.dictionaries(names, values(words, deep + 1), max_size=3))
        case 6 if words.added:
            return draw(st.sampled_from([*FILTERS, "no filter", ""]))
        case _:
            return draw(st.sampled_from(_near(words.literals)) | st.text("ab/%t.", max_size=4))


@st.composite
def events(draw: st.DrawFn, words: Vocabulary) -> Event:
    literals = _near(words.literals)
    names = [s for s in (*(text for text in literals if isinstance(text, str)), "/a/b", "x") if s]
    whole = [int(n) for n in literals if isinstance(n, int | float) and abs(n) < 2**63] + [0]
    instants = st.none() | st.sampled_from([n for n in whole if FIRST <= n <= LAST])
    return Event(
        draw(st.sampled_from([*TYPES, *(n for n in names if all(n.split(".")))])),
        draw(st.dictionaries(st.sampled_from(["a", "x", "odd name", "type"]), values(words))),
        source=draw(st.sampled_from(names)),
        id=draw(st.sampled_from(names)),
        subject=draw(st.none() | st.sampled_from(names)),
        time=draw(instants),
        priority=draw(st.sampled_from([4, *(n for n in whole if 0 <= n <= 9)])),
        not_before=draw(instants),
        expires=draw(instants),
        seq=draw(st.none() | st.sampled_from([1, *(n for n in whole if n >= 1)])),
    )
