"""A large batch that a client publishes is taken part by part, and answered when all of it is stored."""

from __future__ import annotations

from itertools import count
from typing import Final

from vestnik.transport.ends import End
from vestnik.wire.messages import Message, NodeId, Publish, Refusal, Refused, Stored

FIRST_PART: Final = 1 << 64
"""The number of the first request that is a part. No client can send such a number."""


class Batch:
    """The rest of a batch, and the answers to its parts."""

    def __init__(self, client: NodeId, end: End, message: Publish) -> None:
        self.client = client
        self.end = end
        self._rest = message
        self._request = message.request
        self._unanswered = 0
        self._refused: list[Refusal] = []
        self._failed: Refused | None = None

    @property
    def is_taken(self) -> bool:
        """Whether all parts were."""
        return not self._rest.events

    def take(self, most: int, request: int) -> Publish:
        """Return a part, which is answered as a request of its own if the client waits for an answer."""
        events, refused = self._rest.events, self._rest.refused
        self._rest = Publish(events[most:])
        self._unanswered += 1
        return Publish(events[:most], refused=refused, request=request if self._request else 0)

    def answered(self, answer: Message) -> Message | None:
        """Take in the answer to a part; return the answer to the batch if this was the last."""
        self._unanswered -= 1
        if isinstance(answer, Stored):
            self._refused += answer.refused
        elif isinstance(answer, Refused):
            self._failed = Refused(self._request, answer.reason, answer.unknown)
        if self._unanswered or not self.is_taken:
            return None
        return self._failed or Stored(self._request, tuple(self._refused))


class Batches:
    """The batches that are taken part by part. Each part is a request of its own, numbered from FIRST_PART on."""

    def __init__(self) -> None:
        self._by_end: dict[End, Batch] = {}
        self._by_request: dict[int, Batch] = {}
        self._requests = count(FIRST_PART)

    def begin(self, client: NodeId, end: End, message: Publish) -> None:
        self._by_end[end] = Batch(client, end, message)

    def is_open(self, end: End) -> bool:
        """Return whether there is more to take of a batch."""
        return end in self._by_end

    def take(self, end: End, most: int) -> Publish:
        """Return the next part of what an end has sent."""
        batch, request = self._by_end[end], next(self._requests)
        part = batch.take(most, request)
        if part.request:
            self._by_request[request] = batch
        if batch.is_taken:
            del self._by_end[end]
        return part

    def answered(self, client: NodeId, answer: Stored | Refused) -> Message | None:
        """Return what to answer the client: nothing while a part is not answered, or if it has left since."""
        if answer.request < FIRST_PART:
            return answer
        batch = self._by_request.pop(answer.request, None)
        return batch.answered(answer) if batch is not None and batch.client == client else None

    def left(self, end: End) -> None:
        """Forget the batch of an end. Its client was not answered, and sends it again."""
        self._by_end.pop(end, None)
        self._by_request = {number: batch for number, batch in self._by_request.items() if batch.end is not end}
