"""Writes log records to a stream in a thread of its own: a reader that does not read stops nobody."""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from typing import Final, TextIO

from vestnik.logs import emit

MOST_WAITING: Final = 10_000
"""Records that wait to be written; more are dropped, and counted."""
WRITTEN_WITHIN: Final = 0.3
"""Seconds in which records that wait are written when the handler is closed."""

LOG: Final = logging.getLogger(__name__)


class LogWriter(logging.Handler):
    """A pipe that nobody empties, or a terminal that is paused, would stop a broker that wrote to it.

    So a thread writes, past the buffer of the stream: a buffer that is locked when the process ends is fatal to Python.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._waiting: Queue[str | None] = Queue(MOST_WAITING)
        self._dropped = 0
        self._is_closing = False
        self._thread = Thread(target=self._run, name="vestnik-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._waiting.put_nowait(self.format(record))
        except Full:
            self._dropped += 1
        except Exception:  # as every handler does: a record that cannot be formatted stops nobody
            self.handleError(record)

    def close(self) -> None:
        """Write what waits, if anybody reads it."""
        self._is_closing = True
        with suppress(Full):
            self._waiting.put_nowait(None)
        self._thread.join(WRITTEN_WITHIN)
        super().close()

    def _run(self) -> None:
        while True:
            line = self._waiting.get()  # None wakes it up
            if line is not None:
                self._write(f"{line}\n")
            if not self._waiting.empty():
                continue
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                emit(LOG, logging.WARNING, "log.dropped", "nobody read the log; records were dropped", count=dropped)
            if self._is_closing and self._waiting.empty():
                return

    def _write(self, text: str) -> None:
        try:
            file = self._stream.fileno()
        except (OSError, ValueError):  # it is no file, as in a test
            self._stream.write(text)
            return
        data = memoryview(text.encode(errors="backslashreplace"))
        while data:
            try:
                data = data[os.write(file, data) :]
            except BlockingIOError:  # somebody else has set it so
                time.sleep(0.05)
            except OSError:  # nobody can read it any more
                return
