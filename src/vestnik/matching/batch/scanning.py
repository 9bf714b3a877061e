"""The loops that find values in JSON text, compiled by numba: where those at the paths in use are, and of what kind.

Nothing is decoded here, and what is not plainly JSON is refused: whoever called asks a decoder then.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from vestnik.matching.batch.kernels import FALSE_RANK, LIST_RANK, MAP_RANK, NULL_RANK, TRUE_RANK

INT, FLOAT, LONG, TEXT, ODD = range(LIST_RANK + 1, LIST_RANK + 6)
"""Kinds beside those that are ranks, of which missing is 0. LONG is a double whose digits do not say it plainly. ODD is
for a decoder: an escape in a string, a number that may be too large."""
DEEPEST = 100
"""Objects and lists inside each other; what is deeper is refused."""
NOBODY = -1
REFUSED = -1

_QUOTE, _BACKSLASH, _COMMA, _COLON = ord('"'), ord("\\"), ord(","), ord(":")
_OBJECT, _OBJECT_END, _LIST, _LIST_END = ord("{"), ord("}"), ord("["), ord("]")
_MINUS, _PLUS, _POINT, _ZERO, _NINE, _UPPER_E, _LOWER_E = ord("-"), ord("+"), ord("."), ord("0"), ord("9"), 69, 101
_SPACE, _UNICODE = ord(" "), ord("u")
_ESCAPES = np.array([chr(byte) in '"\\/bfnrt' for byte in range(128)])
_WORDS = np.frombuffer(b"nullfalsetrue", np.uint8)

_EXACT = 2**53
_POWERS = np.array([float(10**power) for power in range(19)])
_MOST_DIGITS = 18
"""Of an integer that surely fits into 64 bits."""


class Names(NamedTuple):
    """The names that are looked for, as a tree in preorder: node 0 is the document, others are a name below another."""

    parent: NDArray[np.int32]
    last: NDArray[np.int32]  # the node behind all that are below it
    text: NDArray[np.uint8]
    text_at: NDArray[np.int64]
    table: NDArray[np.int32]  # a hash table of nodes by parent and name; NOBODY where there is none


def names_of(paths: list[tuple[str, ...]]) -> tuple[Names, dict[tuple[str, ...], int]]:
    """The tree of `paths`, and the node of each."""
    every = sorted({path[:depth] for path in paths for depth in range(len(path) + 1)} | {()})
    nodes = {path: node for node, path in enumerate(every)}
    encoded = [path[-1].encode(errors="surrogatepass") if path else b"" for path in every]
    last = [
        next((n for n in range(node, len(every)) if every[n][: len(p)] != p), len(every)) for p, node in nodes.items()
    ]
    table = np.full(1 << (2 * len(every)).bit_length(), NOBODY, np.int32)
    for node, path in enumerate(every):
        if path:
            place = int(_hashed(np.frombuffer(encoded[node], np.uint8), nodes[path[:-1]])) & (len(table) - 1)
            while table[place] != NOBODY:
                place = (place + 1) & (len(table) - 1)
            table[place] = node
    parent = [nodes[path[:-1]] if path else NOBODY for path in every]
    last = list(range(1, len(every) + 1))
    for node in range(len(every) - 1, 0, -1):
        last[parent[node]] = max(last[parent[node]], last[node])
    text = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    at = np.cumsum([0, *map(len, encoded)])
    return Names(np.array(parent, np.int32), np.array(last, np.int32), text, at, table), nodes


@njit(cache=True, nogil=True)
def _hashed(name: Any, node: int) -> Any:
    found = np.uint32(node)
    for byte in name:
        found = _with(found, byte)
    return found


@njit(cache=True, nogil=True, inline="always")
def _with(hashed: Any, byte: Any) -> Any:
    return (hashed ^ np.uint32(byte)) * np.uint32(16777619)


@njit(cache=True, nogil=True)
def scan(text: Any, at: Any, names: Any, kinds: Any, starts: Any, ends: Any, ints: Any, floats: Any) -> int:
    """Fill in, row by row, the kind of the value at each node, where it is, and what number; how many rows were read.

    That is less than all where a row is refused. `kinds` are of missing values when it begins. A name that is there
    twice has its last value, as decoders see it.
    """
    stack = np.empty((DEEPEST, 3), np.int64)
    for row in range(len(at) - 1):
        found = kinds[row], starts[row], ends[row], ints[row], floats[row]
        if not _scan_row(text, at[row], at[row + 1], names, found, stack):
            return row
    return len(at) - 1


@njit(cache=True, nogil=True)
def _scan_row(text: Any, at: int, end: int, names: Any, found: Any, stack: Any) -> bool:
    kinds, starts, ends, ints, floats = found
    whole, real = np.int64(0), 0.0
    node, depth = 0, 0
    at = _behind_space(text, at, end)
    if at == end or text[at] != _OBJECT:
        return False
    while True:
        begin = at
        byte = text[at]
        if byte == _QUOTE:
            at, is_plain = _behind_string(text, at + 1, end)
            kind = TEXT if is_plain else ODD
        elif byte == _MINUS or _ZERO <= byte <= _NINE:
            at, kind, whole, real = _behind_number(text, at, end)
        elif byte in (_OBJECT, _LIST):
            if depth == DEEPEST:
                return False
            at = _behind_space(text, at + 1, end)
            if at == end:
                return False
            if text[at] != (_OBJECT_END if byte == _OBJECT else _LIST_END):
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = node, begin, byte
                depth += 1
                if byte == _LIST:
                    node = NOBODY
                else:
                    at, node = _behind_name(text, at, end, names, node, kinds)
                    if at == REFUSED:
                        return False
                continue
            at += 1
            kind = MAP_RANK if byte == _OBJECT else LIST_RANK
        else:
            at, kind = _behind_word(text, at, end)
        if at == REFUSED:
            return False
        while True:
            if node > 0:
                kinds[node], starts[node], ends[node] = kind, begin, at
                if kind == INT:
                    ints[node] = whole
                elif kind == FLOAT:
                    floats[node] = real
            at = _behind_space(text, at, end)
            if depth == 0:
                return at == end
            if at == end:
                return False
            byte, opened = text[at], stack[depth - 1, 2]
            if byte == _COMMA:
                at = _behind_space(text, at + 1, end)
                if at == end:
                    return False
                node = NOBODY
                if opened == _OBJECT:
                    at, node = _behind_name(text, at, end, names, stack[depth - 1, 0], kinds)
                    if at == REFUSED:
                        return False
                break
            if byte != (_OBJECT_END if opened == _OBJECT else _LIST_END):
                return False
            depth -= 1
            node, begin = stack[depth, 0], stack[depth, 1]
            kind = MAP_RANK if opened == _OBJECT else LIST_RANK
            at += 1


@njit(cache=True, nogil=True, inline="always")
def _behind_space(text: Any, at: int, end: int) -> int:
    while at < end and text[at] <= _SPACE and (text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _behind_name(text: Any, at: int, end: int, names: Any, parent: int, kinds: Any) -> tuple[int, int]:
    """Where the value begins whose name begins here, and its node; what was below that before is no longer."""
    if text[at] != _QUOTE:
        return REFUSED, NOBODY
    at += 1
    begin = at
    hashed = np.uint32(parent)
    while at < end and text[at] != _QUOTE:
        if text[at] == _BACKSLASH or text[at] < _SPACE:
            return REFUSED, NOBODY
        hashed = _with(hashed, text[at])
        at += 1
    size = at - begin
    at = _behind_space(text, at + 1, end)
    if at >= end or text[at] != _COLON:
        return REFUSED, NOBODY
    at = _behind_space(text, at + 1, end)
    if at == end:
        return REFUSED, NOBODY
    if parent == NOBODY or names.last[parent] == parent + 1:
        return at, NOBODY
    mask = len(names.table) - 1
    place = np.int64(hashed) & mask
    while names.table[place] != NOBODY:
        node = names.table[place]
        name = names.text_at[node]
        if names.parent[node] == parent and names.text_at[node + 1] - name == size:
            same = 0
            while same < size and names.text[name + same] == text[begin + same]:
                same += 1
            if same == size:
                for below in range(node + 1, names.last[node]):
                    kinds[below] = 0
                return at, node
        place = (place + 1) & mask
    return at, NOBODY


@njit(cache=True, nogil=True)
def _behind_string(text: Any, at: int, end: int) -> tuple[int, bool]:
    """Behind the quote that ends the string whose first character is here, and whether it has no escapes."""
    is_plain = True
    while at < end:
        byte = text[at]
        at += 1
        if byte == _QUOTE:
            return at, is_plain
        if byte < _SPACE:
            return REFUSED, False
        if byte == _BACKSLASH:
            is_plain = False
            if at == end or text[at] >= 128:
                return REFUSED, False
            if text[at] == _UNICODE:
                code = _unit(text, at + 1, end)
                at += 5
                if 0xD800 <= code < 0xDC00 and at + 1 < end and text[at] == _BACKSLASH and text[at + 1] == _UNICODE:
                    code = 0 if 0xDC00 <= _unit(text, at + 2, end) <= 0xDFFF else REFUSED
                    at += 6
                if code == REFUSED or 0xD800 <= code <= 0xDFFF:  # the half of a character
                    return REFUSED, False
            elif _ESCAPES[text[at]]:
                at += 1
            else:
                return REFUSED, False
    return REFUSED, False


@njit(cache=True, nogil=True)
def _unit(text: Any, at: int, end: int) -> int:
    """What four hexadecimal digits here say."""
    if at + 4 > end:
        return REFUSED
    code = 0
    for place in range(at, at + 4):
        byte = text[place]
        lower = byte | 32
        if _ZERO <= byte <= _NINE:
            code = code * 16 + byte - _ZERO
        elif 97 <= lower <= 102:
            code = code * 16 + lower - 87
        else:
            return REFUSED
    return code


@njit(cache=True, nogil=True, inline="always")
def _behind_digits(text: Any, at: int, end: int, value: Any) -> tuple[int, Any]:
    """Behind the digits that are here, and the number that they are behind those of `value`, modulo 2**64."""
    while at < end and _ZERO <= text[at] <= _NINE:
        value = value * 10 + np.int64(text[at] - _ZERO)
        at += 1
    return at, value


@njit(cache=True, nogil=True)
def _behind_number(text: Any, at: int, end: int) -> tuple[int, int, Any, float]:
    """Behind the number that begins here, its kind, and its value where that is INT or FLOAT.

    A whole number up to 2**53 and a power of ten up to 10**22 are doubles, so that their quotient is rounded once.
    """
    is_negative = text[at] == _MINUS
    begin = at + is_negative
    at, value = _behind_digits(text, begin, end, np.int64(0))
    digits, places, kind = at - begin, 0, INT
    if digits == 0 or (digits > 1 and text[begin] == _ZERO):
        return REFUSED, ODD, value, 0.0
    if at < end and text[at] == _POINT:
        begin = at + 1
        at, value = _behind_digits(text, begin, end, value)
        places = at - begin
        kind = FLOAT if digits + places <= _MOST_DIGITS and value <= _EXACT else LONG
        if places == 0:
            return REFUSED, ODD, value, 0.0
    if at < end and (text[at] == _LOWER_E or text[at] == _UPPER_E):
        at += 1
        if at < end and (text[at] == _MINUS or text[at] == _PLUS):
            at += 1
        begin = at
        at, _ = _behind_digits(text, begin, end, np.int64(0))
        if at == begin:
            return REFUSED, ODD, value, 0.0
        kind = LONG if at - begin <= 2 else ODD
    if digits > _MOST_DIGITS:
        kind = ODD
    if is_negative:
        value = -value
    return at, kind, value, value / _POWERS[places] if kind == FLOAT else 0.0


@njit(cache=True, nogil=True)
def _behind_word(text: Any, at: int, end: int) -> tuple[int, int]:
    """Behind null, false or true, and its kind."""
    for first, last, kind in ((0, 4, NULL_RANK), (4, 9, FALSE_RANK), (9, 13, TRUE_RANK)):
        if at + last - first <= end:
            same = first
            while same < last and text[at + same - first] == _WORDS[same]:
                same += 1
            if same == last:
                return at + last - first, kind
    return REFUSED, ODD


@njit(cache=True, nogil=True)
def distinct(text: Any, starts: Any, ends: Any) -> Any:
    """For each piece of the text the number of a piece that is equal to it, and where these are."""
    codes = np.empty(len(starts), np.int32)
    firsts = np.empty(len(starts), np.int64)
    count = 0
    size = 1
    while size < 2 * len(starts):
        size *= 2
    table = np.full(size, NOBODY, np.int32)
    for i in range(len(starts)):
        start, length = starts[i], ends[i] - starts[i]
        place = np.int64(_hashed(text[start : start + length], 0)) & (size - 1)
        while table[place] != NOBODY:
            other = firsts[table[place]]
            if ends[other] - starts[other] == length:
                same = 0
                while same < length and text[start + same] == text[starts[other] + same]:
                    same += 1
                if same == length:
                    break
            place = (place + 1) & (size - 1)
        if table[place] == NOBODY:
            table[place] = count
            firsts[count] = i
            count += 1
        codes[i] = table[place]
    return codes, firsts[:count]


@njit(cache=True, nogil=True)
def gathered(text: Any, starts: Any, ends: Any) -> Any:
    """The pieces of the text one behind the other, and where each begins."""
    at = np.empty(len(starts) + 1, np.int64)
    at[0] = 0
    for i in range(len(starts)):
        at[i + 1] = at[i] + ends[i] - starts[i]
    out = np.empty(at[-1], np.uint8)
    for i in range(len(starts)):
        for place in range(ends[i] - starts[i]):
            out[at[i] + place] = text[starts[i] + place]
    return out, at
