"""What a broker's clients publish, in its memory and no longer than its process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from vestnik.broker.core import OwnLog
from vestnik.broker.effects import Append, Look, Seen
from vestnik.journal import Record
from vestnik.model.events import Event
from vestnik.recovery.pages import read_page
from vestnik.recovery.tail import Tail
from vestnik.server.store import Answer, WhenStored
from vestnik.wire.leaves import Leaf
from vestnik.wire.messages import Unread
from vestnik.wire.origins import ENDLESS, ReadTerms, Span
from vestnik.wire.packing import TAKEN, pack_taken

RESTARTED: Final = "the broker has no data folder: what it had before this start is gone"


class MemoryStore:
    """Stores nothing: the log of such a broker is the tail of its core. `first` is the first offset of this life."""

    is_durable = False

    def __init__(self, first: int) -> None:
        self._first = first
        self._tail: Tail | None = None

    @property
    def log(self) -> OwnLog:
        """The log with which the broker starts: its id is greater than that of any earlier life."""
        return OwnLog(self._first, self._first)

    def look_at(self, tail: Tail) -> None:
        """Show clients that read the log what is in memory."""
        self._tail = tail

    @property
    def position(self) -> int:
        return self._first - 1 if self._tail is None else self._tail.routed - 1

    def taken(self, lost: list[str]) -> Iterator[tuple[int, Event]]:
        """Yield all events that are kept, with the times at which they came. Nothing is `lost` of these."""
        for entry in self._tail.entries(Span(0, ENDLESS)) if self._tail is not None else ():
            yield entry.time, entry.event

    def append(self, what: Append, done: WhenStored) -> None:
        done(what, "")

    def read(self, terms: ReadTerms, end: int, answer: Answer) -> None:
        assert self._tail is not None
        answer(read_page(self._tail, terms, end))

    def review(self, what: Look, answer: Callable[[Seen], None]) -> None:
        assert self._tail is not None
        review, tail, last = what.review, self._tail, self.position
        upto = min(review.upto, last) if review.upto > 0 else last
        start = after = review.after if review.after >= 0 else tail.start - 1
        leaf = Leaf(review.filter, review.most if review.most > 0 else None)
        if start < min(tail.start - 1, upto):
            reason = RESTARTED if start < self._first - 1 else tail.why(Span(start, tail.start))
            leaf.miss([Unread(start + 1, tail.start - 1, reason)], tail.start, upto)
        for entry in tail.entries(Span(start + 1, upto + 1)):
            if not leaf.put(Record(entry.offset, TAKEN, entry.time, pack_taken("", entry.packed))):
                break
            after = entry.offset
        else:
            after = max(start, upto)
        answer(Seen(what, tail.start, last, leaf.page(after), journal=str(self._first)))
