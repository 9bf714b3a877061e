"""Log records with the name of an event and fields, by the standard library's `logging`.

A program that embeds a broker or a client sees ordinary loggers below `vestnik`, and no handler but the one that does
nothing. How records become lines is decided where a process begins: `vestnik serve` does so in `vestnik.cli.logs`.
"""

from __future__ import annotations

import logging


def emit(logger: logging.Logger, level: int, event: str, message: str, /, **fields: object) -> None:
    """Log that `event` has happened. Text of strangers goes into `fields`, and never into `message`."""
    if logger.isEnabledFor(level):
        logger.log(level, message, extra={"event": event, "fields": fields}, stacklevel=2)
