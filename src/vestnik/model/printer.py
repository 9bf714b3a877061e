"""Regions as text that parses back to an equal region.

A text is built from pieces, each with how tightly it binds: OR < AND < UNIT. A set of many kinds of value is the
OR of one piece per kind, or the denial of its complement where that is shorter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, NamedTuple

from vestnik.model import cuts as line
from vestnik.model.boxes import EVERYTHING, Box, Literal
from vestnik.model.cuts import Number, NumberCut
from vestnik.model.keywords import KEYWORDS
from vestnik.model.kinds import Atom
from vestnik.model.lists import ALL_LISTS, ListBox
from vestnik.model.regions import Region
from vestnik.model.spaces import DATA, ENVELOPE_PATHS, EVENT, Path, Space
from vestnik.model.strings import Combination, Expression, Pattern, StringSet
from vestnik.model.syntax import Scalar
from vestnik.model.times import FIRST, LAST, format_rfc3339
from vestnik.model.values import (
    ABSENT,
    ANYTHING,
    BOOLEAN,
    FLAG_FALSE,
    FLAG_MAP,
    FLAG_MISSING,
    FLAG_NULL,
    FLAG_TRUE,
    NOTHING,
    PRESENT,
    ValueSet,
)
from vestnik.model.work import within

OR, AND, UNIT = 1, 2, 3
_MEMO = 512
_DENIAL = 2_000  # steps of box algebra that a shorter text is worth
_PLAIN = re.compile(r"[^\W\d]\w*")
TIMES: frozenset[Path] = frozenset({("time",), ("not_before",), ("expires",)})
"""Where a number is an instant."""


class Piece(NamedTuple):
    """Text, how tightly it binds, and its denial as a comparison where it has one."""

    text: str
    binds: int = UNIT
    denial: str | None = None


class Constraint(NamedTuple):
    """What a box says of the value at `path`: the text, and whether a value fits."""

    path: Path
    piece: Piece
    fits: Callable[[Any], bool]


def region_text(region: Region) -> str:
    return _region(region).text


def constraints(space: Space, box: Box) -> list[Constraint]:
    """What the text of `box` says, one by one; what positive constraints of added kinds imply goes unsaid."""
    implied: dict[Path, ValueSet] = {}
    for path, atom, holds in box.literals:
        if holds:
            implied[path] = implied.get(path, ANYTHING).intersection(space.clip(path, atom.domain))
    said = [(path, values) for path, values in box.sets if implied.get(path) != values]
    found = [Constraint(path, _set(space, path, values), values.contains) for path, values in said]
    return found + [_added(space, literal) for literal in sorted(box.literals)]


def all_of(pieces: Iterable[Piece]) -> Piece:
    """The conjunction of `pieces`."""
    first, *others = pieces
    if not others:
        return first
    return Piece(" AND ".join(p.text if p.binds > OR else f"({p.text})" for p in (first, *others)), AND)


def path_text(space: Space, path: Path) -> str:
    if space is not EVENT:
        return ".".join(map(name_text, path)) or "@"
    if path[0] == DATA and path[1] not in ENVELOPE_PATHS and path[1] != DATA:
        path = path[1:]
    return ".".join(map(name_text, path))


def name_text(name: str) -> str:
    if _PLAIN.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def scalar_text(value: Scalar) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if value is None or isinstance(value, bool):
        return str(value).upper() if value is not None else "NULL"
    return repr(value)


def _any_of(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    return Piece(" OR ".join(p.text for p in pieces), OR)


def _not(piece: Piece) -> Piece:
    return Piece(f"NOT {piece.text}" if piece.binds == UNIT else f"NOT ({piece.text})")


def _region(region: Region) -> Piece:
    if not region.boxes:
        return Piece("FALSE")
    pieces = [_box(region.space, box) for box in region.boxes]
    if len(pieces) > 1:  # a box in several pieces stays together, since another box may cover some of them
        pieces = [Piece(f"({piece.text})") if piece.binds == OR else piece for piece in pieces]
    return _any_of(pieces)


def _box(space: Space, box: Box) -> Piece:
    if box == EVERYTHING:
        return Piece("TRUE")
    return all_of(constraint.piece for constraint in constraints(space, box))


def _added(space: Space, literal: Literal) -> Constraint:
    path, atom, holds = literal
    arguments = ", ".join([path_text(space, path), *map(scalar_text, atom.literals)])
    text = f"{atom.kind}({arguments})"
    return Constraint(path, Piece(text if holds else f"NOT {text}"), partial(_agrees, atom, holds))


def _agrees(atom: Atom, holds: bool, value: Any) -> bool:
    return atom.matches(value) is holds


def _set(space: Space, path: Path, values: ValueSet) -> Piece:
    name = path_text(space, path)
    if values == ABSENT:
        return Piece(f"NOT EXISTS {name}")
    if values == space.clip(path, PRESENT):
        return Piece(f"EXISTS {name}")
    said = _pieces(space, path, values)
    unsaid = _denied(space, path, values)
    if values.flags & FLAG_MISSING:
        if unsaid and len(unsaid) <= len(said):
            return _not(_any_of(unsaid))
        return _any_of([*said, Piece(f"NOT EXISTS {name}")])
    if unsaid and len(unsaid) < len(said):
        if len(unsaid) == 1 and unsaid[0].denial is not None:
            return Piece(unsaid[0].denial)
        return all_of([Piece(f"EXISTS {name}"), _not(_any_of(unsaid))])
    return _any_of(said)


def _denied(space: Space, path: Path, values: ValueSet) -> list[Piece]:
    """What is not in `values`; nothing where it takes long to say, or where denying it would give another form."""
    outside = within(lambda: space.clip(path, values.complement()), otherwise=NOTHING, allowed=_DENIAL)
    if values.lists and within(lambda: space.clip(path, outside.complement()), NOTHING, _DENIAL) != values:
        return []
    return _pieces(space, path, outside)


def _pieces(space: Space, path: Path, values: ValueSet) -> list[Piece]:
    """What is in `values`, apart from missing, one piece for each kind or interval."""
    name = path_text(space, path)
    universe = space.universe(path)
    flags = values.flags
    points: list[str] = []
    pieces: list[Piece] = []
    if flags & BOOLEAN.flags == BOOLEAN.flags:
        pieces.append(_kind(name, "BOOLEAN"))
    else:
        points += ["TRUE"] * bool(flags & FLAG_TRUE) + ["FALSE"] * bool(flags & FLAG_FALSE)
    if flags & FLAG_MAP:
        pieces.append(_kind(name, "MAP"))
    if values.numbers and values.numbers == universe.numbers:
        pieces.append(_kind(name, "NUMBER"))
    else:
        pieces += _numbers(space, path, name, values, points)
    if values.strings and values.strings == universe.strings:
        pieces.append(_kind(name, "STRING"))
    else:
        pieces += _strings(space, path, name, values.strings, points)
    if values.lists == ALL_LISTS:
        pieces.append(_kind(name, "LIST"))
    else:
        pieces += [_list_box(name, box) for box in values.lists]
    if flags & FLAG_NULL:
        if points:
            points.append("NULL")
        else:
            pieces.insert(0, _kind(name, "NULL"))
    if points:
        pieces.insert(0, _points(name, points))
    return pieces


def _kind(name: str, kind: str) -> Piece:
    return Piece(f"{name} IS {kind}", denial=f"{name} IS NOT {kind}")


def _points(name: str, points: list[str]) -> Piece:
    if len(points) == 1:
        return Piece(f"{name} = {points[0]}", denial=f"{name} != {points[0]}")
    listed = ", ".join(points)
    return Piece(f"{name} IN ({listed})", denial=f"{name} NOT IN ({listed})")


def _numbers(space: Space, path: Path, name: str, values: ValueSet, points: list[str]) -> list[Piece]:
    pieces = []
    bounds = space.universe(path).numbers
    for low, high in line.intervals(values.numbers):
        first = None if low == bounds[0] else low
        open_ended = high == bounds[-1]
        if space.is_whole(path) and high is not None:
            high = (high[0] - 1, 1)
        last = None if open_ended else high
        if high is not None and low == (high[0], 0):
            points.append(_number_text(path, low[0]))
        else:
            pieces.append(_number_range(path, name, first, last))
    return pieces


def _number_range(path: Path, name: str, low: NumberCut | None, high: NumberCut | None) -> Piece:
    if low is not None and high is not None and low[1] == 0 and high[1] == 1:
        ends = f"BETWEEN {_number_text(path, low[0])} AND {_number_text(path, high[0])}"
        return Piece(f"{name} {ends}", denial=f"{name} NOT {ends}")
    pieces = []
    if low is not None:
        pieces.append(Piece(f"{name} {'>' if low[1] else '>='} {_number_text(path, low[0])}"))
    if high is not None:
        pieces.append(Piece(f"{name} {'<=' if high[1] else '<'} {_number_text(path, high[0])}"))
    return all_of(pieces)


def _number_text(path: Path, value: Number) -> str:
    if path in TIMES and FIRST <= value <= LAST:
        return f"TIMESTAMP '{format_rfc3339(int(value))}'"
    return scalar_text(value)


def _strings(space: Space, path: Path, name: str, strings: StringSet, points: list[str]) -> list[Piece]:
    if strings.automaton is not None:
        return [_expression(name, strings.origin)]
    pieces = []
    runs = line.intervals(strings.cuts)
    if space is EVENT and path == ("type",):
        for low, high in runs[:]:
            if high == low + "\0" and (low + ".", low + "/") in runs and all(low.split(".")):
                runs.remove((low, high))
                runs.remove((low + ".", low + "/"))
                pieces.append(Piece(f"type IS {_type_text(low)}"))
    for low, high in runs:
        if high == low + "\0":
            points.append(scalar_text(low))
        else:
            pieces.append(_string_range(name, low, high))
    return pieces


def _type_text(name: str) -> str:
    segments = name.split(".")
    if all(name_text(segment) == segment for segment in segments):
        return name
    return scalar_text(name)


def _string_range(name: str, low: str, high: str | None) -> Piece:
    if high is not None and low and high == line.after_prefix(low):
        return _like_prefix(name, low)
    if high is not None and high.endswith("\0") and low and not low.endswith("\0"):
        ends = f"BETWEEN {scalar_text(low)} AND {scalar_text(high[:-1])}"
        return Piece(f"{name} {ends}", denial=f"{name} NOT {ends}")
    pieces = []
    if low.endswith("\0"):
        pieces.append(Piece(f"{name} > {scalar_text(low[:-1])}"))
    elif low or high is None:
        pieces.append(Piece(f"{name} >= {scalar_text(low)}"))
    if high is not None:
        inclusive = high.endswith("\0")
        pieces.append(Piece(f"{name} {'<=' if inclusive else '<'} {scalar_text(high[:-1] if inclusive else high)}"))
    return all_of(pieces)


def _like_prefix(name: str, prefix: str) -> Piece:
    pattern = scalar_text(prefix + "%")
    if "%" in prefix or "_" in prefix:
        escaped = re.sub(r"[\\%_]", r"\\\g<0>", prefix)
        pattern = scalar_text(escaped + "%") + " ESCAPE '\\'"
    return Piece(f"{name} LIKE {pattern}", denial=f"{name} NOT LIKE {pattern}")


def _expression(name: str, expression: Expression) -> Piece:
    """The strings that a string expression describes; NOT in it is relative to strings."""
    if isinstance(expression, tuple):
        points: list[str] = []
        pieces = _strings(EVENT, (), name, StringSet(expression), points)
        return _any_of(([_points(name, points)] if points else []) + pieces)
    if isinstance(expression, Pattern):
        escape = "" if expression.escape is None else f" ESCAPE {scalar_text(expression.escape)}"
        said = f"{expression.verb} {scalar_text(expression.text)}{escape}"
        return Piece(f"{name} {said}", denial=f"{name} NOT {said}")
    if expression.verb == "OR":
        return _any_of([_expression(name, part) for part in expression.parts])
    parts = expression.parts if expression.verb == "AND" else (expression,)
    denied = [part.parts[0] for part in parts if isinstance(part, Combination) and part.verb == "NOT"]
    asserted = [part for part in parts if not (isinstance(part, Combination) and part.verb == "NOT")]
    pieces = [_expression(name, part) for part in asserted] or [_kind(name, "STRING")]
    return all_of(pieces + [_not(_expression(name, part)) for part in denied])


def _list_box(name: str, box: ListBox) -> Piece:
    pieces = [] if box.every is None else [_quantified("ALL", name, box.every)]
    pieces += sorted(_quantified("ANY", name, some) for some in box.some)
    return all_of(pieces)


@lru_cache(_MEMO)  # a set and its complement both print what is inside, so that without memory each level doubles
def _quantified(quantifier: str, name: str, elements: Region) -> Piece:
    text = f"{quantifier} {name}"
    boxes = elements.boxes
    if len(boxes) == 1 and not boxes[0].literals and [path for path, _ in boxes[0].sets] == [()]:
        piece = _set(elements.space, (), boxes[0].sets[0][1])
        if piece.binds == UNIT and piece.text.startswith("@ "):
            return Piece(f"{text} {piece.text[2:]}")
        return Piece(f"{text} ({piece.text})")
    inner = _region(elements)
    if any(not _only_maps(box) for box in boxes) or not boxes:
        return Piece(f"{text} (EXISTS @ AND ({inner.text}))")
    return Piece(f"{text} ({inner.text})")


def _only_maps(box: Box) -> bool:
    """Whether the text of `box` says nothing of the element itself and needs it to be a map."""
    return all(path for path, _ in box.sets) and any(not values.flags & FLAG_MISSING for _, values in box.sets)
