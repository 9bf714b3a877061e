"""Reading in order of position, from any position, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from vestnik.journal.disk import Source
from vestnik.journal.losses import end_missing, hole
from vestnik.journal.records import Record
from vestnik.journal.reports import Lost
from vestnik.journal.scan import Piece, pieces
from vestnik.journal.search import Patterns, search
from vestnik.journal.segments import Segment
from vestnik.journal.shelf import Shelf

FOREVER: Final = 1 << 63
"""Beyond every position."""


class Bounds(Protocol):
    """How far a journal goes."""

    @property
    def last(self) -> int:
        """The last position that there is."""

    @property
    def readable(self) -> int:
        """The last position that may ever be read, as far as is known."""


class Step(NamedTuple):
    """Records that were read at once, maybe none; the last position, and how many bytes were passed."""

    records: list[Record]
    last: int
    size: int


class Cursor:
    """A place in a journal. Iterating goes on from it, to `until` or to the end that there is by then.

    It can be left at any record and iterated again later, when there may be more. `position` is that of the last record
    that was handed out, `lost` says what was passed over: dropped or damaged. It holds no file open and about one chunk
    of records in memory. With `patterns`, it may leave out records in whose bytes none of them matches.
    """

    def __init__(self, shelf: Shelf, bounds: Bounds, after: int, until: int | None, patterns: Patterns = ()) -> None:
        self.position = after
        self.lost: list[Lost] = []
        self._shelf = shelf
        self._bounds = bounds
        self._until = FOREVER if until is None else until
        self._ready: Iterator[Record] = iter(())
        self._seen = after
        self._segment: Segment | None = None
        self._at = 0
        self._patterns = patterns
        self._distrusted: Segment | None = None  # its checksums do not fit

    def __iter__(self) -> Iterator[Record]:
        is_more = True
        while is_more:
            for record in self._ready:
                self.position = record.position
                yield record
            is_more = self._read()

    def steps(self) -> Iterator[Step]:
        """Read on step by step, to `until` or to the end that there is by then."""
        while (step := self._step()) is not None:
            yield step

    def _read(self) -> bool:
        """Make some records ready; False where there are no more by now."""
        for step in self.steps():
            if step.records:
                self._ready = iter(step.records)
                return True
        return False

    def _step(self) -> Step | None:
        """Read some records; None where there are no more by now."""
        last = min(self._until, self._bounds.readable)
        if self._seen >= min(last, self._bounds.last):
            return None
        segment = self._shelf.after(self._seen)
        self._enter(segment, last)
        began = self._at
        if self._patterns and segment.checksums and segment is not self._distrusted:
            records = self._search(segment, last)
        else:
            piece = self._piece(segment)
            records = self._accept(segment, piece, last) if self._shelf.holds(segment) else []
        return Step(records, self._seen, self._at - began)

    def _search(self, segment: Segment, last: int) -> list[Record]:
        """The next records in which a pattern matches. If their checksum does not fit, they are read one by one."""
        try:
            with Source(segment.path, self._shelf.directory) as source:
                found = search(source, segment, self._at, self._patterns)
        except FileNotFoundError:
            found = None
        if found is None:
            self._distrusted = segment
        if found is None or not self._shelf.holds(segment):
            return []
        seen, self._seen, self._at = self._seen, max(self._seen, found.last), found.end
        return [record for record in found.records if seen < record.position <= last]

    def _enter(self, segment: Segment, last: int) -> None:
        """Go to the place in `segment` where the next record is, or shortly before it."""
        if segment is not self._segment:
            self._segment, self._at = segment, segment.byte_of(self._seen + 1)
            self._note(Lost(self._seen + 1, min(segment.first - 1, last), "they were dropped, or are missing"))
            self._seen = max(self._seen, segment.first - 1)

    def _piece(self, segment: Segment) -> Piece | None:
        """The next records in the file; None where there are no more. Without a file, all is skipped."""
        try:
            with Source(segment.path, self._shelf.directory) as source:
                return next(pieces(source, segment.mark, self._at, segment.size), None)
        except FileNotFoundError:
            return Piece(segment.size, segment.size, segment.size, [])

    def _accept(self, segment: Segment, piece: Piece | None, last: int) -> list[Record]:
        """The records of `piece` that are new and not beyond `last`; the cursor is behind it then."""
        if piece is None or not piece.records:
            self._leave(segment, piece, last)
            return []
        if piece.skipped:
            self.lost += hole(segment, self._seen, piece)
        seen, records = self._seen, piece.records
        self._seen, self._at = max(seen, records[-1].position), piece.end
        if seen < records[0].position and records[-1].position <= last:
            return records
        return [record for record in records if seen < record.position <= last]

    def _leave(self, segment: Segment, piece: Piece | None, last: int) -> None:
        """There is no more in `segment`: what should be, is lost."""
        if piece or segment.is_short or not segment.is_sparse:
            self._note(Lost(self._seen + 1, min(segment.last, last), end_missing(segment.path)))
        self._seen = segment.last

    def _note(self, lost: Lost) -> None:
        if lost.first <= lost.last:
            self.lost.append(lost)
