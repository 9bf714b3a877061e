"""The log of a broker, read from its journal."""

from __future__ import annotations

from collections.abc import Iterator

from vestnik.journal import Journal, Lost, Record
from vestnik.recovery.pages import LogEntry, LogView, PassedOver, read_page
from vestnik.wire.origins import ReadTerms, Slice, Span
from vestnik.wire.packing import TAKEN, UNREADABLE, has_seq, split_taken
from vestnik.wire.sieve import Sieve


class HoleFound(Exception):
    """Something that should be in the journal cannot be read: the page has to be read again, and end before it."""


class JournalView(LogView):
    """What can be read of a journal. What was found to be missing in it is in `lost`, which readers share."""

    def __init__(self, journal: Journal, lost: list[Lost]) -> None:
        self._journal = journal
        self._lost = lost

    @property
    def begin(self) -> int:
        return 1

    @property
    def start(self) -> int:
        return self._journal.first

    @property
    def holes(self) -> list[Span]:
        return sorted([Span(lost.first, lost.last + 1) for lost in self._lost])

    def entries(self, span: Span) -> Iterator[LogEntry]:
        return (one for one in self.search(span, None) if isinstance(one, LogEntry))

    def search(self, span: Span, sieve: Sieve | None) -> Iterator[LogEntry | PassedOver]:
        patterns = () if sieve is None else sieve.patterns
        cursor = self._journal.read(max(0, span.first - 1), span.end - 1, patterns)
        for step in cursor.steps():
            self._journal.check_reading()
            self._look(cursor.lost)
            for record in step.records:
                packed = self._event_in(record)
                if packed is not None:
                    yield LogEntry(record.position, record.time, packed)
            if sieve is not None:
                yield PassedOver(min(step.last + 1, span.end), step.size)
        self._look(cursor.lost)

    def _event_in(self, record: Record) -> bytes | None:
        """Return the packed event of a record; None if the record has no event, or one that waits for its time."""
        if record.kind != TAKEN:
            return None
        try:
            _, packed = split_taken(record.payload)
            return bytes(packed) if has_seq(packed) else None
        except UNREADABLE as error:
            self._look([no_event(record, error)])
            return None

    def _look(self, found: list[Lost]) -> None:
        """Raise HoleFound if something is missing that was not known."""
        new = [lost for lost in found if lost.last >= self._journal.first and not self._is_known(lost)]
        if new:
            self._lost += new
            raise HoleFound

    def _is_known(self, lost: Lost) -> bool:
        return any(known.first <= lost.first and lost.last <= known.last for known in self._lost)

    def offset_since(self, time: int) -> int:
        place = self._journal.position_at(time)
        if place > self._journal.first:
            return place
        return self._journal.first if self._journal.first == 1 else 0

    def why(self, gap: Span) -> str:
        found = [str(lost) for lost in self._lost if lost.first < gap.end and lost.last >= gap.first]
        return "; ".join(dict.fromkeys(found)) or "retention has dropped them"


def read_journal(journal: Journal, lost: list[Lost], terms: ReadTerms, end: int) -> Slice:
    """Read a page of what is below offset `end`."""
    while True:
        try:
            return read_page(JournalView(journal, lost), terms, end)
        except HoleFound:
            continue


def no_event(record: Record, error: Exception) -> Lost:
    """Return the loss of a record that cannot be read as an event."""
    return Lost(record.position, record.position, f"it holds no event: {error}")
