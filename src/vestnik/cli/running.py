"""Spark for a command."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

from vestnik.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def running(master: str | None, name: str) -> Iterator[SparkSession]:
    """A session that ends with the command.

    Ctrl-C ends the command, and so the session. Spark's own handler would ask Java to cancel its jobs, perhaps in the
    midst of another question to it.
    """
    before = signal.getsignal(signal.SIGINT)
    spark = session(master, name)
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, before)
    try:
        yield spark
    finally:
        spark.stop()
