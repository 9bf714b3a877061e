"""When a publication is answered: a batch once, and a client that lags when slow readers have read on.

A client that waits for an answer sends no more. So one that lags itself, and has to be heard, is slowed down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from vestnik.server.dispatch import LOOK_EVERY
from vestnik.server.engine import Engine
from vestnik.server.parts import Batches
from vestnik.transport.ends import End
from vestnik.wire.messages import Message, NodeId, Refused, Stored


class Answering:
    """The answers to publications that wait. `send` sends one, and `flush` lets them out."""

    def __init__(
        self,
        engine: Engine,
        batches: Batches,
        send: Callable[[NodeId, End, Message], None],
        flush: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._batches = batches
        self._send = send
        self._flush = flush
        self._waiting: dict[End, tuple[NodeId, list[Message]]] = {}

    def answer(self, client: NodeId, end: End, answer: Stored | Refused) -> None:
        """Answer a client, if the last part of a batch is answered by it, now or later."""
        whole = self._batches.answered(client, answer)
        if isinstance(whole, Stored) and self._engine.answers_wait(client):
            self._keep(client, end, [whole])
        elif whole is not None:
            self._send(client, end, whole)

    def left(self, end: End) -> None:
        """Forget the answers to a client that is not connected any more."""
        self._waiting.pop(end, None)

    def _keep(self, client: NodeId, end: End, answers: list[Message]) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_later(LOOK_EVERY, self._look)
        self._waiting.setdefault(end, (client, []))[1].extend(answers)

    def _look(self) -> None:
        """Send the answers for which it is time; the others wait on."""
        waiting, self._waiting = self._waiting, {}
        for end, (client, answers) in waiting.items():
            if self._engine.answers_wait(client):
                self._keep(client, end, answers)
            else:
                for answer in answers:
                    self._send(client, end, answer)
        self._flush()
