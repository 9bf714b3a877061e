"""Blocks: consecutive events of a log in memory.

A broker keeps hundreds of thousands of events. They are packed, and numbers are in arrays: objects that are kept for so
long fall out of the processor's caches, and freeing them one by one would take as long as routing them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from vestnik.recovery.reader import Reader

OVERHEAD: Final = 80
"""Bytes that an event takes beside its packed form, roughly."""


class Block:
    """Packed events with their offsets, the times at which they were accepted, and the readers that wanted each.

    `size` is the bytes that they take.
    """

    __slots__ = ("offsets", "packed", "size", "times", "wanting")

    def __init__(self) -> None:
        self.offsets = array("q")
        self.times = array("q")
        self.wanting: list[Collection[Reader]] = []
        self.packed: list[bytes] = []
        self.size = 0

    def __len__(self) -> int:
        return len(self.offsets)

    def extend(
        self,
        offsets: Sequence[int],
        time: int,
        packed: Sequence[bytes],
        wanting: Iterable[Collection[Reader]],
    ) -> None:
        """Add events that were accepted at one time."""
        self.offsets.extend(offsets)
        self.times.extend([time] * len(offsets))
        self.packed += packed
        self.wanting += wanting
        self.size += sum(map(len, packed)) + OVERHEAD * len(packed)

    def place(self, offset: int) -> int:
        """Return the place of the first event at an offset or after it."""
        return bisect_left(self.offsets, offset)
