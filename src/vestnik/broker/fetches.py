"""The fetches of local clients: they are sent past events page by page, and then the end."""

from __future__ import annotations

from typing import Final

from vestnik.broker.announcements import Announcements, OpenFetch, wishes
from vestnik.broker.clients import Clients
from vestnik.broker.effects import Effect
from vestnik.broker.outlet import Outlet, fetch_key
from vestnik.broker.settling import Settling
from vestnik.model.filters import Filter
from vestnik.model.reserved import asks, ordinary
from vestnik.model.times import MICROS
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.readers import Start
from vestnik.recovery.recovery import Recovery
from vestnik.routing.router import Router
from vestnik.wire.messages import Fetch, FetchMore, NodeId
from vestnik.wire.replays import Replay

FETCHED: Final = 500
"""Events of a page of past events."""


class Fetches:
    """The fetches of all local clients."""

    def __init__(
        self,
        clients: Clients,
        router: Router,
        recovery: Recovery,
        outlet: Outlet,
        settling: Settling,
        announcements: Announcements | None,
    ) -> None:
        self._clients = clients
        self._router = router
        self._recovery = recovery
        self._outlet = outlet
        self._settling = settling
        self._announcements = announcements

    def under_way(self, client: NodeId) -> set[int]:
        """Return the requests of a client that wait for the past."""
        known = self._clients.known.get(client)
        return set() if known is None else set(known.fetches)

    def fetch(self, message: Fetch, client: NodeId, now: float) -> list[Effect]:
        """Begin to send past events; a client may ask again before it is answered."""
        known, request = self._clients.heard(client), message.request
        if request in known.fetches:
            return []
        since = None if message.replay.picks else message.replay.since
        wanted, key = ordinary(message.filter), fetch_key(client, request)
        asked = self._announcements if asks(wanted) else None
        made, is_asked = int(now * MICROS), asked is not None
        reader = Reader(key, wanted, made, FETCHED, past_since=since, ends=True, waits_for_open=is_asked)
        known.begin_fetch(request, reader)

        def begin() -> list[Effect]:
            if known.fetches.get(request) is not reader:
                return []  # the client has gone
            feeds = self._recovery.feeds
            self._recovery.readers.begin(reader, Start(replay=message.replay))
            feeds.replaying.pick(key)
            effects = self._outlet.perform(self._recovery.moved())
            if asked is not None:
                effects += self._ask_what_is_open(key, wanted, message.replay, asked, feeds.giving.now)
            return effects

        return self._settling.when_met(begin, now)

    def _ask_what_is_open(
        self, key: ReaderKey, wanted: Filter, replay: Replay, announcements: Announcements, now: float
    ) -> list[Effect]:
        """Find out for a fetch what is open at the clients of all brokers."""
        fetch = OpenFetch(key, wanted, replay)
        opened = announcements.open([wanted], wishes(self._clients.known, self._router.advertised), now)
        effects = announcements.fetch(fetch, opened, self._recovery.topology, now)
        return effects if fetch.asked else self._outlet.tell_opened([fetch])

    def more(self, message: FetchMore, client: NodeId, now: float) -> list[Effect]:
        """Send the next page: the client has taken the ones before."""
        reader = self._clients.heard(client).fetches.get(message.request)
        if reader is None:
            return []
        self._recovery.readers.took(reader, reader.number)
        return self._outlet.perform(self._recovery.moved())

    def left(self, client: NodeId) -> None:
        """End the fetches of a client that is not connected any more."""
        known = self._clients.known[client]
        for request, reader in list(known.fetches.items()):
            self._recovery.readers.end(reader.key)
            known.end_fetch(request)
