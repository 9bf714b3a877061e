"""What a segment should have, and has not."""

from __future__ import annotations

from pathlib import Path

from vestnik.journal.reports import Lost
from vestnik.journal.scan import Piece
from vestnik.journal.segments import Segment


def hole(segment: Segment, after: int, piece: Piece) -> list[Lost]:
    """Return what is lost in `segment` between position `after` and `piece`, by the bytes that were skipped."""
    first, last = after + 1, piece.records[0].position - 1
    some = ", which had some of them" if segment.is_sparse else ""
    where = f"{piece.skipped:,} bytes before byte {piece.at:,}"
    reason = f"{where} of {segment.path.name}{some} are damaged"
    return [Lost(first, last, reason)] if first <= last else []


def end_missing(path: Path) -> str:
    return f"the end of {path.name} is missing or damaged"
