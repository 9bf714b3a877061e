"""Which logs a message to a client names: the client finds the log of an event by the name of its broker."""

from __future__ import annotations

from typing import Final

from vestnik.recovery.flight import Flight
from vestnik.wire.messages import NodeId

_COPY: Final = 0
"""Stands for the log of copies that a history has: they say nothing of how far a client has come in any log."""


class NamedLogs:
    """The logs that one message names, at most one of each broker."""

    def __init__(self) -> None:
        self._logs: dict[NodeId, int] = {}

    def takes(self, flight: Flight) -> bool:
        """Name the log of events that were read at an origin.

        Return False if the message has events of another log of that broker, or copies: they need a message of their
        own.
        """
        broker, origin = flight.broker, flight.origin
        if broker is None or origin is None:
            return True
        log = origin.log if broker == origin.broker else _COPY
        return self._logs.setdefault(broker, log) == log

    @property
    def named(self) -> tuple[tuple[NodeId, int], ...]:
        return tuple([(broker, log) for broker, log in self._logs.items() if log != _COPY])
