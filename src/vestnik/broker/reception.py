"""The clients of a broker come and go, and what they do not renew lapses."""

from __future__ import annotations

from typing import Final

from vestnik.broker.clients import Clients
from vestnik.broker.effects import Effect, Gone, Part, Tell
from vestnik.broker.fetches import Fetches
from vestnik.broker.offers import Offers
from vestnik.broker.subscriptions import Subscriptions
from vestnik.routing.router import Router
from vestnik.wire.messages import NodeId

SILENT: Final = "it has not renewed its subscriptions for a lease"


class Reception:
    """Ends what local clients leave behind."""

    def __init__(
        self,
        clients: Clients,
        router: Router,
        subscriptions: Subscriptions,
        offers: Offers,
        fetches: Fetches,
        tell: Tell,
    ) -> None:
        self._clients = clients
        self._router = router
        self._subscriptions = subscriptions
        self._offers = offers
        self._fetches = fetches
        self._tell = tell

    def gone(self, message: Gone, sender: NodeId, now: float) -> list[Effect]:
        """End what has no lease with the connection; the rest lasts as long as its lease."""
        client = message.client
        self._clients.heard(client)
        ended = [*self._subscriptions.left(client), *self._offers.left(client)]
        self._fetches.left(client)
        self._clients.gone(client)
        return [*ended, *self._tell(now), *self._offers.told()]

    def expire(self, now: float) -> list[Effect]:
        """End what was not renewed. A link whose neighbour did not renew something is ended, too.

        Neighbours are told of it before any link ends: its end is handled at once, and what is told then comes later.
        """
        self._offers.prolong(now)
        offered = self._router.advertised.copy()
        lapsed, silent = self._router.expire(now)
        found: list[Effect] = []
        for source, wanted in lapsed:
            found += self._subscriptions.lapsed(source, wanted)
        for source in sorted(offered.keys() - self._router.advertised.keys()):
            found += self._offers.lapsed(source, offered[source])
        found += [*self._tell(now), *self._offers.told()]
        return found + [Part(neighbour, SILENT, "silent") for neighbour in sorted(silent)]
