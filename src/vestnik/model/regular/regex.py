"""Regular expressions in RE2 syntax as automata."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import groupby
from typing import NamedTuple

from vestnik.errors import PatternError
from vestnik.model.regular.automata import Automaton
from vestnik.model.regular.expressions import ANY, EMPTY, Chars, Choice, Concat, Edge, Expression, Repeat

_MEMO = 512
_MAX_NESTING = 100
_MAX_REPEAT = 1_000

_Ranges = list[tuple[int, int]]


@lru_cache(_MEMO)
def compile_regex(pattern: str) -> Automaton:
    """The strings that `pattern` matches as a whole; `.` is any character, a newline too, unless (?-s) is in force.

    Raises `PatternError` for what RE2 refuses, and for what is no set of whole strings or not supported: `\\b`, `\\B`,
    `\\C`, (?m), and scripts in `\\p{...}`.
    """
    return Automaton.matching(_Parser(pattern).parse())


class _Flags(NamedTuple):
    fold: bool = False
    dot_all: bool = True


class _Group:
    """An open group: its finished branches, the items of the branch being read, and the flags to return to."""

    def __init__(self, position: int, flags: _Flags) -> None:
        self.position = position
        self.flags = flags
        self.branches: list[Expression] = []
        self.items: list[Expression] = []

    def next_branch(self) -> None:
        self.branches.append(self.items[0] if len(self.items) == 1 else Concat(tuple(self.items)))
        self.items = []

    def finish(self) -> Expression:
        self.next_branch()
        if len(self.branches) == 1:
            return self.branches[0]
        if all(isinstance(branch, Chars) for branch in self.branches):
            return Chars.of([r for branch in self.branches if isinstance(branch, Chars) for r in branch.ranges()])
        return Choice(tuple(self.branches))


class _Parser:
    """Reads a pattern from left to right, with a stack of the groups that are open."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = _Flags()
        self.groups = [_Group(0, self.flags)]
        self.repeated_to = -1  # where the last repetition operator ended

    def parse(self) -> Expression:
        while self.at < len(self.pattern):
            if not self._repetition():
                self._item()
        if len(self.groups) > 1:
            raise self._error("this ( is never closed", self.groups[-1].position)
        return self.groups[0].finish()

    def _error(self, reason: str, position: int | None = None) -> PatternError:
        return PatternError(self.pattern, self.at if position is None else position, reason)

    def _take(self, syntax: re.Pattern[str]) -> re.Match[str] | None:
        """Match fixed `syntax` here and step over it."""
        found = syntax.match(self.pattern, self.at)
        if found:
            self.at = found.end()
        return found

    def _add(self, item: Expression) -> None:
        self.groups[-1].items.append(item)

    # --- items ---

    def _item(self) -> None:
        char = self.pattern[self.at]
        match char:
            case "(":
                self._open()
            case ")":
                self._close()
            case "[":
                self._add(self._class())
            case "\\":
                self._escape()
            case "|":
                self.at += 1
                self.groups[-1].next_branch()
            case _:
                self.at += 1
                self._add(self._plain(char))

    def _plain(self, char: str) -> Expression:
        if char == ".":
            return ANY if self.flags.dot_all else Chars.one("\n").negated()
        if char in "^$":
            return Edge(at_end=char == "$")
        return self._one(ord(char))

    def _one(self, code: int) -> Chars:
        return Chars.of(self._folded([(code, code)]))

    def _repetition(self) -> bool:
        """Read a repetition operator, if there is one here, and apply it."""
        start = self.at
        found = self._take(_REPETITION)
        if not found:
            return False
        if start == self.repeated_to:
            raise self._error("a repetition operator must not follow another one", start)
        items = self.groups[-1].items
        if not items:
            raise self._error("nothing to repeat", start)
        low, high = self._bounds(found, start)
        items.append(_repeat(items.pop(), low, high))
        self.repeated_to = self.at
        return True

    def _bounds(self, found: re.Match[str], start: int) -> tuple[int, int | None]:
        if found["sign"]:
            return _SIGNS[found["sign"]]
        low = int(found["low"])
        high = low if found["comma"] is None else int(found["high"]) if found["high"] else None
        if max(low, high or 0) > _MAX_REPEAT:
            raise self._error(f"more than {_MAX_REPEAT:,} repetitions", start)
        if high is not None and high < low:
            raise self._error("the repetition's bounds are in the wrong order", start)
        return low, high

    # --- groups ---

    def _open(self) -> None:
        start = self.at
        flags = self.flags
        if self.pattern.startswith("(?", start):
            if not self._take(_NAME):
                flags = self._flags()
                if self.pattern[self.at - 1] == ")":
                    self.flags = flags
                    return
        else:
            self.at += 1
        if len(self.groups) > _MAX_NESTING:
            raise self._error(f"groups nested more than {_MAX_NESTING} deep", start)
        self.groups.append(_Group(start, self.flags))
        self.flags = flags

    def _flags(self) -> _Flags:
        """Read `(?flags)` or `(?flags:` and return what it puts into force."""
        start = self.at
        found = self._take(_FLAGS)
        if not found:
            reason = next((why for prefix, why in _REFUSED_GROUPS if self.pattern.startswith(prefix, start)), None)
            raise self._error(reason or "not a group or flags that RE2 knows", start)
        on, off = found["on"], found["off"] or ""
        if "m" in on:
            raise self._error("the flag m is not supported: ^ and $ are the ends of the whole value", start)
        fold = (self.flags.fold or "i" in on) and "i" not in off
        return _Flags(fold, (self.flags.dot_all or "s" in on) and "s" not in off)

    def _close(self) -> None:
        if len(self.groups) == 1:
            raise self._error("this ) closes nothing")
        self.at += 1
        group = self.groups.pop()
        self.flags = group.flags
        self._add(group.finish())

    # --- escapes ---

    def _escape(self) -> None:
        if found := self._take(_QUOTED):
            for char in found["text"]:
                self._add(self._one(ord(char)))
        elif found := self._take(_EDGE):
            self._add(Edge(at_end=found[0] == "\\z"))
        else:
            ranges = self._escaped_group()
            self._add(self._one(self._escaped_code()) if ranges is None else Chars.of(ranges))

    def _escaped_code(self) -> int:
        """Read an escape that stands for one character."""
        start = self.at
        found = self._take(_CODE)
        if not found:
            escape = self.pattern[start : start + 2]
            reason = "nothing follows the \\" if escape == "\\" else f"{escape} is not an escape that RE2 knows"
            raise self._error(_REFUSED_ESCAPES.get(escape, reason), start)
        if found["self"]:
            return _CONTROLS.get(found["self"], ord(found["self"]))
        code = int(found["octal"], 8) if found["octal"] else int(found["hex"] or found["long"], 16)
        if code > 0x10FFFF:
            raise self._error("beyond the last code point, 10FFFF", start)
        return code

    def _escaped_group(self) -> _Ranges | None:
        """Read an escape that stands for a set of characters, if there is one here."""
        start = self.at
        escape = self.pattern[start : start + 2]
        if escape.lower() in _PERL:
            self.at += 2
            return self._group_ranges(_PERL[escape.lower()], negated=escape[1].isupper())
        if escape not in ("\\p", "\\P"):
            return None
        found = self._take(_CATEGORY)
        if not found:
            raise self._error("expected a general category, as in \\pL or \\p{Lu}", start)
        ranges = category_ranges(found["short"] or found["name"])
        if not ranges:
            raise self._error("not a general category; scripts and other properties are not supported", start)
        return self._group_ranges(ranges, negated=(found["letter"] == "P") != bool(found["not"]))

    def _group_ranges(self, ranges: _Ranges, negated: bool) -> _Ranges:
        folded = Chars.of(self._folded(ranges))
        return (folded.negated() if negated else folded).ranges()

    def _folded(self, ranges: _Ranges) -> _Ranges:
        return fold(ranges) if self.flags.fold else ranges

    # --- character classes ---

    def _class(self) -> Chars:
        start = self.at
        negated = self.pattern.startswith("[^", start)
        self.at += 2 if negated else 1
        first = self.at
        ranges: _Ranges = []
        while self.at == first or not self.pattern.startswith("]", self.at):
            if self.at >= len(self.pattern):
                raise self._error("this [ is never closed", start)
            ranges += self._class_item()
        self.at += 1
        return Chars.of(ranges).negated() if negated else Chars.of(ranges)

    def _class_item(self) -> _Ranges:
        start = self.at
        group = self._posix_group() or self._escaped_group()
        if group is not None:
            return group
        low = high = self._class_code()
        if self._take(_DASH):
            high = self._class_code()
        if high < low:
            raise self._error("the range's ends are in the wrong order", start)
        return self._folded([(low, high)])

    def _posix_group(self) -> _Ranges | None:
        """Read a set such as `[:alpha:]` or `[:^alpha:]`, if there is one here."""
        start = self.at
        end = self.pattern.find(":]", start + 2) if self.pattern.startswith("[:", start) else -1
        if end < 0:
            return None
        name = self.pattern[start + 2 : end]
        ranges = _POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise self._error("not a class that RE2 knows", start)
        self.at = end + 2
        return self._group_ranges(ranges, negated=name.startswith("^"))

    def _class_code(self) -> int:
        if self.pattern[self.at] == "\\":
            return self._escaped_code()
        self.at += 1
        return ord(self.pattern[self.at - 1])


def _repeat(part: Expression, low: int, high: int | None) -> Expression:
    """`part` repeated; over a part that is itself `x*`, `x+` or `x?`, a repetition of x: stacks cost nothing."""
    if part == EMPTY or high == 0:
        return EMPTY
    if isinstance(part, Repeat) and (part.low, part.high) in _SIGNS.values():
        return Repeat(part.part, part.low * low, part.high and high)
    return Repeat(part, low, high)


# --- sets of characters ---


def _pairs(ends: str) -> _Ranges:
    return [(ord(low), ord(high)) for low, high in zip(ends[::2], ends[1::2], strict=True)]


@cache
def category_ranges(name: str) -> _Ranges:
    """The code points of a general category (`Lu`), of a group of them (`L`) or of `Any`, surrogates left out."""
    if name == "Any":
        return [(0, 0x10FFFF)]
    return [r for category, ranges in _categories().items() if name and category.startswith(name) for r in ranges]


@cache
def _categories() -> dict[str, _Ranges]:
    """The ranges of each general category but Cn, the unassigned, which RE2 leaves out, and Cs, which no text has."""
    found: dict[str, _Ranges] = defaultdict(list)
    code = 0
    for category, run in groupby(map(unicodedata.category, map(chr, range(0x110000)))):
        length = sum(1 for _ in run)
        if category not in ("Cn", "Cs"):
            found[category].append((code, code + length - 1))
        code += length
    return found


def fold(ranges: Iterable[tuple[int, int]]) -> _Ranges:
    """`ranges`, and all that differs from some character of theirs in case alone."""
    out = list(ranges)
    for low, high in list(out):
        codes = range(low, high + 1) if high - low < len(_orbits()) else _orbits()
        out += [(other, other) for code in codes if low <= code <= high for other in _orbits().get(code, ())]
    return out


@cache
def _orbits() -> dict[int, list[int]]:
    """Each character that has other cases, with all of them. Planes beyond 1 have no case."""
    orbits: dict[str, list[int]] = defaultdict(list)
    for code in range(0x20000):
        orbits[chr(code).casefold()].append(code)
    return {code: orbit for orbit in orbits.values() if len(orbit) > 1 for code in orbit}


_PERL = {"\\d": _pairs("09"), "\\s": _pairs("\t\n\f\r  "), "\\w": _pairs("09AZ__az")}
_POSIX = {
    "alnum": _pairs("09AZaz"),
    "alpha": _pairs("AZaz"),
    "ascii": _pairs("\x00\x7f"),
    "blank": _pairs("\t\t  "),
    "cntrl": _pairs("\x00\x1f\x7f\x7f"),
    "digit": _pairs("09"),
    "graph": _pairs("!~"),
    "lower": _pairs("az"),
    "print": _pairs(" ~"),
    "punct": _pairs("!/:@[`{~"),
    "space": _pairs("\t\r  "),
    "upper": _pairs("AZ"),
    "word": _pairs("09AZ__az"),
    "xdigit": _pairs("09AFaf"),
}


# --- the syntax: fixed expressions, each linear in the pattern ---

_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_NUMBER = "0|[1-9][0-9]{0,8}"
_REPETITION = re.compile(
    rf"(?:(?P<sign>[*+?])|\{{(?P<low>{_NUMBER})(?P<comma>,(?P<high>{_NUMBER})?)?\}})\??",
)
_NAME = re.compile(r"\(\?P?<\w+>")
_FLAGS = re.compile(r"\(\?(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?[:)]")
_QUOTED = re.compile(r"\\Q(?P<text>.*?)(?:\\E|\Z)", re.DOTALL)
_EDGE = re.compile(r"\\[Az]")
_CATEGORY = re.compile(r"\\(?P<letter>[pP])(?:\{(?P<not>\^?)(?P<name>\w+)\}|(?P<short>[A-Z]))")
_DASH = re.compile(r"-(?=[^\]])", re.DOTALL)
_CODE = re.compile(
    r"\\(?:(?P<octal>[1-7][0-7]{1,2}|0[0-7]{0,2})|x(?P<hex>[0-9A-Fa-f]{2})|x\{0*(?P<long>[0-9A-Fa-f]{1,6})\}"
    r"|(?P<self>[afnrtv]|(?![0-9A-Za-z])[\x00-\x7f]))"
)
_CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_REFUSED_ESCAPES = {
    "\\b": "word boundaries are not supported",
    "\\B": "word boundaries are not supported",
    "\\C": "single bytes are not supported",
    "\\Z": "\\Z is not supported; \\z or $ is the end of the value",
    **{f"\\{digit}": "backreferences are not supported" for digit in "123456789"},
}
_REFUSED_GROUPS = (
    ("(?=", "lookaround is not supported"),
    ("(?!", "lookaround is not supported"),
    ("(?<=", "lookaround is not supported"),
    ("(?<!", "lookaround is not supported"),
    ("(?P=", "backreferences are not supported"),
)
