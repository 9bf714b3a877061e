"""Blocks: consecutive events of a log in memory.

A broker keeps hundreds of thousands of events. They are packed, and numbers are in arrays: objects that are kept for so
long fall out of the processor's caches, and freeing them one by one would take as long as routing them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Final

from vestnik.recovery.reader import Reader

OVERHEAD: Final = 80
"""Bytes that an event takes beside its packed form, roughly."""
READER: Final = 40
"""Bytes that a reader takes among those that wanted an event, roughly."""
FEW: Final = 8
"""Readers that together take no memory that counts."""


class Wanting:
    """Counts the memory of the readers that wanted events: a collection of them counts once, in however many blocks.

    `size` is the bytes that all of them take.
    """

    def __init__(self) -> None:
        self.size = 0
        self._blocks: dict[int, int] = {}  # that have each, by its id: who has one keeps it

    def hold(self, one: Collection[Reader]) -> None:
        """Count what one block more has."""
        count = self._blocks.get(id(one), 0)
        self._blocks[id(one)] = count + 1
        if not count:
            self.size += READER * len(one)

    def release(self, one: Collection[Reader]) -> None:
        """Count what one block less has."""
        self._blocks[id(one)] -= 1
        if not self._blocks[id(one)]:
            del self._blocks[id(one)]
            self.size -= READER * len(one)


class Block:
    """Packed events with their offsets, the times at which they were accepted, and the readers that wanted each.

    `size` is the bytes that they take. Those of the readers count in `counted`.
    """

    __slots__ = ("_counted", "_many", "offsets", "packed", "size", "times", "wanting")

    def __init__(self, counted: Wanting) -> None:
        self._counted = counted
        self._many: dict[int, Collection[Reader]] = {}  # by their ids
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
        wanting: Sequence[Collection[Reader]],
    ) -> None:
        """Add events that were accepted at one time."""
        self.offsets.extend(offsets)
        self.times.extend([time] * len(offsets))
        self.packed += packed
        self.wanting += wanting
        self.size += sum(map(len, packed)) + OVERHEAD * len(packed)
        for one in dict(zip(map(id, wanting), wanting, strict=True)).values():
            if len(one) > FEW and id(one) not in self._many:
                self._many[id(one)] = one
                self._counted.hold(one)

    def drop(self) -> None:
        """Count no more what this block has."""
        for one in self._many.values():
            self._counted.release(one)

    def place(self, offset: int) -> int:
        """Return the place of the first event at an offset or after it."""
        return bisect_left(self.offsets, offset)
