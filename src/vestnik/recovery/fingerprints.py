"""A compact memory of keys that were seen lately."""

from __future__ import annotations

from array import array
from typing import Final

from vestnik.model.envelope import Pair

FEWEST: Final = 32
"""Slots of a table that is new."""
MASK: Final = (1 << 64) - 1


class Table:
    """Fingerprints of 64 bits in a hash table with open addressing: 16 to 32 bytes for each."""

    __slots__ = ("_slots", "count")

    def __init__(self) -> None:
        self.count = 0
        self._slots = array("Q", bytes(8 * FEWEST))

    def __contains__(self, fingerprint: int) -> bool:
        return bool(self._slots[self._slot(fingerprint)])

    def add(self, fingerprint: int) -> None:
        slot = self._slot(fingerprint)
        if not self._slots[slot]:
            self._slots[slot] = fingerprint
            self.count += 1
            if 2 * self.count > len(self._slots):
                self._grow()

    def _slot(self, fingerprint: int) -> int:
        """Return the slot that has a fingerprint, or the free one where it belongs."""
        slots, last = self._slots, len(self._slots) - 1
        slot = fingerprint & last
        while slots[slot] and slots[slot] != fingerprint:
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        before, self._slots = self._slots, array("Q", bytes(16 * len(self._slots)))
        for fingerprint in before:
            if fingerprint:
                self._slots[self._slot(fingerprint)] = fingerprint


class Fingerprints:
    """Knows at least the last `size` events that were added, and at most twice as many, by source and id."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._young = Table()
        self._old: Table | None = None

    def __contains__(self, pair: Pair) -> bool:
        fingerprint = fingerprint_of(pair)
        return fingerprint in self._young or (self._old is not None and fingerprint in self._old)

    def add(self, pair: Pair) -> None:
        if self._young.count >= self._size:
            self._old, self._young = self._young, Table()
        self._young.add(fingerprint_of(pair))


def fingerprint_of(pair: Pair) -> int:
    """Return 64 bits that are not 0. Within one process, equal pairs have equal ones."""
    return hash(pair) & MASK or 1
