"""Events that are published as one request, and the answer for which all wait who publish them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from vestnik.errors import NotAccepted, RefusedEvent
from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.streams import WINDOW
from vestnik.session.acts import Done
from vestnik.wire.frames import PIECE
from vestnik.wire.messages import Refusal
from vestnik.wire.pages import packed_to_publish

TOGETHER: Final = WINDOW // 2
"""Events in one request: so few that a broker knows all of them when it is repeated."""

SHOWN: Final = 10
"""Refused events whose reasons are in the text of an error."""


class Batch:
    """Not more than TOGETHER events, and not more bytes than PIECE unless it is one event.

    None is there twice by its source and id, which is how a broker names those that it refuses.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Done] = self._loop.create_future()
        self.answer.add_done_callback(self._wake)
        self._waiters: list[asyncio.Future[None]] = []
        self._size = 0
        self._pairs: set[Pair] = set()

    def takes(self, event: Event) -> bool:
        """Take an event, if there is room for it; InvalidEvent where there never is."""
        size = len(packed_to_publish(event))
        pair = event.source, event.id
        if self.events and (len(self.events) == TOGETHER or self._size + size > PIECE or pair in self._pairs):
            return False
        self._pairs.add(pair)
        self.events.append(event)
        self._size += size
        return True

    async def accepted(self, *events: Event) -> None:
        """Wait until the broker has stored some of these events; NotAccepted where it refuses them."""
        if not self.answer.done():
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter
        done = self.answer.result()
        if done.reason:
            raise NotAccepted("publication", done.reason)
        if not done.refused:
            return
        pairs = {(event.source, event.id) for event in events}
        refused = tuple([refused_event(one) for one in done.refused if (one.source, one.id) in pairs])
        if refused:
            raise not_accepted(refused, len(events))

    def _wake(self, _: object) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


def refused_event(refusal: Refusal) -> RefusedEvent:
    return RefusedEvent(refusal.source, refusal.id, refusal.reason)


def not_accepted(refused: tuple[RefusedEvent, ...], count: int | str) -> NotAccepted:
    """That of so many events some are refused; the text has the reasons of the first ten, `refused` has all."""
    reasons = "; ".join(f"{id} of source {source}: {reason}" for source, id, reason in refused[:SHOWN])
    if len(refused) > SHOWN:
        reasons += f"; and {len(refused) - SHOWN:,} more"
    return NotAccepted(f"{len(refused)} of {count} events", reasons, refused)


def batches_of(events: Iterable[Event]) -> list[Batch]:
    """As few as hold all events in their order."""
    found: list[Batch] = []
    for event in events:
        if not found or not found[-1].takes(event):
            found.append(Batch())
            found[-1].takes(event)
    return found
