"""What clients read of what their broker has stored, page by page."""

from __future__ import annotations

from collections import defaultdict

from vestnik.broker.effects import Effect, Look, Seen, Send
from vestnik.wire.messages import NodeId, Refused, Review, Reviewed


class Reviews:
    """Who waits for a page is not answered twice, however often it asks."""

    def __init__(self, name: NodeId) -> None:
        self._name = name
        self._open: defaultdict[NodeId, set[int]] = defaultdict(set)

    def under_way(self, client: NodeId) -> set[int]:
        """The requests of a client for which the disk is read."""
        return set(self._open.get(client, ()))

    def asked(self, message: Review, client: NodeId) -> list[Effect]:
        if message.request in self._open[client]:
            return []
        self._open[client].add(message.request)
        return [Look(client, message)]

    def seen(self, message: Seen) -> list[Effect]:
        client, request = message.what.client, message.what.review.request
        self._open[client].discard(request)
        if not self._open[client]:
            del self._open[client]
        if message.reason:
            return [Send(client, Refused(request, message.reason))]
        page = Reviewed(request, self._name, message.first, message.last, message.page, message.journal)
        return [Send(client, page)]
