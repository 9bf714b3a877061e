"""LIKE and GLOB patterns as automata."""

from __future__ import annotations

from functools import lru_cache

from vestnik.errors import PatternError
from vestnik.model.regular.automata import Automaton
from vestnik.model.regular.expressions import ANY, ANYTHING, EMPTY, Chars, Choice, Concat, Expression, Repeat

_SLASH = Chars.one("/")
_WITHIN_LEVEL = Repeat(_SLASH.negated(), 0, None)
_MEMO = 512


@lru_cache(_MEMO)
def compile_like(pattern: str, escape: str | None = None) -> Automaton:
    """The strings LIKE `pattern`: `%` is any run of characters, `_` is one, all else is itself.

    The character after `escape` is itself; it must be `%`, `_` or the escape.
    """
    if escape is not None and len(escape) != 1:
        raise PatternError(escape, 0, "ESCAPE must be one character")
    parts: list[Expression] = []
    escaped = False
    for position, char in enumerate(pattern):
        if escaped and char not in ("%", "_", escape):
            raise PatternError(pattern, position, f"only %, _ and {escape} may follow the escape {escape}")
        if not escaped and char == escape:
            escaped = True
            continue
        parts.append(_LIKE.get(char) or Chars.one(char) if not escaped else Chars.one(char))
        escaped = False
    if escaped:
        raise PatternError(pattern, len(pattern) - 1, f"nothing follows the escape {escape}")
    return Automaton.matching(Concat(tuple(parts)))


_LIKE: dict[str, Expression] = {"%": ANYTHING, "_": ANY}


@lru_cache(_MEMO)
def compile_glob(pattern: str) -> Automaton:
    """The strings that `pattern` matches level by level, levels split at `/`.

    A level `**` is any number of levels, none too. In other levels `*` is any run of characters, all else is itself.
    """
    levels = _levels(pattern)
    if levels == ["**"]:
        return Automaton.everything()
    parts: list[Expression] = []
    for level in levels[:-1]:
        parts += (_optional(ANYTHING, _SLASH),) if level == "**" else (*_one_level(level), _SLASH)
    if levels[-1] != "**":
        return Automaton.matching(Concat((*parts, *_one_level(levels[-1]))))
    return Automaton.matching(Concat((*parts[:-1], _optional(_SLASH, ANYTHING))))


def _levels(pattern: str) -> list[str]:
    """The levels of `pattern`, a run of `**` levels as one."""
    levels: list[str] = []
    position = 0
    for level in pattern.split("/"):
        if "**" in level and level != "**":
            raise PatternError(pattern, position + level.index("**"), "** must be a whole level")
        if level != "**" or levels[-1:] != ["**"]:
            levels.append(level)
        position += len(level) + 1
    return levels


def _one_level(level: str) -> list[Expression]:
    return [_WITHIN_LEVEL if char == "*" else Chars.one(char) for char in level]


def _optional(*parts: Expression) -> Expression:
    return Choice((Concat(parts), EMPTY))
