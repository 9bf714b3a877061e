"""The syntax tree of a filter, as it was written.

A `Test` is what can be said of one value; a `Condition` applies it to a path. Inside `ANY path (...)`
paths are relative to the element, and the empty path, written `@`, is the element itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from vestnik.model.spaces import Path

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`= != < <= > >=` and a literal."""

    operator: str
    literal: Scalar


@dataclass(frozen=True, slots=True)
class Between:
    low: Scalar
    high: Scalar
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In:
    literals: tuple[Scalar, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class PatternTest:
    """`verb` is LIKE, GLOB or MATCHES."""

    verb: str
    pattern: str
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsKind:
    """`kind` is NULL, BOOLEAN, NUMBER, STRING, LIST or MAP."""

    kind: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsType:
    """The event type `name` or a descendant of it."""

    name: str


@dataclass(frozen=True, slots=True)
class Exists:
    pass


Test: TypeAlias = Comparison | Between | In | PatternTest | IsKind | IsType | Exists


@dataclass(frozen=True, slots=True)
class Constant:
    value: bool


@dataclass(frozen=True, slots=True)
class Condition:
    path: Path
    test: Test


@dataclass(frozen=True, slots=True)
class Quantified:
    """`quantifier` is ANY or ALL; `inner` reads one element."""

    quantifier: str
    path: Path
    inner: Node
    maps_only: bool


@dataclass(frozen=True, slots=True)
class Added:
    """A constraint of a kind added from outside."""

    name: str
    path: Path
    literals: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Not:
    inner: Node


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Node, ...]


Node: TypeAlias = Constant | Condition | Quantified | Added | Not | And | Or
