"""Constraint kinds that are added from outside: `NAME(path, literal, ...)` in the filter language.

A kind decides whether a value satisfies it. What it says beyond that about covering and overlapping
makes the algebra sharper; what it leaves unsaid keeps the answers on the safe side (`covers` may say
no, `overlaps` may say yes). Register an instance once per process with `register_kind`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from vestnik.errors import UnknownKind
from vestnik.model.cuts import tidy
from vestnik.model.keywords import KEYWORDS
from vestnik.model.values import PRESENT, ValueSet

Literals: TypeAlias = tuple[str | int | float | bool | None, ...]


class ConstraintKind(ABC):
    """Subclass, set `name`, override `matches`, and what else the kind knows about itself."""

    name: ClassVar[str]
    domain: ClassVar[ValueSet] = PRESENT
    """No value outside the domain satisfies the kind; a missing path never does."""

    def check(self, *literals: Any) -> None:  # noqa: B027
        """Raise ValueError, saying what was expected, where `literals` make no constraint."""

    @abstractmethod
    def matches(self, value: Any, *literals: Any) -> bool:
        """Whether `value`, which is in the domain, satisfies the constraint. Pure and total."""

    def covers(self, wide: Literals, narrow: Literals) -> bool:
        """Whether every value that satisfies `narrow` satisfies `wide`, as far as known; the same literals do."""
        return False

    def overlaps(self, one: Literals, other: Literals) -> bool:
        """Whether some value may satisfy both."""
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """One constraint of an added kind. TRUE and 1, which are equal in Python, are different literals."""

    kind: str
    literals: Literals

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.kind, self.literals))

    def __lt__(self, other: Atom) -> bool:
        """The same order in every process, whatever kinds of literal there are."""
        return repr(self) < repr(other)

    def matches(self, value: Any) -> bool:
        kind = _kind(self.kind)
        return kind.domain.contains(value) and kind.matches(value, *self.literals)

    @property
    def domain(self) -> ValueSet:
        return _kind(self.kind).domain

    def covers(self, narrow: Atom) -> bool:
        return self == narrow or (self.kind == narrow.kind and _kind(self.kind).covers(self.literals, narrow.literals))

    def overlaps(self, other: Atom) -> bool:
        return self.kind != other.kind or _kind(self.kind).overlaps(self.literals, other.literals)


_registered: dict[str, ConstraintKind] = {}


def register_kind(kind: ConstraintKind) -> None:
    """Make `kind` known to the filter language of this process."""
    name = kind.name
    if not name.isidentifier() or name != name.upper() or name in KEYWORDS:
        raise ValueError(f"the name of a constraint kind is an identifier in capitals and no keyword, not {name!r}")
    known = _registered.get(name)
    if known is not None and _home(known) != _home(kind):
        raise ValueError(f"the constraint kind {name} is registered already, by {type(known).__qualname__}")
    _registered[name] = kind


def _home(kind: ConstraintKind) -> tuple[str, str]:
    """Where the class is written, which stays the same when the code is run again."""
    return type(kind).__module__, type(kind).__qualname__


def known_kinds() -> frozenset[str]:
    """The names that brokers compare at their hand-shake."""
    return frozenset(_registered)


def _kind(name: str) -> ConstraintKind:
    try:
        return _registered[name]
    except KeyError:
        raise UnknownKind(name) from None


def make_atom(name: str, literals: Literals) -> Atom:
    """The checked constraint; UnknownKind for an unknown name, ValueError for wrong literals."""
    kind = _kind(name.upper())
    try:
        kind.check(*literals)
    except TypeError as error:
        raise ValueError(f"other arguments: {error}") from None
    return Atom(kind.name, tuple(tidy(v) if isinstance(v, float) else v for v in literals))
