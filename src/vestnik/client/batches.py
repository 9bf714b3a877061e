"""Events that are published as one request, and the answer for which all wait who publish them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from vestnik.errors import NotAccepted, OutcomeUnknown, RefusedEvent
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
"""Reasons of refused events that are in the text of an error."""


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
        """Wait until the broker has stored some of these events; NotAccepted where it refuses them.

        OutcomeUnknown where it cannot tell.
        """
        if not self.answer.done():
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter
        done = self.answer.result()
        if done.reason and not done.unknown:
            raise NotAccepted("publication", done.reason)
        refusals = done.refused
        if done.unknown:
            refusals = tuple([Refusal(event.id, done.reason, event.source, unknown=True) for event in events])
        if not refusals:
            return
        pairs = {(event.source, event.id) for event in events}
        concerned = [one for one in refusals if (one.source, one.id) in pairs]
        if concerned:
            raise failure_of(concerned, len(events))

    def _wake(self, _: object) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


def failure_of(refusals: Iterable[Refusal], count: int | str) -> NotAccepted | OutcomeUnknown:
    """Return the error for `count` events of which some were refused, or may have been stored all the same."""
    refused: list[RefusedEvent] = []
    unknown: list[RefusedEvent] = []
    for one in refusals:
        (unknown if one.unknown else refused).append(RefusedEvent(one.source, one.id, one.reason))
    return not_stored(tuple(refused), tuple(unknown), count)


def not_stored(
    refused: tuple[RefusedEvent, ...], unknown: tuple[RefusedEvent, ...], count: int | str
) -> NotAccepted | OutcomeUnknown:
    """As `failure_of`, of events that were sorted already."""
    if unknown:
        return OutcomeUnknown(_some(unknown, count), _reasons((*unknown, *refused)), unknown, refused)
    return NotAccepted(_some(refused, count), _reasons(refused), refused)


def _some(events: Sequence[RefusedEvent], count: int | str) -> str:
    return "1 event" if count == 1 else f"{len(events)} of {count} events"


def _reasons(events: Sequence[RefusedEvent]) -> str:
    """Return the first ten reasons, each with its first event and the number of its others; then how many are left."""
    alike: dict[str, list[RefusedEvent]] = {}
    for event in events:
        alike.setdefault(event.reason, []).append(event)
    told = [_reason(reason, those) for reason, those in list(alike.items())[:SHOWN]]
    more = sum([len(those) for those in list(alike.values())[SHOWN:]])
    return "; ".join([*told, f"and {more:,} more"] if more else told)


def _reason(reason: str, events: Sequence[RefusedEvent]) -> str:
    first, more = events[0], len(events) - 1
    return f"{first.id} of source {first.source}{f' and {more:,} more' if more else ''}: {reason}"


def batches_of(events: Iterable[Event]) -> list[Batch]:
    """As few as hold all events in their order."""
    found: list[Batch] = []
    for event in events:
        if not found or not found[-1].takes(event):
            found.append(Batch())
            found[-1].takes(event)
    return found
