"""What local clients publish: given its offset, stored, and held until its time."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Final

from vestnik.broker.acceptance import CONTENTS, Acceptance
from vestnik.broker.effects import Append, Appended, Effect, NotAppended, Send, Wake
from vestnik.broker.stored import StoredEvent
from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.reserved import is_reserved
from vestnik.model.times import MICROS
from vestnik.recovery.tail import Tail
from vestnik.routing.router import Router, anything
from vestnik.wire.messages import NodeId, Publish, Refusal, Refused, Stored
from vestnik.wire.packing import pack

RETRY_AFTER = 1.0
"""Seconds after which what was held and could not be stored when its time had come is tried again."""

MOST_HELD = 100_000
"""Events that wait for their time."""

ANOTHER: Final = "another event of this source and id was published before; give each event an id of its own"


class Intake:
    """Takes what clients publish. What is stored may go further, or waits for its time."""

    def __init__(self, name: NodeId, router: Router, tail: Tail, stored: Iterable[StoredEvent]) -> None:
        self._name = name
        self._router = router
        self._tail = tail
        self._acceptance = Acceptance()
        self._held: list[tuple[float, int, NodeId, Event]] = []  # until not_before
        self._holding = count()
        self._released: dict[tuple[str, str], Event] = {}  # what was held, and is being stored with its seq
        self._recover(stored)

    def publish(self, message: Publish, client: NodeId, now: float) -> list[Effect]:
        acceptance = self._acceptance
        fresh, others = acceptance.sifted(_unstamped(message.events), answered=bool(message.request))
        refused = [*message.refused, *[Refusal(event.id, ANOTHER, event.source) for event in others]]
        fit, unfit = self._judged(fresh, client, now)
        for event, reason in unfit:
            acceptance.forget(event)
            refused.append(Refusal(event.id, reason, event.source))
        repeats = len(fresh) + len(others) < len(message.events)
        append = self._append(client, fit, now, message.request, tuple(refused), repeats)
        return [append] if fit or refused or message.request else []

    def _append(
        self,
        client: NodeId,
        events: Sequence[Event],
        now: float,
        request: int = 0,
        refused: tuple[Refusal, ...] = (),
        repeats: bool = False,
    ) -> Append:
        """Give each event its offset; what has to wait for its time gets no seq yet."""
        first, time = self._tail.accept(len(events), now)
        stamped = [
            event if event.seldom is not None and _release(event) > now else event.stamped(self._name, offset)
            for offset, event in enumerate(events, first)
        ]
        packed = tuple([pack(event) for event in stamped])
        return Append(client, tuple(stamped), request, refused, repeats, first, time, packed)

    def _judged(
        self, events: Sequence[Event], client: NodeId, now: float
    ) -> tuple[Sequence[Event], list[tuple[Event, str]]]:
        """The events that a client may publish, and the others, each with the reason."""
        conforms = self._router.conforms(client)
        reserved = {type for type in {event.type for event in events} if is_reserved(type)}
        if conforms is anything and not reserved and not [event for event in events if event.seldom is not None]:
            return events, []  # as it mostly is
        fit: list[Event] = []
        unfit: list[tuple[Event, str]] = []
        room = MOST_HELD - len(self._held)
        for event in events:
            waits = event.seldom is not None and _release(event) > now
            if event.type in reserved:
                unfit.append((event, f"events of type {event.type} are published by brokers only"))
            elif not conforms(event):
                unfit.append((event, "it is outside of what this client advertised"))
            elif waits and room <= 0:
                unfit.append((event, f"{MOST_HELD:,} events wait for their time, and no more may"))
            else:
                fit.append(event)
                room -= waits
        return fit, unfit

    def appended(self, message: Appended) -> list[Effect]:
        """Handle that events are stored: hold those that have to wait, and answer the client."""
        what = message.what
        for event in what.events if self._released else ():
            self._released.pop((event.source, event.id), None)
        effects = self._hold(what)
        if what.request or what.refused:
            effects.append(Send(what.client, Stored(what.request, what.refused)))
        return effects

    def holds_for(self, client: NodeId) -> bool:
        """Return whether something that a client published waits for its time."""
        return any(node == client for _, _, node, _ in self._held)

    def not_appended(self, message: NotAppended, now: float) -> list[Effect]:
        """Refuse what could not be stored, which may be published again; but what was held is held on.

        What may have been stored is not forgotten. A request that repeats events waited for them, too, of which nobody
        knows by now whether they are stored.
        """
        what, unknown = message.what, message.unknown
        held = self._released.pop((what.events[0].source, what.events[0].id), None) if what.events else None
        if held is not None:
            heapq.heappush(self._held, (now + RETRY_AFTER, next(self._holding), what.client, held))
            return [Wake(now + RETRY_AFTER)]
        for event in what.events if not unknown else ():
            self._acceptance.forget(event)
        if what.request and what.repeats:
            return [Send(what.client, Refused(what.request, message.reason, unknown=True))]
        refused = [Refusal(event.id, message.reason, event.source, unknown) for event in what.events]
        return [Send(what.client, Stored(what.request, (*what.refused, *refused)))]

    def tick(self, now: float) -> list[Effect]:
        """Take what has come to its time."""
        effects: list[Effect] = []
        while self._held and self._held[0][0] <= now:
            _, _, client, event = heapq.heappop(self._held)
            self._released[event.source, event.id] = event
            effects.append(self._append(client, [event], now))
        if self._held:
            effects.append(Wake(self._held[0][0]))
        return effects

    def _hold(self, what: Append) -> list[Effect]:
        held = [event for event in what.events if event.seq is None and event.seldom is not None]
        if not held:
            return []
        for event in held:
            heapq.heappush(self._held, (_release(event), next(self._holding), what.client, event))
        return [Wake(_release(event)) for event in held]

    def _recover(self, stored: Iterable[StoredEvent]) -> None:
        """Go on from what was stored; what was taken and has not got its seq is held."""
        waiting: dict[Pair, StoredEvent] = {}
        latest: deque[StoredEvent] = deque(maxlen=CONTENTS)
        for one in stored:
            self._acceptance.recover(one.pair)
            latest.append(one)
            if one.waiting:
                waiting[one.pair] = one
            elif waiting:
                waiting.pop(one.pair, None)
        self._acceptance.recover_contents([event for one in latest if (event := one.event) is not None])
        for one in waiting.values():
            if (event := one.event) is not None:
                self._hold(Append(one.client, (event,)))


def _unstamped(events: tuple[Event, ...]) -> Sequence[Event]:
    """Events without the streams that another broker gave them."""
    if not [event for event in events if event.seq is not None or event.broker is not None]:
        return events
    return [event.replace(stream=None, seq=None) for event in events]


def _release(event: Event) -> float:
    """The time before which an event is to go no further."""
    return 0.0 if event.not_before is None else event.not_before / MICROS
