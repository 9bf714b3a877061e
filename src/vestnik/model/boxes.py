"""Boxes: conjunctions of constraints, one value set per path, in their one form.

Paths that extend one another are not independent, so a box is kept with nothing that the rest
implies: where a path must be there, everything above it is a map and says nothing more; where a
path is no map, nothing can be below it. A box that cannot be satisfied is never built. Equal sets of
events therefore have equal boxes (as far as constraints of added kinds are understood).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from vestnik.model.kinds import Atom
from vestnik.model.spaces import Path, Space
from vestnik.model.values import ABSENT, ANYTHING, FLAG_MAP, FLAG_MISSING, MAP, ValueSet
from vestnik.model.work import spend

Literal: TypeAlias = tuple[Path, Atom, bool]
"""At this path the atom holds (True) or does not (False)."""


@dataclass(frozen=True, slots=True)
class Box:
    """The events whose value at each path is in its set and that agree with every literal."""

    sets: tuple[tuple[Path, ValueSet], ...] = ()
    literals: frozenset[Literal] = frozenset()
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.sets, self.literals)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Box, (self.sets, self.literals)  # the hash of another process is of no use here

    def contains(self, space: Space, root: Any) -> bool:
        for path, values in self.sets:
            if not values.contains(space.read(root, path)):
                return False
        return all(atom.matches(space.read(root, path)) is holds for path, atom, holds in self.literals)

    def sort_key(self) -> tuple[Any, ...]:
        """What orders boxes the same way in every process."""
        return tuple((path, values.sort_key()) for path, values in self.sets), sorted(map(repr, self.literals))


EVERYTHING = Box()


def make_box(space: Space, sets: Mapping[Path, ValueSet], literals: frozenset[Literal] = frozenset()) -> Box | None:
    """The box in its one form, or None where it cannot be satisfied."""
    spend(1 + len(sets) // 2)
    kept = {path: space.clip(path, values) for path, values in sets.items()}
    for path, atom, holds in literals:
        if holds:
            kept[path] = kept.get(path, ANYTHING).intersection(space.clip(path, atom.domain))
    if not all(kept.values()):
        return None
    if len(kept) > 1 and _tangled(kept) and not _untangle(kept):
        return None
    if literals:
        simpler = _simplify(literals, kept, space)
        if simpler is None:
            return None
        literals = simpler
    return Box(tuple(sorted((p, v) for p, v in kept.items() if v != space.universe(p))), literals)


def _tangled(kept: dict[Path, ValueSet]) -> bool:
    """Whether one path extends another."""
    return any(path[:i] in kept for path in kept for i in range(len(path)))


def _untangle(kept: dict[Path, ValueSet]) -> bool:
    """Drop from `kept` what longer or shorter paths imply; False where they contradict each other."""
    for path in [p for p, values in kept.items() if not values.flags & FLAG_MISSING]:
        for above in _above(path):
            values = kept.get(above)
            if values is not None:
                if not values.flags & FLAG_MAP:
                    return False
                kept[above] = MAP
    implied = {above for path, values in kept.items() if not values.flags & FLAG_MISSING for above in _above(path)}
    leaves = {path for path, values in kept.items() if not values.flags & FLAG_MAP}
    for path in list(kept):
        if path in implied or any(above in leaves for above in _above(path)):
            del kept[path]
    return True


def _above(path: Path) -> Iterator[Path]:
    return (path[:i] for i in range(len(path)))


def _simplify(literals: frozenset[Literal], kept: dict[Path, ValueSet], space: Space) -> frozenset[Literal] | None:
    """The literals without those that others or the sets imply; None where they contradict each other."""
    out = set(literals)
    for one in literals:
        path, atom, holds = one
        if not holds and not projection_of(space, kept, path).intersection(atom.domain):
            out.discard(one)
            continue
        for other in literals - {one}:
            if other[0] != path:
                continue
            if holds and other[2]:
                if not atom.overlaps(other[1]):
                    return None
                if atom.covers(other[1]) and (not other[1].covers(atom) or other[1] < atom):
                    out.discard(one)
            elif not holds and other[2]:
                if atom.covers(other[1]):
                    return None
                if not atom.overlaps(other[1]):
                    out.discard(one)
            elif not holds and other[1].covers(atom) and (not atom.covers(other[1]) or other[1] < atom):
                out.discard(one)
    return frozenset(out)


def projection(space: Space, box: Box, path: Path) -> ValueSet:
    """All that can be at `path` in the events of `box`."""
    return projection_of(space, dict(box.sets), path)


def projection_of(space: Space, sets: Mapping[Path, ValueSet], path: Path) -> ValueSet:
    return sets.get(path) or _implied_at(sets.items(), path) or space.universe(path)


def _implied_at(sets: Iterable[tuple[Path, ValueSet]], path: Path) -> ValueSet | None:
    """What constraints on longer or shorter paths leave possible at `path`; None where they say nothing of it."""
    for other, values in sets:
        if len(other) > len(path):
            if other[: len(path)] == path and not values.flags & FLAG_MISSING:
                return MAP
        elif path[: len(other)] == other and not values.flags & FLAG_MAP:
            return ABSENT
    return None


def meet(space: Space, *boxes: Box) -> Box | None:
    """The box of the events in all `boxes`, or None where there are none."""
    narrow = [box for box in boxes if box.sets or box.literals]
    if len(narrow) < 2:
        return narrow[0] if narrow else EVERYTHING
    sets = dict(narrow[0].sets)
    for box in narrow[1:]:
        for path, values in box.sets:
            mine = sets.get(path)
            sets[path] = values if mine is None else mine.intersection(values)
    return make_box(space, sets, frozenset().union(*(box.literals for box in narrow)))


def covers(space: Space, wide: Box, narrow: Box) -> bool:
    """Whether every event of `narrow` is in `wide`; exact but for added kinds."""
    spend()
    sets = dict(narrow.sets)
    for path, values in wide.sets:
        found = sets.get(path) or _implied_at(narrow.sets, path)
        if found is None or not (found is values or values.includes(found)):
            return False
    return all(_implied(space, sets, narrow, literal) for literal in wide.literals)


def _implied(space: Space, sets: dict[Path, ValueSet], box: Box, literal: Literal) -> bool:
    path, atom, holds = literal
    if literal in box.literals:
        return True
    same_path = [(other, held) for at, other, held in box.literals if at == path]
    if holds:
        return any(held and atom.covers(other) for other, held in same_path)
    if not projection_of(space, sets, path).intersection(atom.domain):
        return True
    return any((not atom.overlaps(other)) if held else other.covers(atom) for other, held in same_path)


def subtract(space: Space, box: Box, away: Box) -> list[Box]:
    """Disjoint boxes for what is in `box` and not in `away`."""
    return list(_denials(space, box, away))


def _denials(space: Space, within: Box, box: Box) -> Iterator[Box]:
    for path, values in box.sets:
        denied = make_box(space, {path: values.complement()})
        piece = denied and meet(space, within, denied)
        if piece is not None:
            yield piece
        allowed = make_box(space, {path: values})
        rest = allowed and meet(space, within, allowed)
        if rest is None:
            return
        within = rest
    for path, atom, holds in sorted(box.literals):
        for flipped in (True, False):
            literal = make_box(space, {}, frozenset({(path, atom, holds is not flipped)}))
            piece = literal and meet(space, within, literal)
            if flipped and piece is not None:
                yield piece
            elif not flipped:
                if piece is None:
                    return
                within = piece


def join(space: Space, a: Box, b: Box) -> Box | None:
    """One box for exactly the events of both, where they differ in one path only."""
    if a.literals != b.literals or _differ_in_two(space, a, b):
        return None
    sets_a, sets_b = dict(a.sets), dict(b.sets)
    differing: Path | None = None
    joined: dict[Path, ValueSet] = {}
    for path in sets_a.keys() | sets_b.keys():
        x, y = projection_of(space, sets_a, path), projection_of(space, sets_b, path)
        if x == y or (path not in sets_b and x.includes(y)):  # what b implies anyway, it may say as a does
            joined[path] = x
        elif path not in sets_a and y.includes(x):
            joined[path] = y
        elif differing is None:
            differing = path
            joined[path] = x.union(y)
        else:
            return None
    return make_box(space, joined, a.literals)


def _differ_in_two(space: Space, a: Box, b: Box) -> bool:
    """Whether the boxes surely differ in two paths; a quick look, for boxes whose paths do not extend one another."""
    if any(len(path) > space.depth for box in (a, b) for path, _ in box.sets):
        return False
    sets = dict(b.sets)
    same = sum(sets.get(path) == values for path, values in a.sets)
    return len(a.sets) - same > 1 or len(b.sets) - same > 1
