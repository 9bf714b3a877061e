"""What a broker of the random worlds stores, and what the checker knows of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vestnik.broker.effects import Append
from vestnik.broker.stored import StoredEvent
from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.recovery.pages import LogEntry, PassedOver, read_page
from vestnik.wire.origins import Origin, ReadTerms, Slice, Span
from vestnik.wire.sieve import Sieve

RESERVED: Final = 8
"""Offsets that are reserved at a time."""


class Disk:
    """One log of one broker. A broker without a disk has another one in each life, of which it can read nothing."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.log: list[LogEntry] = []
        self.clients: dict[int, str] = {}  # who published the event at an offset
        self.ever: dict[int, tuple[LogEntry, Event]] = {}  # what was stored, for the checker
        self.accepted: dict[int, float] = {}  # when, by the time of the world
        self.offsets: dict[Pair, int] = {}
        self.acknowledged: set[int] = set()
        self.dropped: set[int] = set()  # offsets at which retention or damage took an event
        self.begin = self.start = self.synced = 1  # everything below `synced` is durable
        self.reserved = 1
        self.holes: list[Span] = []
        self._dropped_until = -1

    def why(self, gap: Span) -> str:
        return "lost" if any(hole.first <= gap.first < hole.end for hole in self.holes) else "dropped"

    @property
    def latest(self) -> int:
        return self.log[-1].time if self.log else 0

    @property
    def stored(self) -> Iterator[StoredEvent]:
        """Yield what a broker that starts recognises repeats by."""
        return (StoredEvent.read(self.clients[one.offset], one.packed) for one in self.log)

    def reserve(self, what: Append, now: float) -> None:
        """Reserve offsets before they are used."""
        if what.end > self.reserved:
            self.reserved = what.end + RESERVED
        self.accepted |= dict.fromkeys(range(what.first, what.end), now)

    def append(self, what: Append) -> None:
        for place, event in enumerate(what.events):
            entry = LogEntry(what.first + place, what.time, what.packed[place])
            self.log.append(entry)
            self.ever[entry.offset] = entry, event
            self.clients[entry.offset] = what.client
            self.offsets[event.source, event.id] = entry.offset
        self.synced = max(self.synced, what.end)

    def acknowledge(self, event: Event) -> bool:
        """Note that a publisher is told that an event is stored; return whether it is."""
        offset = self.offsets.get((event.source, event.id))
        if offset is not None:
            self.acknowledged.add(offset)
        return offset is not None

    # --- reading ---

    def entries(self, span: Span) -> Iterator[LogEntry]:
        return (entry for entry in self.log if span.first <= entry.offset < span.end)

    def search(self, span: Span, sieve: Sieve | None) -> Iterator[LogEntry | PassedOver]:
        return self.entries(span)

    def offset_since(self, time: int) -> int:
        if self._dropped_until >= time:
            return 0
        return max([entry.offset + 1 for entry in self.log if entry.time < time], default=self.start)

    def read(self, terms: ReadTerms, end: int) -> Slice:
        return read_page(self, terms, end)

    # --- faults ---

    def crash(self, damage: int) -> None:
        """Lose what was not synced; with `damage`, also some of what was, which leaves a hole."""
        end = max(self.start, self.synced - damage)
        self._take([entry for entry in self.log if entry.offset >= end])
        if damage:
            first = min([end, *[hole.first for hole in self.holes if hole.end >= end]])
            self.holes = [*[hole for hole in self.holes if hole.end < end], Span(first, self.reserved)]
        self.synced = self.reserved

    def drop(self, keep: int) -> None:
        """Let retention drop all but the last events."""
        gone = [entry for entry in self.log if entry.offset < self.synced - keep]
        if gone:
            self.start, self._dropped_until = gone[-1].offset + 1, gone[-1].time
            self._take(gone)

    def _take(self, gone: list[LogEntry]) -> None:
        offsets = {entry.offset for entry in gone}
        self.log = [entry for entry in self.log if entry.offset not in offsets]
        self.dropped |= offsets
        for entry in gone:
            event = entry.event
            self.offsets.pop((event.source, event.id), None)
