"""Messages that take long to handle are prepared on another thread; then they are handled like any other.

Events are matched ahead: their values against the tests of the filters that are here. The broker's own tables stay on
its own thread, and what has changed meanwhile is matched when the event is routed. Filters are narrowed ahead to what
their sender has a right to.

Events of many values take up to a hundred times the memory of their bytes. Only as many as have room wait for the other
thread in that form; the others wait as bytes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import structs

from vestnik.broker.rights import Rights
from vestnik.model.ahead import Foresight, OpenQuestion
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.routing.router import Router
from vestnik.server.door import Guest
from vestnik.server.room import Room
from vestnik.transport import heavy
from vestnik.wire.messages import Advertise, Fetch, Message, NodeId, Publish, Review, Subscribe
from vestnik.wire.origins import Routed
from vestnik.wire.packing import pack, pack_all, unpack_all

WEIGHT: Final = 1_000_000
"""An event is matched ahead if its bytes times the number of tests exceed this: a few milliseconds, mostly."""
FEW_BOXES, FEW_STATES = 16, 64
"""Boxes, and states of a pattern, of a filter that is narrowed at once."""
SLICE: Final = 0.02
"""Seconds of one job on the other thread; the jobs of several messages take turns."""
MANY_VALUES: Final = 1_000
"""Events of more values wait for the other thread only if there is room for them."""


class Prepared(NamedTuple):
    """A message that can be handled. `release` frees what was kept for that, when the message was handled."""

    message: Message
    release: Callable[[], None]


def preparation_of(
    message: Message, guest: Guest, size: int | None, router: Router, room: Room
) -> Coroutine[Any, Any, Prepared] | None:
    """Return the work that has to be done before a message of `size` bytes is handled, or None."""
    rights = guest.identity.rights if guest.identity is not None and not guest.is_broker else None
    match message:
        case Publish(events) | Routed(events=events) if is_heavy(events, size, router, guest.name):
            match_one = partial(_match, router, guest.name, None if rights is None else rights.publish)
            return matched_ahead(message, _bytes_of(events) if size is None else size, match_one, room)
        case Subscribe() | Advertise() | Fetch() | Review() if rights is not None and is_complex(message.filter):
            return narrowed_ahead(message, rights)
    return None


def is_heavy(events: Sequence[Event], size: int | None, router: Router, sender: NodeId) -> bool:
    """Return whether matching one of these events, in a message of `size` bytes, may take long."""
    tests = router.tests(sender)
    if not tests or (size is not None and size * tests <= WEIGHT):
        return False
    return any(_takes_long(event, tests) for event in events)


def _takes_long(event: Event, tests: int) -> bool:
    return len(pack(event)) * tests > WEIGHT


def _bytes_of(events: Sequence[Event]) -> int:
    return sum([len(pack(event)) for event in events])


def is_complex(wanted: Filter) -> bool:
    """Return whether intersecting this filter with a right may take long."""
    boxes = wanted.region.boxes
    if len(boxes) > FEW_BOXES:
        return True
    automata = [values.strings.automaton for box in boxes for _, values in box.sets]
    is_large = [automaton is not None and len(automaton.accepting) > FEW_STATES for automaton in automata]
    return any(is_large) or any(values.lists for box in boxes for _, values in box.sets)


async def narrowed_ahead(message: Message, rights: Rights) -> Prepared:
    """Compute what of a message its sender has a right to, on another thread; the result is cached."""
    await heavy.begin(partial(rights.permitted, message))
    return Prepared(message, lambda: None)


async def matched_ahead(
    message: Publish | Routed, size: int, match_one: Callable[[Event], object], room: Room
) -> Prepared:
    """Precompute the answers that `match_one` will need for each event of a message of `size` bytes.

    Nothing else may hold the message: if it waits for room, it does so as bytes.
    """
    foresight, inside = Foresight(), 0
    try:
        if has_many_values(message.events) and await _has_questions(foresight, message.events, match_one):
            packed = b""
            if not room.has_room(size):
                packed = await heavy.begin(partial(pack_all, message.events), first=True)
                message = _with_events(message, ())
            await room.enter(size)
            inside = size
            if packed:
                message = _with_events(message, await heavy.begin(partial(_unpacked, packed)))
        await _match_all(foresight, message.events, match_one)
    except BaseException:
        _release(foresight, room, inside)
        raise
    return Prepared(message, partial(_release, foresight, room, inside))


def has_many_values(events: Sequence[Event]) -> bool:
    """Return whether events have more than MANY_VALUES values: they take much more memory than their bytes."""
    count = len(events)
    nested: list[Any] = [event.body for event in events]
    while nested and count <= MANY_VALUES:
        value = nested.pop()
        count += len(value)
        if count <= MANY_VALUES:
            parts = value.values() if isinstance(value, dict) else value
            nested += [part for part in parts if isinstance(part, dict | list)]
    return count > MANY_VALUES


async def _has_questions(foresight: Foresight, events: Sequence[Event], match_one: Callable[[Event], object]) -> bool:
    """Return whether any event has to wait for the other thread."""
    turn = _Turn()
    for event in events:
        await turn.taken()
        if foresight.questions(partial(match_one, event)):
            return True
    return False


async def _match_all(foresight: Foresight, events: Sequence[Event], match_one: Callable[[Event], object]) -> None:
    turn = _Turn()
    for event in events:
        await turn.taken()
        while questions := foresight.questions(partial(match_one, event)):
            await _settled(foresight, questions)


class _Turn:
    """Time on the event loop until others have their turn."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + SLICE

    async def taken(self) -> None:
        """Let others have their turn if this one is over."""
        if time.perf_counter() > self._until:
            await asyncio.sleep(0)
            self._until = time.perf_counter() + SLICE


async def _settled(foresight: Foresight, questions: Sequence[OpenQuestion]) -> None:
    while questions:
        questions = await heavy.begin(partial(foresight.settle, questions, SLICE))


def _match(router: Router, sender: NodeId, right: Filter | None, event: Event) -> None:
    if not _takes_long(event, router.tests(sender)):
        return  # many of these are routed in turns
    router.targets(event, sender)
    router.conforms(sender)(event)
    if right is not None:
        right.matches(event)


def _with_events(message: Publish | Routed, events: tuple[Event, ...]) -> Publish | Routed:
    return Routed(message.origin, events) if isinstance(message, Routed) else structs.replace(message, events=events)


def _unpacked(packed: bytes) -> tuple[Event, ...]:
    return tuple(unpack_all(packed))


def _release(foresight: Foresight, room: Room, size: int) -> None:
    foresight.forget()
    if size:
        room.leave(size)
