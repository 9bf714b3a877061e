"""Log records with the name of an event and fields, by the standard library's `logging`.

A program that embeds a broker or a client sees ordinary loggers below `vestnik`, and no handler but the one that does
nothing. How records become lines is decided where a process begins: `vestnik serve` does so in `vestnik.cli.logs`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

INTERVAL: Final = 10.0
"""Seconds for which repetitions are counted before they are told."""

Tell: TypeAlias = Callable[[dict[str, Any]], None]


def emit(logger: logging.Logger, level: int, event: str, message: str, /, **fields: object) -> None:
    """Log that `event` has happened. Text of strangers goes into `fields`, and never into `message`."""
    if logger.isEnabledFor(level):
        logger.log(level, message, extra={"event": event, "fields": fields}, stacklevel=2)


class Throttle:
    """Tells the first of a kind at once; those of the same kind that follow within an interval it tells as one.

    It tells a `count`, and the other fields of the latest.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, tell: Tell) -> None:
        self._loop = loop
        self._tell = tell
        self._waiting: dict[Hashable, dict[str, Any]] = {}  # the latest of each kind, with the count
        self._timers: dict[Hashable, asyncio.TimerHandle] = {}

    def take(self, kind: Hashable, **fields: Any) -> None:
        if kind not in self._timers:
            self._timers[kind] = self._loop.call_later(INTERVAL, self._over, kind)
            self._tell({"count": 1, **fields})
        else:
            count = self._waiting[kind]["count"] + 1 if kind in self._waiting else 1
            self._waiting[kind] = {"count": count, **fields}

    def close(self) -> None:
        """Tell what was counted."""
        for timer in self._timers.values():
            timer.cancel()
        for fields in self._waiting.values():
            self._tell(fields)
        self._timers, self._waiting = {}, {}

    def _over(self, kind: Hashable) -> None:
        del self._timers[kind]
        waiting = self._waiting.pop(kind, None)
        if waiting is not None:
            self._timers[kind] = self._loop.call_later(INTERVAL, self._over, kind)
            self._tell(waiting)
