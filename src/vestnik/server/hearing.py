"""Hands the engine the messages that guests may send, as fast as there is room for them."""

from __future__ import annotations

from typing import Final

from vestnik.broker.core import BrokerCore
from vestnik.server.door import Door, Guest
from vestnik.server.engine import Engine
from vestnik.server.pacing import Pacing
from vestnik.server.parts import Batches
from vestnik.transport.ends import End
from vestnik.wire.messages import (
    Addressed,
    AdminA,
    AdminS,
    Advertise,
    Announce,
    Ask,
    Fetch,
    FetchMore,
    Malformed,
    Message,
    Publish,
    Question,
    Recalled,
    Review,
    Subscribe,
    Took,
    Unadvertise,
    Unsubscribe,
)
from vestnik.wire.origins import (
    FetchPage,
    Frontiers,
    OriginGone,
    OriginHere,
    OriginOffers,
    PageRead,
    Routed,
)

BY_BROKERS: Final = frozenset(
    {Routed, AdminS, AdminA, Announce, Addressed, OriginHere, OriginGone, OriginOffers, Frontiers, FetchPage, PageRead}
)
BY_CLIENTS: Final = frozenset(
    {
        Publish,
        Subscribe,
        Unsubscribe,
        Advertise,
        Unadvertise,
        Fetch,
        FetchMore,
        Review,
        Malformed,
        Ask,
        Took,
        Question,
        Recalled,
    }
)


class Hearing:
    """Takes in the messages of guests. A batch for which there is no room is taken part by part."""

    def __init__(self, core: BrokerCore, engine: Engine, door: Door, pacing: Pacing, batches: Batches) -> None:
        self._core = core
        self._engine = engine
        self._door = door
        self._pacing = pacing
        self._batches = batches

    def take(self, end: End, guest: Guest, message: Message) -> bool:
        """Take in what is for a broker core; return False if it is not, or not for this guest to say."""
        kind = type(message)
        if kind in BY_CLIENTS and not guest.is_broker:
            if isinstance(message, Publish) and self._pacing.is_limited:
                self._pacing.published(guest.name, end, len(message.events))
            permitted = self._door.permitted(message, guest, self._core)
            if not isinstance(permitted, Publish) or self._engine.dispatch.takes(guest.name, len(permitted.events)):
                self._engine.take(permitted, guest.name)
            else:
                self._batches.begin(guest.name, end, permitted)
                self.take_turn(end, guest)
        elif kind in BY_BROKERS and guest.is_broker:
            self._engine.dispatch.take(message, guest.name)
            self.take_turn(end, guest)
        else:
            return False
        return True

    def take_turn(self, end: End, guest: Guest) -> None:
        """Take as much of a batch as there is room for. Without room, read nothing more from this end."""
        dispatch = self._engine.dispatch
        while self._batches.is_open(end) and (room := dispatch.room(guest.name)) > 0:
            self._engine.take(self._batches.take(end, room), guest.name)
        if dispatch.is_behind(guest.name) if guest.is_broker else dispatch.room(guest.name) <= 0:
            self._pacing.behind(end)
        else:
            self._pacing.caught_up(end)
