"""Files of lines, read as they arrive: a live stream is answered at once, a large file in large pieces."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedIOBase
from typing import NamedTuple

CHUNK = 1 << 20
LONGEST = 1 << 24
"""Bytes of a line; of a longer one no more than this is ever held."""


class Line(NamedTuple):
    """A line by its number, from 1; `text` is None where it is longer than allowed."""

    number: int
    text: bytes | None


class Batch(NamedTuple):
    """Lines that came together, without blank ones, and how many bytes were read for them."""

    lines: list[Line]
    size: int


def batches(file: BufferedIOBase, chunk: int = CHUNK, longest: int = LONGEST) -> Iterator[Batch]:
    """All lines of `file`; the last one need not end."""
    number = held = 0
    parts: list[bytes] = []
    while data := file.read1(chunk):
        lines: list[Line] = []
        *whole, rest = data.split(b"\n")
        for piece in whole:
            number += 1
            text = b"".join([*parts, piece]) if held + len(piece) <= longest else None
            parts, held = [], 0
            if text is None or text.strip():
                lines.append(Line(number, text))
        held += len(rest)
        parts = [*parts, rest] if held <= longest else []
        yield Batch(lines, len(data))
    last = b"".join(parts) if held <= longest else None
    if last is None or last.strip():
        yield Batch([Line(number + 1, last)], 0)
