"""What a syntax tree means, said a second time: plain recursion over the tree, value by value.

Nothing here knows of value sets, boxes or automata. `holds` is the definition that the model is held against; it also
takes anything with the attributes of an event, so that numbers may be fractions (the model treats them as dense).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache
from operator import ge, gt, le, lt
from typing import Any

import re2

from vestnik.model import syntax
from vestnik.model.spaces import Path
from vestnik.model.syntax import Node, Scalar, Test


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()
"""What is at a path that is not there."""

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def holds(node: Node, event: Any) -> bool:
    """Whether `event` satisfies the filter `node`."""
    return truth(node, lambda leaf: leaf_holds(leaf, at_event(event, leaf.path)))


def truth(node: Node, verdict: Callable[[Any], bool]) -> bool:
    """The value of `node`, its conditions being as `verdict` says."""
    match node:
        case syntax.Constant(value):
            return value
        case syntax.Not(inner):
            return not truth(inner, verdict)
        case syntax.And(parts):
            return all(truth(part, verdict) for part in parts)
        case syntax.Or(parts):
            return any(truth(part, verdict) for part in parts)
        case _:
            return verdict(node)


def leaf_holds(leaf: Any, value: Any) -> bool:
    """Whether a condition holds of the `value` at its path."""
    match leaf:
        case syntax.Condition(_, test):
            return value is not NOTHING and test_holds(test, value)
        case syntax.Quantified(quantifier, _, inner, maps_only):
            if not isinstance(value, list):
                return False
            verdicts = (element_holds(inner, maps_only, element) for element in value)
            return any(verdicts) if quantifier == "ANY" else all(verdicts)
        case syntax.Added(name, _, literals):
            return value is not NOTHING and added_holds(name, value, *literals)
    raise AssertionError(leaf)


def element_holds(inner: Node, maps_only: bool, element: Any) -> bool:
    if maps_only and not isinstance(element, dict):
        return False
    return truth(inner, lambda leaf: leaf_holds(leaf, below(element, leaf.path)))


def at_event(event: Any, path: Path) -> Any:
    if path[0] == "data":
        return below(event.data, path[1:])
    value = getattr(event, path[0])
    return NOTHING if value is None else value


def below(value: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return NOTHING
        value = value[name]
    return value


def added_holds(name: str, value: Any, *literals: Scalar) -> bool:
    assert name == "OVERLAPS", name
    from vestnik import Filter, FilterError

    if not isinstance(value, str | dict):
        return False
    try:
        found = Filter.parse(value) if isinstance(value, str) else Filter.from_dict(value)
    except FilterError:
        return False
    return found.overlaps(Filter.parse(str(literals[0])))


# --- one value ---


def test_holds(test: Test, value: Any) -> bool:
    """Whether `test` is true of a value that is there."""
    match test:
        case syntax.Exists():
            return True
        case syntax.Comparison("=", literal):
            return equal(value, literal)
        case syntax.Comparison("!=", literal):
            return not equal(value, literal)
        case syntax.Comparison(operator, literal):
            return comparable(value, literal) and _ORDERS[operator](value, literal)
        case syntax.Between(low, high, negated):
            ends: tuple[Any, Any] = low, high
            return (comparable(value, low) and ends[0] <= value <= ends[1]) is not negated
        case syntax.In(literals, negated):
            return any(equal(value, literal) for literal in literals) is not negated
        case syntax.PatternTest(verb, pattern, escape, negated):
            return (isinstance(value, str) and fits(verb, pattern, escape, value)) is not negated
        case syntax.IsKind(kind, negated):
            return (kind_of(value) == kind) is not negated
        case syntax.IsType(name):
            return isinstance(value, str) and (value == name or value.startswith(f"{name}."))


test_holds.__test__ = False  # type: ignore[attr-defined]


def kind_of(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int | float | Fraction):
        return "NUMBER"
    return {str: "STRING", list: "LIST", dict: "MAP"}[next(t for t in (str, list, dict) if isinstance(value, t))]


def equal(value: Any, literal: Scalar) -> bool:
    return kind_of(value) == kind_of(literal) and bool(value == literal)


def comparable(value: Any, literal: Scalar) -> bool:
    return kind_of(value) == kind_of(literal)


def fits(verb: str, pattern: str, escape: str | None, text: str) -> bool:
    if verb == "LIKE":
        return like(like_items(pattern, escape), text)
    if verb == "GLOB":
        return glob(pattern.split("/"), text.split("/"))
    return regex(pattern).fullmatch(text) is not None


def like_items(pattern: str, escape: str | None) -> list[tuple[str, bool]]:
    """The characters of a LIKE pattern, each with whether it is a wildcard."""
    items: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for char in characters:
        items.append((next(characters), False) if char == escape else (char, char in "%_"))
    return items


def like(items: list[tuple[str, bool]], text: str) -> bool:
    reached = {0}
    for char in [*text, None]:
        for at in sorted(reached):
            while at < len(items) and items[at] == ("%", True):
                at += 1
                reached.add(at)
        if char is None:
            return len(items) in reached
        stay = {at for at in reached if at < len(items) and items[at] == ("%", True)}
        step = {at + 1 for at in reached if at < len(items) and items[at] in ((char, False), ("_", True))}
        reached = stay | step
    raise AssertionError("the end is reached")


def glob(levels: list[str], found: list[str]) -> bool:
    if not levels:
        return not found
    if levels[0] == "**":
        return any(glob(levels[1:], found[i:]) for i in range(len(found) + 1))
    return bool(found) and level(levels[0], found[0]) and glob(levels[1:], found[1:])


def level(pattern: str, text: str) -> bool:
    return like([("%", True) if char == "*" else (char, False) for char in pattern], text)


@cache
def _options() -> Any:
    options = re2.Options()
    options.dot_nl = True
    options.log_errors = False
    return options


@lru_cache(4096)
def regex(pattern: str) -> Any:
    return re2.compile(pattern, _options())
