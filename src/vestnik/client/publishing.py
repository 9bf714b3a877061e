"""What a client publishes: collected while it is its turn, and sent as one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final

from vestnik.client.answers import Answers, fail
from vestnik.client.arguments import check_events
from vestnik.client.batches import Batch, batches_of, not_stored
from vestnik.client.line import Line
from vestnik.errors import NotAccepted, OutcomeUnknown, RefusedEvent, VestnikError
from vestnik.model.events import Event
from vestnik.session.session import Session

EAGER: Final = 32
"""Events that go out before it is the turn of others: while the broker stores them, the next ones are collected."""


class Publishing:
    def __init__(self, session: Session, line: Line, answers: Answers) -> None:
        self._session = session
        self._line = line
        self._answers = answers
        self._batch: Batch | None = None  # is going to be published in this turn

    async def stored(self, event: Event) -> None:
        """Publish an event, and wait until the broker has stored it."""
        self._line.check("publish")
        batch = self._batch
        if batch is None or not batch.takes(event):
            (batch,) = batches_of([event])
            self._send()
            self._batch = batch
            asyncio.get_running_loop().call_soon(self._send)
        elif len(batch.events) == EAGER:
            self._send()
            self._line.flush()
        await batch.accepted(event)

    async def all_stored(self, events: Iterable[Event]) -> None:
        """Publish events in order, and wait until the broker has stored them."""
        self._line.check("publish")
        check_events(events)
        batches = batches_of(events)
        for batch in batches:
            self._send()
            self._batch = batch
        self._send()
        answers = [batch.accepted(*batch.events) for batch in batches]
        outcomes = await asyncio.gather(*answers, return_exceptions=True)
        refused: list[RefusedEvent] = []
        unknown: list[RefusedEvent] = []
        for outcome in outcomes:
            if isinstance(outcome, OutcomeUnknown):
                unknown += outcome.unknown
                refused += outcome.refused
            elif isinstance(outcome, NotAccepted) and outcome.refused:
                refused += outcome.refused
            elif outcome is not None:
                raise outcome
        if refused or unknown:
            raise not_stored(tuple(refused), tuple(unknown), sum([len(batch.events) for batch in batches]))

    async def all_posted(self, events: Iterable[Event]) -> None:
        """Publish events in order; nobody says what becomes of them."""
        self._line.check("publish")
        check_events(events)
        for event in events:
            if self._line.post(event):
                await self._line.make_room()

    def _send(self) -> None:
        """Request that what was collected is published."""
        batch, self._batch = self._batch, None
        if batch is not None:
            request, acts = self._session.publication(batch.events, time.monotonic())
            self._answers.expect(request, batch.answer, acts)

    def end(self, error: VestnikError) -> None:
        """Nothing is published any more."""
        if self._batch is not None:
            fail(self._batch.answer, error)
            self._batch = None
