"""What a broker's clients publish, in its memory and no longer than its process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from vestnik.broker.effects import Append, Look, Seen
from vestnik.broker.selection import recollect
from vestnik.journal import Record
from vestnik.model.events import Event
from vestnik.server.store import Answer, WhenStored
from vestnik.wire.leaves import Leaf
from vestnik.wire.messages import Recall, Taken, Unread
from vestnik.wire.packing import TAKEN, pack_all, pack_taken, unpack_all

REMEMBERED: Final = 10_000
"""Events that a broker without a journal keeps."""


class _Batch(NamedTuple):
    """Events that were taken together, packed: what lies long is not to be many objects."""

    first: int
    size: int
    time: int
    packed: bytes

    def taken(self) -> Iterator[Taken]:
        for position, event in enumerate(unpack_all(self.packed), start=self.first):
            yield Taken(position, self.time, event)


class MemoryStore:
    """Keeps the last `most` events, so that a link that breaks loses nothing."""

    is_durable = False

    def __init__(self, first: int, most: int = REMEMBERED) -> None:
        self.position = self._before = first - 1
        self._most = most
        self._batches: deque[_Batch] = deque()
        self._size = 0

    def append(self, what: Append, done: WhenStored) -> None:
        events = what.events
        if any(event.seq is None for event in events):
            events = tuple([event for event in events if event.seq is not None])
        if events:
            self._batches.append(_Batch(self.position + 1, len(events), time.time_ns() // 1000, pack_all(events)))
            self.position += len(events)
            self._size += len(events)
            while self._size - self._batches[0].size >= self._most:
                self._size -= self._batches.popleft().size
        done(what, "")

    def recall(self, what: Recall, answer: Answer) -> None:
        upto = what.upto or self.position
        before = max(self._before, self.position - self._most)
        lost = self._lost(what.after) if 0 <= what.after < before else ""
        for part in recollect(what, list(self._taken(what.after, upto)), upto, lambda: lost):
            answer(part)

    def review(self, what: Look, answer: Callable[[Seen], None]) -> None:
        review, before = what.review, max(self._before, self.position - self._most)
        upto = min(review.upto, self.position) if review.upto > 0 else self.position
        start = after = review.after if review.after >= 0 else before
        leaf = Leaf(review.filter, review.most if review.most > 0 else None)
        if start < min(before, upto):
            leaf.miss([Unread(start + 1, before, self._lost(start))], before + 1, upto)
        for taken in self._taken(start, upto):
            if not leaf.put(Record(taken.position, TAKEN, taken.time, pack_taken("", taken.event))):
                break
            after = taken.position
        else:
            after = max(start, upto)
        answer(Seen(what, before + 1, self.position, leaf.page(after)))

    def _lost(self, after: int) -> str:
        """What is known of that which came after a position and is kept no more."""
        if after < self._before:
            return "it was started again, and has no data folder: what it had taken and not sent, if any, is gone"
        return f"it has no data folder, and keeps the last {self._most:,} events only"

    def taken(self, lost: list[str]) -> Iterator[tuple[int, Event]]:
        """All events that are kept, with the times at which they came. Nothing is `lost` of these."""
        for taken in self._taken(self._before, self.position):
            yield taken.time, taken.event

    def _taken(self, after: int, upto: int) -> Iterator[Taken]:
        """What is kept behind a position and up to another."""
        after = max(after, self.position - self._most)
        for batch in list(self._batches):
            if batch.first + batch.size - 1 > after and batch.first <= upto:
                yield from [taken for taken in batch.taken() if after < taken.position <= upto]
