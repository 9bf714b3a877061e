"""Who wanted the latest events of the own log, so that they are not matched again for readers that lag a little."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from itertools import islice
from typing import Final

from vestnik.recovery.reader import Reader

LATEST: Final = 4_000
"""Events of which this is known, at least. It is known of twice as many at most."""


class LatestWanted:
    """The readers that wanted each of the latest events, by offset. `first` is the least of these offsets."""

    def __init__(self) -> None:
        self._readers: dict[int, Collection[Reader]] = {}

    def note(self, offsets: Iterable[int], readers: Iterable[Collection[Reader]]) -> None:
        """Note who wanted events that are routed."""
        self._readers.update(zip(offsets, readers, strict=True))
        if len(self._readers) > 2 * LATEST:
            for offset in list(islice(self._readers, LATEST)):
                del self._readers[offset]

    def knows(self, offset: int) -> bool:
        return offset in self._readers

    def is_wanted(self, offset: int, readers: Set[Reader]) -> bool:
        """Return whether any of some readers wanted an event that is known."""
        return not readers.isdisjoint(self._readers[offset])

    def wants(self, reader: Reader, offset: int) -> bool | None:
        """Return whether a reader wanted an event; None if that is not known."""
        readers = self._readers.get(offset) if offset >= reader.known_from else None
        return None if readers is None else reader in readers
