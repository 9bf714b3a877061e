"""Logs what happens at connections: clients and neighbours come, go, lag and lose something; requests are refused."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from vestnik.broker.core import BrokerCore
from vestnik.logs import Throttle, emit
from vestnik.server.door import Guest
from vestnik.server.lagging import Lagging
from vestnik.transport.ends import End
from vestnik.transport.listening import NO_TLS
from vestnik.transport.tcp import NO_MESSAGE
from vestnik.wire.messages import Ask, Message, NodeId, Refused, Stored

LOG: Final = logging.getLogger(__name__)
SHUTDOWN: Final = "shutdown"
ANSWERS: Final = frozenset({Refused, Stored})
"""Messages that may refuse something."""


class Notices:
    """Logs what happens at the connections of one broker. A flood of refusals is one record in an interval."""

    def __init__(self, core: BrokerCore, loop: asyncio.AbstractEventLoop) -> None:
        self._core = core
        self._connections = Throttle(loop, _connection_refused)
        self._requests = Throttle(loop, _request_refused)
        self._losses = Throttle(loop, _lost)
        self._lagging = Lagging(loop, _begins_to_lag, _has_caught_up)
        self._unsent: dict[NodeId, dict[str, int]] = {}  # numbers up to which a client may lack notifications

    def close(self) -> None:
        for part in (self._connections, self._requests, self._losses, self._lagging):
            part.close()

    def entered(self, guest: Guest, end: End) -> None:
        if guest.is_broker:
            emit(LOG, logging.INFO, "link.up", f"linked with {guest.name}", neighbour=guest.name, peer=end.peer)
        else:
            emit(LOG, logging.INFO, "client.joined", "client connected", client=guest.name, peer=end.peer)
            self._may_lack(guest.name)

    def left(self, guest: Guest, end: End, code: str, reason: str) -> None:
        self._lagging.left(guest.name)
        self._unsent.pop(guest.name, None)
        fields = {"peer": end.peer, "code": code, "reason": reason}
        if guest.is_broker:
            level = logging.INFO if code == SHUTDOWN else logging.WARNING
            emit(LOG, level, "link.down", "link lost", neighbour=guest.name, **fields)
        else:
            emit(LOG, logging.INFO, "client.left", "client disconnected", client=guest.name, **fields)

    def turned_away(self, end: End, code: str, reason: str) -> None:
        """Tell of a connection that ended before its other side was let in. The code is one of this broker's own."""
        if not code and reason.startswith(NO_MESSAGE):
            code = "frame"
        elif not code and reason.startswith(NO_TLS):
            code = "tls"
        fields = {"code": code, "reason": reason, "peer": end.peer}
        if not code:
            emit(LOG, logging.DEBUG, "connection.closed", "a connection ended before Hello", **fields)
        elif code != SHUTDOWN:
            self._connections.take(code, **fields)

    def answered(self, client: NodeId, answer: Message) -> None:
        """Tell of an answer if it refuses something."""
        if isinstance(answer, Refused):
            self._requests.take("request", client=client, reason=answer.reason)
        elif isinstance(answer, Stored) and answer.refused:
            first = answer.refused[0]
            self._requests.take("events", client=client, reason=first.reason, id=first.id, events=len(answer.refused))

    def asked(self, client: NodeId, ask: Ask) -> None:
        """Tell what a client has lost that was full or away, by the positions after which it asks for more."""
        unsent = self._unsent.get(client)
        known = self._core.clients.get(client)
        if not unsent or known is None:
            return
        for position in ask.positions:
            name, after = position.name, position.after
            one = known.subscriptions.get(name)
            if one is None or one.epoch != position.epoch or name not in unsent:
                continue
            kept = one.kept[0].number if one.kept else one.last + 1
            lost = min(kept - 1, unsent.pop(name)) - after
            if lost > 0:
                self._losses.take(client, client=client, subscription=name, lost=lost)

    def _may_lack(self, client: NodeId) -> None:
        known = self._core.clients.get(client)
        if known is not None and known.subscriptions:
            self._unsent[client] = {name: one.last for name, one in known.subscriptions.items()}

    def full(self, guest: Guest) -> None:
        self._lagging.full(guest.name)

    def drained(self, guest: Guest) -> None:
        self._lagging.drained(guest.name)
        self._may_lack(guest.name)


def _connection_refused(fields: dict[str, Any]) -> None:
    emit(LOG, logging.WARNING, "connection.refused", "connection refused", **fields)


def _request_refused(fields: dict[str, Any]) -> None:
    emit(LOG, logging.WARNING, "request.refused", "request refused", **fields)


def _lost(fields: dict[str, Any]) -> None:
    emit(LOG, logging.WARNING, "consumer.lost", "a consumer was too slow, and has lost notifications", **fields)


def _begins_to_lag(consumer: NodeId) -> None:
    emit(LOG, logging.WARNING, "consumer.lagging", "a consumer does not take what it is sent", consumer=consumer)


def _has_caught_up(consumer: NodeId, seconds: float) -> None:
    fields = {"consumer": consumer, "seconds": round(seconds, 1)}
    emit(LOG, logging.INFO, "consumer.caught_up", "a consumer takes again what it is sent", **fields)
