"""Spark for a command."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

from vestnik.spark.session import session


@contextmanager
def running(master: str | None, name: str) -> Iterator[Any]:
    """A session that ends with the command.

    Ctrl-C ends the command, and so the session. Spark's own handler would ask Java to cancel its jobs, perhaps in the
    midst of another question to it, and what asks Java would log that it was interrupted.
    """
    before = signal.getsignal(signal.SIGINT)
    logging.getLogger().addFilter(_is_no_interrupt)
    try:
        spark = session(master, name)
        if current_thread() is main_thread():
            signal.signal(signal.SIGINT, before)
        try:
            yield spark
        finally:
            spark.stop()
    finally:
        logging.getLogger().removeFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))
