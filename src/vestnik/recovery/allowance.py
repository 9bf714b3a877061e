"""Bounds the bytes that are in flight to all readers of a broker together.

While the total is below the bound, each reader may have a whole window in flight, and after that only its share. So
readers that do not read never keep others from reading on. A reader may always have one event in flight.
"""

from __future__ import annotations

from typing import Final

WINDOW_SIZE: Final = 1024 * 1024
"""Bytes in flight to a subscription, or one event more."""


class Allowance:
    """At most `most` bytes in flight together, or a `share` for each reader."""

    __slots__ = ("_most", "_readers", "share", "size")

    def __init__(self, most: int) -> None:
        self._most = most
        self._readers = 0
        self.size = 0
        self.share = min(WINDOW_SIZE, most)

    def join(self, size: int) -> None:
        """Count a reader, which has `size` bytes in flight."""
        self._count(1)
        self.change(size)

    def leave(self, size: int) -> None:
        """Forget a reader, which has `size` bytes in flight."""
        self._count(-1)
        self.change(-size)

    def _count(self, by: int) -> None:
        self._readers += by
        self.share = max(1, min(WINDOW_SIZE, self._most // max(1, self._readers)))

    def change(self, by: int) -> None:
        """Note that more bytes are in flight, or fewer."""
        self.size += by

    def room(self, size: int) -> int:
        """Return within how many more bytes an event may begin, for a reader that has `size` bytes in flight."""
        return max(min(self._most - self.size, WINDOW_SIZE - size), self.share - size)
