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
from vestnik.wire.messages import Gap, Message, NodeId, Refused, Stored

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

    def close(self) -> None:
        for part in (self._connections, self._requests, self._losses, self._lagging):
            part.close()

    def entered(self, guest: Guest, end: End) -> None:
        if guest.is_broker:
            emit(LOG, logging.INFO, "link.up", f"linked with {guest.name}", neighbour=guest.name, peer=end.peer)
        else:
            emit(LOG, logging.INFO, "client.joined", "client connected", client=guest.name, peer=end.peer)

    def left(self, guest: Guest, end: End, code: str, reason: str) -> None:
        self._lagging.left(guest.name)
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

    def gap_told(self, client: NodeId, name: str, gap: Gap) -> None:
        """Tell that events which a client wanted are gone."""
        if gap.end > gap.first:
            span = {"log": gap.log, "first": gap.first, "end": gap.end, "reason": gap.reason}
            self._losses.take(client, client=client, subscription=name, **span)

    def full(self, guest: Guest) -> None:
        self._lagging.full(guest.name)

    def drained(self, guest: Guest) -> None:
        self._lagging.drained(guest.name)


def _connection_refused(fields: dict[str, Any]) -> None:
    emit(LOG, logging.WARNING, "connection.refused", "connection refused", **fields)


def _request_refused(fields: dict[str, Any]) -> None:
    emit(LOG, logging.WARNING, "request.refused", "request refused", **fields)


def _lost(fields: dict[str, Any]) -> None:
    emit(
        LOG,
        logging.WARNING,
        "consumer.lost",
        "a consumer was told of a gap: the log has these events no more",
        **fields,
    )


def _begins_to_lag(consumer: NodeId) -> None:
    emit(LOG, logging.WARNING, "consumer.lagging", "a consumer does not take what it is sent", consumer=consumer)


def _has_caught_up(consumer: NodeId, seconds: float) -> None:
    fields = {"consumer": consumer, "seconds": round(seconds, 1)}
    emit(LOG, logging.INFO, "consumer.caught_up", "a consumer takes again what it is sent", **fields)
