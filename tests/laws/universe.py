"""A finite universe of events that tells two filters apart whenever anything does.

A filter is a Boolean function of its conditions, so events on which all conditions of both filters agree need only one
to stand for them. The universe is built bottom up, and at each step one value is kept for each verdict of the
conditions on it:

- numbers: each constant and a value between neighbours (a fraction, numbers being dense; an integer in the envelope);
- strings: one for each joint state of the patterns, read as regular expressions and derived character by character
  (Brzozowski), and of the comparisons with the constants;
- maps: the product of what may be at each name;
- lists: as many elements as there are conditions on the list, since ANY that holds and ALL that does not hold take one
  witness each, and all else is kept by leaving elements out.

It is complete for the whole language but for kinds added from outside, whose values are sampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations, pairwise, product
from math import ceil, floor, prod
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

from laws.oracle import NOTHING, below, leaf_holds, like_items, truth
from vestnik import Event
from vestnik.model import syntax
from vestnik.model.spaces import Path
from vestnik.model.syntax import Node
from vestnik.model.times import FIRST, LAST

MOST_STRINGS = 600
MOST_MAPS = 3_000
MOST_EVENTS = 6_000
DEFAULTS: dict[str, Any] = {
    "type": "t", "source": "s", "id": "i", "priority": 4, "subject": None, "time": None, "seq": None,
    "not_before": None, "expires": None,
}  # fmt: skip
INTEGERS = {"priority": (0, 9), "seq": (1, 2**63 - 1), "time": (FIRST, LAST)}
INTEGERS |= {"not_before": (FIRST, LAST), "expires": (FIRST, LAST)}
OPTIONAL = {"subject", "time", "seq", "not_before", "expires"}
FILTER_VALUES = ["", "TRUE", "a = 1", "a = 2 OR FALSE", "a > 1", "FALSE", "no filter", {}, {"boxes": []}]


class TooLarge(Exception):
    """The universe of these filters is not worth enumerating."""


@dataclass(frozen=True)
class Class:
    """A value (or NOTHING) at an attribute, and the conditions, by number, that hold of it."""

    value: Any
    true: frozenset[int]


@dataclass(frozen=True)
class Universe:
    """For each attribute that the filters name, the values that differ to them."""

    leaves: tuple[Any, ...]
    axes: dict[Path, list[Class]]

    def __iter__(self) -> Iterator[tuple[Class, ...]]:
        return product(*self.axes.values())

    def verdicts(self, node: Node) -> Iterator[bool]:
        """The value of `node` on each event in turn."""
        numbers = {_identity(leaf): i for i, leaf in enumerate(self.leaves)}
        for classes in self:
            yield truth(node, partial(_is_true, numbers, frozenset[int]().union(*(c.true for c in classes))))

    def events(self) -> Iterator[SimpleNamespace]:
        for classes in self:
            event = SimpleNamespace(**DEFAULTS, data={})
            for path, found in zip(self.axes, classes, strict=True):
                if found.value is NOTHING:
                    continue
                if path[0] == "data":
                    event.data[path[1]] = found.value
                else:
                    setattr(event, path[0], found.value)
            yield event


def _is_true(numbers: dict[str, int], true: frozenset[int], leaf: Any) -> bool:
    return numbers[_identity(leaf)] in true


def universe(*nodes: Node) -> Universe:
    """The universe of the conditions of `nodes`; TooLarge beyond what a test can go through."""
    named = {_identity(leaf): leaf for node in nodes for leaf in _leaves(node)}
    leaves, names = tuple(named.values()), list(named)
    axes: dict[Path, list[Class]] = {}
    for root in dict.fromkeys(_root(leaf.path) for leaf in leaves):
        mine = [leaf for leaf in leaves if _root(leaf.path) == root]
        numbers = [names.index(_identity(leaf)) for leaf in mine]
        found = _values(mine, root) if root[0] == "data" else _envelope(mine, root[0])
        axes[root] = [Class(v, frozenset(n for n, yes in zip(numbers, s, strict=True) if yes)) for v, s in found]
    if prod(map(len, axes.values())) > MOST_EVENTS:
        raise TooLarge
    return Universe(leaves, axes)


def as_event(found: SimpleNamespace) -> Event | None:
    """A real event like `found`, where the numbers in between can be doubles and the type is a type."""
    try:
        data = {name: _doubles(value) for name, value in found.data.items()}
    except ValueError:
        return None
    if not all(found.type.split(".")):
        return None
    return Event(data=data, **{name: value for name, value in vars(found).items() if name != "data"})


def _doubles(value: Any) -> Any:
    if isinstance(value, Fraction):
        if not -1e308 < value < 1e308 or Fraction(float(value)) != value:
            raise ValueError(value)
        return float(value)
    if isinstance(value, list):
        return [_doubles(item) for item in value]
    return {name: _doubles(item) for name, item in value.items()} if isinstance(value, dict) else value


def _root(path: Path) -> Path:
    return path[:2] if path[0] == "data" else path


def _leaves(node: Node) -> Iterator[Any]:
    match node:
        case syntax.And(parts) | syntax.Or(parts):
            for part in parts:
                yield from _leaves(part)
        case syntax.Not(inner):
            yield from _leaves(inner)
        case syntax.Constant():
            pass
        case _:
            yield node


def _identity(leaf: Any) -> str:
    """What tells leaves apart: for Python 1 and TRUE are equal."""
    return repr(leaf)


# --- values at a path ---

Verdicts: TypeAlias = tuple[bool, ...]
Found: TypeAlias = tuple[Any, Verdicts]


def _kept(leaves: list[Any], prefix: Path, values: Iterable[Any]) -> list[Found]:
    """One of `values` for each verdict of the leaves, whose paths begin with `prefix`."""
    found: dict[Verdicts, Any] = {}
    for value in values:
        verdicts = tuple(leaf_holds(leaf, below(value, leaf.path[len(prefix) :])) for leaf in leaves)
        found.setdefault(verdicts, value)
    return [(value, verdicts) for verdicts, value in found.items()]


def _envelope(leaves: list[Any], name: str) -> list[Found]:
    values: list[Any] = [NOTHING] if name in OPTIONAL else []
    if name in INTEGERS:
        low, high = INTEGERS[name]
        near = {i for n in _numbers(leaves) for c in (floor(n), ceil(n)) for i in (c - 1, c, c + 1)} | {low, high}
        values += sorted(i for i in near if low <= i <= high)
    else:
        values += [s for s in _strings(leaves) if s] + ["t"]
    return _kept(leaves, (name,), values)


def _values(leaves: list[Any], prefix: Path, missing: bool = True) -> list[Found]:
    here = [leaf for leaf in leaves if leaf.path == prefix]
    values: list[Any] = [NOTHING] if missing else []
    values += [None, True, False, *_between(sorted(_numbers(here))), *_strings(here), *_lists(here)]
    values += _maps([leaf for leaf in leaves if leaf.path != prefix], prefix)
    if any(isinstance(leaf, syntax.Added) for leaf in here):
        values += FILTER_VALUES
    return _kept(leaves, prefix, values)


def _maps(leaves: list[Any], prefix: Path) -> Iterator[dict[str, Any]]:
    names = list(dict.fromkeys(leaf.path[len(prefix)] for leaf in leaves))
    below = [_values([leaf for leaf in leaves if leaf.path[len(prefix)] == name], (*prefix, name)) for name in names]
    if prod(map(len, below)) > MOST_MAPS:
        raise TooLarge
    for choice in product(*below):
        yield {name: value for name, (value, _) in zip(names, choice, strict=True) if value is not NOTHING}


def _lists(leaves: list[Any]) -> Iterator[list[Any]]:
    quantified = [leaf for leaf in leaves if isinstance(leaf, syntax.Quantified)]
    if not quantified:
        yield []
        return
    inner = list({_identity(x): x for leaf in quantified for x in _leaves(leaf.inner)}.values())
    inner.append(syntax.Condition((), syntax.IsKind("MAP")))
    elements = [value for value, _ in _values(inner, (), missing=False)]
    elements = _told_apart(quantified, elements)
    if len(elements) ** len(quantified) > 40 * MOST_MAPS:
        raise TooLarge
    for size in range(len(quantified) + 1):
        yield from map(list, combinations(elements, size))


def _told_apart(quantified: list[Any], elements: list[Any]) -> list[Any]:
    """One element for each verdict of the quantified filters on it."""
    found = {tuple(leaf_holds(leaf, [element]) for leaf in quantified): element for element in reversed(elements)}
    return list(found.values())


# --- numbers ---


def _literals(leaves: list[Any]) -> Iterator[Any]:
    for leaf in leaves:
        if isinstance(leaf, syntax.Condition):
            match leaf.test:
                case syntax.Comparison(_, literal):
                    yield literal
                case syntax.Between(low, high):
                    yield from (low, high)
                case syntax.In(literals):
                    yield from literals
                case syntax.IsType(name):
                    yield name


def _numbers(leaves: list[Any]) -> set[Any]:
    return {n for n in _literals(leaves) if isinstance(n, int | float) and not isinstance(n, bool)}


def _between(points: list[Any]) -> list[Any]:
    if not points:
        return [0]
    middle = [(Fraction(a) + Fraction(b)) / 2 for a, b in pairwise(points)]
    return [Fraction(points[0]) - 1, *points, *middle, Fraction(points[-1]) + 1]


# --- strings: derivatives of regular expressions ---


class Rx(NamedTuple):
    """`kind` is none, empty, chars, cat, alt or star."""

    kind: str
    parts: Any = ()


class Chars(NamedTuple):
    """Some characters, or all but some."""

    some: frozenset[str]
    negated: bool = False

    def has(self, char: str) -> bool:
        return (char in self.some) is not self.negated


NONE, EMPTY = Rx("none"), Rx("empty")
ANY = Rx("chars", Chars(frozenset(), negated=True))


def cat(*parts: Rx) -> Rx:
    result = EMPTY
    for part in reversed(parts):
        if NONE in (part, result):
            return NONE
        if part.kind == "cat":
            result = cat(part.parts[0], cat(part.parts[1], result))
        else:
            result = part if result == EMPTY else result if part == EMPTY else Rx("cat", (part, result))
    return result


def alt(*parts: Rx) -> Rx:
    flat = frozenset(p for part in parts for p in (part.parts if part.kind == "alt" else (part,))) - {NONE}
    return NONE if not flat else next(iter(flat)) if len(flat) == 1 else Rx("alt", flat)


def star(part: Rx) -> Rx:
    return EMPTY if part in (NONE, EMPTY) else part if part.kind == "star" else Rx("star", part)


def chars(text: Iterable[str], negated: bool = False) -> Rx:
    return Rx("chars", Chars(frozenset(text), negated))


def nullable(rx: Rx) -> bool:
    match rx.kind:
        case "empty" | "star":
            return True
        case "cat":
            return all(map(nullable, rx.parts))
        case "alt":
            return any(map(nullable, rx.parts))
    return False


@lru_cache(100_000)
def derive(rx: Rx, char: str) -> Rx:
    match rx.kind:
        case "chars":
            return EMPTY if rx.parts.has(char) else NONE
        case "alt":
            return alt(*(derive(part, char) for part in rx.parts))
        case "star":
            return cat(derive(rx.parts, char), rx)
        case "cat":
            first, rest = rx.parts
            stepped = cat(derive(first, char), rest)
            return alt(stepped, derive(rest, char)) if nullable(first) else stepped
    return NONE


class After(NamedTuple):
    """How what was read compares with a constant: its first `at` characters, or below or above it for ever."""

    constant: str
    at: int = 0
    way: str = "="

    def step(self, char: str) -> After:
        if self.way != "=":
            return self
        if self.at == len(self.constant):
            return After(self.constant, 0, ">")
        mine = self.constant[self.at]
        return After(self.constant, self.at + 1) if char == mine else After(self.constant, 0, _way(char, mine))


def _way(char: str, mine: str) -> str:
    return "<" if char < mine else ">"


def _strings(leaves: list[Any]) -> list[str]:
    """A string for each joint state of the patterns and constants in `leaves`, shortest first."""
    constants = sorted({s for s in _literals(leaves) if isinstance(s, str)} | {""})
    tests = [leaf.test for leaf in leaves if isinstance(leaf, syntax.Condition)]
    patterns = [t for t in tests if isinstance(t, syntax.PatternTest)]
    types = [t.name for t in tests if isinstance(t, syntax.IsType)]
    rxs = [as_rx(p.verb, p.pattern, p.escape) for p in patterns]
    rxs += [cat(*(chars(c) for c in f"{name}."), star(ANY)) for name in types]
    letters = {c for text in [*constants, *types, *(p.pattern for p in patterns)] for c in f"{text}./a"}
    alphabet = list(dict.fromkeys(c for letter in sorted(letters) for c in _around(letter)))
    start: tuple[Rx | After, ...] = (*rxs, *map(After, constants))
    found = {start: ""}
    for state in (order := [start]):
        for char in alphabet:
            after = tuple(derive(s, char) if isinstance(s, Rx) else s.step(char) for s in state)
            if after not in found:
                found[after] = found[state] + char
                order.append(after)
        if len(found) > MOST_STRINGS:
            raise TooLarge
    return list(found.values())


def _around(letter: str) -> list[str]:
    """The letter, its cases, and its neighbours in code-point order."""
    near = [ord(letter), ord(letter) + 1, ord(letter) - 1, 0, 0x10FFFF]
    fixed = [chr({0xD800: 0xE000, 0xDFFF: 0xD7FF}.get(c, c)) for c in near if 0 <= c <= 0x10FFFF]
    return [*fixed, *(c for c in (letter.lower(), letter.upper()) if len(c) == 1)]


def as_rx(verb: str, pattern: str, escape: str | None) -> Rx:
    if verb == "LIKE":
        wild = {"%": star(ANY), "_": ANY}
        return cat(*(wild[char] if special else chars(char) for char, special in like_items(pattern, escape)))
    return _glob(pattern.split("/")) if verb == "GLOB" else _Reader(pattern).whole()


def _glob(levels: list[str]) -> Rx:
    """The levels one by one, each begun by a slash; then the slash before the first one is taken away."""
    slash, inside = chars("/"), chars("/", negated=True)
    parts: list[Rx] = []
    for level in levels:
        one = cat(slash, *(star(inside) if char == "*" else chars(char) for char in level))
        parts.append(star(cat(slash, star(inside))) if level == "**" else one)
    return derive(cat(*parts), "/")


class _Reader:
    """Reads the regular expressions that the strategies write: a small part of RE2's syntax."""

    def __init__(self, text: str) -> None:
        self.fold = text.startswith("(?i)")
        self.rest = list(reversed(text.removeprefix("(?i)")))

    def whole(self) -> Rx:
        found = self._choice()
        assert not self.rest, self.rest
        return found

    def _choice(self) -> Rx:
        branches = [self._branch()]
        while self.rest and self.rest[-1] == "|":
            self.rest.pop()
            branches.append(self._branch())
        return alt(*branches)

    def _branch(self) -> Rx:
        items: list[Rx] = []
        while self.rest and self.rest[-1] not in "|)":
            items.append(self._repeated(self._item()))
        return cat(*items)

    def _repeated(self, item: Rx) -> Rx:
        match self.rest[-1:]:
            case ["*"]:
                repeated = star(item)
            case ["+"]:
                repeated = cat(item, star(item))
            case ["?"]:
                repeated = alt(item, EMPTY)
            case ["{"]:
                low, high = int(self.rest[-2]), int(self.rest[-4])
                del self.rest[-4:]
                repeated = cat(*[item] * low, *[alt(item, EMPTY)] * (high - low))
            case _:
                return item
        self.rest.pop()
        return repeated

    def _item(self) -> Rx:
        match self.rest.pop():
            case "(":
                inner = self._choice()
                self.rest.pop()
                return inner
            case "[":
                return self._class()
            case ".":
                return ANY
            case "\\":
                return self._chars(self.rest.pop())
            case char:
                return self._chars(char)

    def _class(self) -> Rx:
        found = ""
        while self.rest[-1] != "]":
            found += self.rest.pop()
        self.rest.pop()
        return self._chars(found.removeprefix("^"), negated=found.startswith("^"))

    def _chars(self, found: str, negated: bool = False) -> Rx:
        cases = found.lower() + found.upper() if self.fold else found
        return chars(cases, negated)
