"""Spark for a command."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import current_thread, main_thread
from typing import Any

import click

from vestnik.cli.progress import step_progress
from vestnik.spark.session import FIRST_START, start_session


@contextmanager
def running(master: str | None, name: str) -> Iterator[Any]:
    """A session that ends with the command.

    Ctrl-C ends the command, and so the session. Spark's own handler would ask Java to cancel its jobs, perhaps in the
    midst of another question to it, and what asks Java would log that it was interrupted.
    """
    before = signal.getsignal(signal.SIGINT)
    logging.getLogger().addFilter(_is_no_interrupt)
    try:
        with step_progress() as show:
            spark = start_session(master, name, partial(_say, show))
        if current_thread() is main_thread():
            signal.signal(signal.SIGINT, before)
        try:
            yield spark
        finally:
            spark.stop()
    finally:
        logging.getLogger().removeFilter(_is_no_interrupt)


def _say(show: Callable[[str], None], step: str) -> None:
    """Show a step while it lasts; why a start takes long is written down, for those who read a log, too."""
    if step == FIRST_START:
        click.echo(f"vestnik: {step}", err=True)
    else:
        show(step)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))
