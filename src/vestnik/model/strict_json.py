"""JSON text from outside: read fast, and refused when it says more than one thing or nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from vestnik.errors import InvalidEvent

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

MAX_NESTING = 200
TOO_DEEP = "the JSON text is nested too deep"
_STRINGS_AND_BRACKETS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_STRINGS_AND_NO_NUMBERS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|\b(NaN|Infinity)\b', re.DOTALL)
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def read_json(text: str | bytes) -> Any:
    """The value of `text`, which must be JSON in UTF-8 without duplicate names; InvalidEvent when it is not.

    Integers keep their exact value, whatever their size; a number beyond all doubles is refused, and so is nesting
    deeper than 200, lest a caller who has raised Python's recursion limit lose the process to a hostile text.
    """
    data = _utf8(text)
    _check_nesting(data)
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidEvent(_reason(data, error)) from None
    if not names_surely_differ(data, value):
        check_names(data)
    return value


def check_names(data: bytes) -> None:
    """InvalidEvent when an object anywhere in the JSON text `data` has the same name twice.

    This is the plain way, and the slow one; `read_json` goes it only where counting cannot tell.
    """
    _PAIRWISE.decode(data.decode())


def _check_nesting(data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") <= MAX_NESTING:
        return
    depth = 0
    for token in _STRINGS_AND_BRACKETS.finditer(data):
        depth += _STEPS.get(token[0], 0)
        if depth > MAX_NESTING:
            raise InvalidEvent(TOO_DEEP)


def names_surely_differ(data: bytes, value: object) -> bool:
    """True only when no object in `data`, which was decoded to `value`, has the same name twice.

    A colon of the text either follows a name or stands in a string, and so does one of the encoded value; a name that
    is repeated takes its colon with it when the value is decoded. Only an escaped colon could make up for that.
    """
    try:
        return data.count(b":") == _encode(value).count(b":") and b"\\u003" not in data
    except OverflowError:  # an integer beyond 64 bits cannot be encoded
        return False


def is_object_a_line(data: bytes, count: int) -> bool:
    """Whether `data`, in which so many values were found by reading it as lines, has one object in each of its lines.

    Else one line may have two, and another none or half of one: no value goes on behind a line that ends with } into
    one that begins with {.
    """
    breaks = count - 1
    return (
        data[:1] == b"{" and data[-1:] == b"}" and data.count(b"\n") == breaks and data.count(b"}\n{") == breaks
    ) or not (data or count)


def _utf8(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise InvalidEvent(f"JSON text is str or bytes, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidEvent("a lone surrogate in the JSON text") from None


def _reason(data: bytes, error: Exception) -> str:
    if not data.strip():
        return "the JSON text is empty"
    if data.startswith(b"\xef\xbb\xbf"):
        return "the JSON text starts with a byte order mark; remove it"
    try:
        data.decode()
    except UnicodeDecodeError as wrong:
        return f"the JSON text is not UTF-8: {wrong.reason} (byte {wrong.start})"
    if any(found[1] for found in _STRINGS_AND_NO_NUMBERS.finditer(data)):
        return "no JSON text: NaN and infinities are not numbers here"
    if "truncated" in str(error) and b"\\ud" in data.lower():
        return "no JSON text: cut short, or a lone surrogate"
    return f"no JSON text: {error}"


def _distinct(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise InvalidEvent(f"the name {name!a} is there twice in one JSON object")
        seen.add(name)


_PAIRWISE = json.JSONDecoder(object_pairs_hook=_distinct, parse_int=str, parse_float=str)
