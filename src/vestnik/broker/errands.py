"""What clients want to know once: what was in the past, or when all brokers know what they want."""

from __future__ import annotations

from typing import Final

from vestnik.broker.catching import Replaying
from vestnik.broker.effects import Effect, Send
from vestnik.broker.recalls import Request
from vestnik.broker.replays import EVERYTHING, Errand, Replays
from vestnik.model.reserved import ordinary
from vestnik.wire.messages import Accepted, Fetch, Fetched, NodeId, Recall
from vestnik.wire.pages import pages

BEYOND: Final = (1 << 63) - 1
"""A position that nobody comes to."""


class Errands:
    """Each is a replay that is for no subscription."""

    def __init__(self, replays: Replays) -> None:
        self._replays = replays

    def under_way(self, client: NodeId) -> set[int]:
        """The requests of a client that wait for the past."""
        return {request.number for request in self._replays.requests() if request.node == client}

    def fetch(self, client: NodeId, message: Fetch) -> list[Effect]:
        """A client asks for past events; it may ask again before it is answered."""
        wanted = ordinary(message.filter)
        if message.request in self.under_way(client):
            return []

        def finish(replaying: Replaying) -> list[Effect]:
            events = replaying.past(wanted)
            parts = [Fetched(message.request, page, more=True) for page in pages(events, lambda event: event)]
            return [Send(client, part) for part in (*parts, Fetched(message.request, (), tuple(replaying.lost)))]

        errand = Errand(Replaying(message.replay, partial=True), finish)
        recall = Recall(0, (wanted,), message.replay)
        return self._replays.begin_errand(Request(client, message.request), errand, recall)

    def settle(self, client: NodeId, accepted: Accepted) -> list[Effect]:
        """Tell a client that something is accepted when all brokers within reach know of what was told before.

        Each is asked for nothing. The question goes the way of what was told, and the answer comes back.
        """
        errand = Errand(Replaying(EVERYTHING, partial=True), lambda _: [Send(client, accepted)])
        nothing = Recall(0, (), EVERYTHING, after=BEYOND)
        return self._replays.begin_errand(Request(client, accepted.request), errand, nothing)
