"""What happens at a broker, in a file."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from vestnik.broker.core import BrokerCore
from vestnik.broker.stored import StoredEvent
from vestnik.errors import InvalidSetting
from vestnik.journal.disk import private
from vestnik.logs import emit
from vestnik.observe.calm import Calm
from vestnik.observe.facts import Fact
from vestnik.observe.recorder import Recorder
from vestnik.trace.files import Begin, End, to_line
from vestnik.trace.lives import read_lives
from vestnik.trace.records import AnyRecord, Published, Quiet, Restarted
from vestnik.wire.origins import Origin

LOG: Final = logging.getLogger(__name__)


class TraceFile:
    """The trace of one life of a broker, after those that are in the file already.

    What was flushed is there when the broker is killed. What it had stored by then, but not sent, may not be.
    """

    def __init__(self, path: Path, node: str) -> None:
        self._path = path
        self._recorder = Recorder(node)
        try:
            self._file = os.fdopen(private(str(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")
            with path.open("rb") as before:
                before.seek(max(0, self._file.tell() - 1))
                if before.read() not in (b"", b"\n"):
                    self._file.write(b"\n")  # after half a line of a broker that was killed
            self._file.write(to_line(Begin(node)))
            self._file.flush()
        except OSError as error:
            with suppress(OSError, AttributeError):
                self._file.close()
            raise InvalidSetting("trace", f"{path} cannot be written: {error.strerror or error}") from None
        self._is_open = True
        self._node = node
        self._core: BrokerCore | None = None
        self._calm = Calm()

    def begin(self, log: Origin, now: float) -> None:
        """Record that the broker is up, and which log it writes."""
        self.write([Restarted(now, self._node, str(log))])

    def watch(self, core: BrokerCore, now: float) -> None:
        """Look at this core from now on."""
        self._core = core
        self._calm.disturbed(now)

    def look(self, now: float) -> None:
        """Record since when nothing has happened, if the broker is quiet; call this once a second."""
        since = self._calm.since(now)
        if since is not None and self._core is not None:
            logs = [(str(origin), offset) for origin, offset in self._core.recovery.read_up_to().items()]
            self.write([Quiet(now, self._node, since, tuple(logs))])
            self.flush()

    def complete(self, stored: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
        """Yield what was stored, and record as published by this life what is not in the file yet."""
        lines = self._path.read_bytes().splitlines(keepends=True)
        known = {
            (record.event.source, record.event.id)
            for life in read_lives(lines, str(self._path))
            for record in life.records
            if isinstance(record, Published)
        }
        for one in stored:
            event = None if one.waiting or one.pair in known else one.event
            if event is not None:
                self.write([Published(time.time(), one.client, event, one.accepted)])
            yield one

    def take(self, facts: Sequence[Fact], now: float) -> None:
        """Record what happened."""
        self._calm.take(facts, now)
        self.write(self._recorder.records(facts, now))

    def write(self, records: Iterable[AnyRecord]) -> None:
        self._try(lambda: self._file.writelines(map(to_line, records)))

    def flush(self) -> None:
        self._try(self._file.flush)

    def close(self) -> None:
        self._try(lambda: self._file.write(to_line(End())))
        self._try(self._file.close)

    def _try(self, act: Callable[[], object]) -> None:
        """Write to the file until the disk refuses. Then the trace ends there, and the broker goes on without it."""
        if not self._is_open:
            return
        try:
            act()
        except OSError as error:
            self._is_open = False
            fields = {"path": str(self._path), "reason": error.strerror or str(error)}
            emit(LOG, logging.ERROR, "trace.failed", "the trace cannot be written, and ends here", **fields)
            with suppress(OSError):
                self._file.close()
