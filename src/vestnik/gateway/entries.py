"""Lists of events in JSON text of which some are nested deeper than the decoder goes: these are refused alone."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from vestnik.errors import InvalidEvent
from vestnik.model.frozen import MAX_DEPTH
from vestnik.model.strict_json import MAX_NESTING, TOO_DEEP, read_json

EVENTS: Final = b'"events"'
"""The name of the list in a message of a WebSocket. An HTTP body is the list itself."""

_TOKENS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_STEPS: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


class Shallow(NamedTuple):
    """A JSON text with null in place of the entries that are nested too deep, and the places of these in the list."""

    text: bytes
    places: tuple[int, ...] = ()

    def restored(self, entries: list[Any]) -> list[Any]:
        """Return the entries, with the reason of the refusal in place of each that is nested too deep."""
        for place in self.places:
            entries[place] = InvalidEvent(f"nested deeper than {MAX_DEPTH}")
        return entries


def read_shallow(text: bytes, name: bytes = b"") -> tuple[Any, Shallow]:
    """Return the value of a JSON text, and what is left out of it: deep entries of its list, or of the list `name`.

    InvalidEvent if it is no JSON text, or if anything else is nested too deep.
    """
    try:
        return read_json(text), Shallow(text)
    except InvalidEvent as error:
        if error.reason != TOO_DEEP:
            raise
    shallow = _shallow(text, name)
    return read_json(shallow.text), shallow


def _shallow(text: bytes, name: bytes) -> Shallow:
    level = 2 if name else 1  # the depth inside the list
    parts: list[bytes] = []
    places: list[int] = []
    depth = place = begin = kept = 0
    is_listed = is_deep = False
    last = b""  # string at the outermost level
    for token in _TOKENS.finditer(text):
        found = token[0]
        if found == b"," and depth == level:
            place += is_listed
        elif depth < level and found == b"[" and depth + 1 == level and last == name:
            is_listed, place = True, 0
        elif depth == 1 and found[:1] == b'"':
            last = found
        step = _STEPS.get(found, 0)
        if step > 0 and depth == level:
            begin, is_deep = token.start(), False
        depth += step
        is_deep = is_deep or depth > MAX_NESTING
        if step < 0 and depth == level and is_deep and is_listed:
            parts += [text[kept:begin], b"null"]
            places.append(place)
            kept = token.end()
        elif step < 0 and depth < level:
            is_listed = False
    return Shallow(b"".join([*parts, text[kept:]]), tuple(places))
