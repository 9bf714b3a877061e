"""Logs what the gateway refuses, and web hooks that fail. A flood of a kind is one record in an interval."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any, Final

from starlette.types import Scope

from vestnik.gateway.hooks import Hook
from vestnik.logs import Throttle, emit
from vestnik.transport.tcp import address

LOG: Final = logging.getLogger(__name__)

REFUSED: Final = "vestnik.refused"
"""The ASGI extension that logs a refusal: a function of the status and the reason."""
LONGEST: Final = 200
"""Characters of a path or a reason that are logged."""


class Notices:
    """The refusals of one gateway. Before it is opened, and after it is closed, nothing is logged."""

    def __init__(self) -> None:
        self._refusals: Throttle | None = None
        self._failures: Throttle | None = None

    def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._refusals, self._failures = Throttle(loop, _refused), Throttle(loop, _failing)

    def close(self) -> None:
        for throttle in (self._refusals, self._failures):
            if throttle is not None:
                throttle.close()
        self._refusals = self._failures = None

    def refused(self, peer: tuple[str, int] | None, request: str, status: int, reason: str) -> None:
        """Tell of a request that was answered with an error, or of a WebSocket that was closed for one.

        `status` is that of the answer, or the code with which the WebSocket was closed.
        """
        if self._refusals is not None:
            where = "" if peer is None else address(peer)
            fields = {"status": status, "reason": reason[:LONGEST], "request": request[:LONGEST], "peer": where}
            self._refusals.take(status, **fields)

    def watching(self, scope: Scope) -> Scope:
        """Return the scope of a request with the extension REFUSED."""
        request = f"{scope.get('method', 'WebSocket')} {scope['path']}"
        told = partial(self.refused, scope.get("client"), request)
        return {**scope, "extensions": {**(scope.get("extensions") or {}), REFUSED: told}}

    def hook_fails(self, hook: Hook, reason: str) -> None:
        """Tell of an attempt to push that failed and will be repeated."""
        if self._failures is not None:
            self._failures.take(hook.id, id=hook.id, sink=hook.sink, reason=reason[:LONGEST])

    def hook_ended(self, hook: Hook, reason: str) -> None:
        fields = {"id": hook.id, "sink": hook.sink, "reason": reason[:LONGEST]}
        emit(LOG, logging.WARNING, "webhook.ended", "a web hook has ended", **fields)


def tell_refused(scope: Scope, status: int, reason: str) -> None:
    """Tell the gateway, if it wants to know, that a request was refused."""
    extensions = scope.get("extensions") or {}
    if REFUSED in extensions:
        extensions[REFUSED](status, reason)


def _refused(fields: dict[str, Any]) -> None:
    emit(LOG, logging.WARNING, "gateway.refused", "the gateway refused a request", **fields)


def _failing(fields: dict[str, Any]) -> None:
    emit(LOG, logging.WARNING, "webhook.failing", "a sink did not take an event, which is pushed again", **fields)
