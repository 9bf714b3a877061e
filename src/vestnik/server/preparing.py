"""Messages that take long to handle are prepared on another thread; then they are handled like any other.

Events are matched ahead: their values against the tests of the filters that are here. The broker's own tables stay on
its own thread, and what has changed meanwhile is matched when the event is routed. Filters are narrowed ahead to what
their sender has a right to.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, Final

from vestnik.broker.rights import Rights
from vestnik.model.ahead import Foresight, Question
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.routing.router import Router
from vestnik.server.door import Guest
from vestnik.transport import heavy
from vestnik.wire.messages import Advertise, Fetch, Forward, Message, NodeId, Publish, Review, Subscribe
from vestnik.wire.packing import pack

WEIGHT: Final = 1_000_000
"""A message is matched ahead if its bytes times the number of tests exceed this: a few milliseconds, mostly."""
FEW_BOXES, FEW_STATES = 16, 64
"""Boxes, and states of a pattern, of a filter that is narrowed at once."""
PIECE: Final = 0.02
"""Seconds of one job on the other thread; the jobs of several messages take turns."""


def preparation_of(
    message: Message, guest: Guest, size: int | None, router: Router
) -> Coroutine[Any, Any, None] | None:
    """Return the work that has to be done before a message of `size` bytes is handled, or None."""
    rights = guest.identity.rights if guest.identity is not None and not guest.is_broker else None
    match message:
        case Publish(events) | Forward(events) if is_heavy(events, size, router, guest.name):
            return matched_ahead(events, router, guest.name, None if rights is None else rights.publish)
        case Subscribe() | Advertise() | Fetch() | Review() if rights is not None and is_complex(message.filter):
            return narrowed_ahead(message, rights)
    return None


def is_heavy(events: Sequence[Event], size: int | None, router: Router, sender: NodeId) -> bool:
    """Return whether matching a message of `size` bytes with these events may take long."""
    tests = router.tests(sender)
    if not tests:
        return False
    if size is None:
        size = sum([len(pack(event)) for event in events])
    return size * tests > WEIGHT


def is_complex(wanted: Filter) -> bool:
    """Return whether intersecting this filter with a right may take long."""
    boxes = wanted.region.boxes
    if len(boxes) > FEW_BOXES:
        return True
    automata = [values.strings.automaton for box in boxes for _, values in box.sets]
    is_large = [automaton is not None and len(automaton.accepting) > FEW_STATES for automaton in automata]
    return any(is_large) or any(values.lists for box in boxes for _, values in box.sets)


async def narrowed_ahead(message: Message, rights: Rights) -> None:
    """Compute what of a message its sender has a right to, on another thread; the result is cached."""
    await heavy.begin(partial(rights.permitted, message))


async def matched_ahead(events: Sequence[Event], router: Router, sender: NodeId, right: Filter | None) -> None:
    """Precompute the answers that routing these events, and checking the right to publish them, will need."""
    foresight = Foresight()
    try:
        until = time.perf_counter() + PIECE
        for event in events:
            if time.perf_counter() > until:
                await asyncio.sleep(0)  # others have their turn
                until = time.perf_counter() + PIECE
            while questions := foresight.questions(partial(_match, event, router, sender, right)):
                await _settled(foresight, questions)
    except BaseException:
        foresight.forget()
        raise
    foresight.keep()


async def _settled(foresight: Foresight, questions: Sequence[Question]) -> None:
    while questions:
        questions = await heavy.begin(partial(foresight.settle, questions, PIECE))


def _match(event: Event, router: Router, sender: NodeId, right: Filter | None) -> None:
    router.targets(event, sender)
    router.conforms(sender)(event)
    if right is not None:
        right.matches(event)
