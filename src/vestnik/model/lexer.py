"""Text to tokens, with what a token may look like said in one place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from vestnik.errors import FilterSyntaxError
from vestnik.model.frozen import MAX_INT, MIN_INT
from vestnik.model.hints import unreadable
from vestnik.model.keywords import KEYWORDS

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<name>[^\W\d]\w*)
    | (?P<number>-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?(?![\w.]))
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*")
    | (?P<symbol><=|>=|!=|[=<>(),.@])
    | (?P<end>$)
    )""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """`kind` is a keyword, a symbol, or name, number, string, end; `value` what it stands for."""

    kind: str
    value: Any
    column: int
    end: int


def tokens(text: str) -> Iterator[Token]:
    """The tokens of `text`, the last of kind `end`; FilterSyntaxError where there is none."""
    at = 0
    while True:
        found = _TOKEN.match(text, at)
        if found is None:
            raise unreadable(text, len(text) - len(text[at:].lstrip()))
        kind = "number" if found["number"] is not None else found.lastgroup or "end"
        start, at = found.span(kind)
        yield _token(text, found, kind, start, at)
        if kind == "end":
            return


def _token(text: str, found: re.Match[str], kind: str, start: int, end: int) -> Token:
    column = start + 1
    if kind == "name":
        name = found["name"]
        upper = name.upper()
        return Token(upper if upper in KEYWORDS else "name", name, column, end)
    if kind == "symbol":
        symbol = found["symbol"]
        return Token(symbol, symbol, column, end)
    if kind == "string":
        return Token("string", _scalar_text(text, found["string"][1:-1].replace("''", "'"), column), column, end)
    if kind == "quoted":
        return Token("name", _scalar_text(text, found["quoted"][1:-1].replace('""', '"'), column), column, end)
    if kind == "end":
        return Token("end", None, len(text.rstrip()) + 1, end)
    return Token("number", _number(text, found, column), column, end)


def _number(text: str, found: re.Match[str], column: int) -> int | float:
    if found["fraction"] is None and found["exponent"] is None:
        if len(found["number"]) > 20 or not MIN_INT <= (whole := int(found["number"])) <= MAX_INT:
            raise FilterSyntaxError(text, column, "an integer that fits 64 bits")
        return whole
    value = float(found["number"])
    if value in (float("inf"), float("-inf")):
        raise FilterSyntaxError(text, column, "a number that fits a double")
    return value


def _scalar_text(text: str, value: str, column: int) -> str:
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise FilterSyntaxError(text, column, "text without lone surrogates")
    return value
