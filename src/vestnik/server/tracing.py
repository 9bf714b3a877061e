"""What happens at a broker, in a file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from vestnik.broker.effects import Append
from vestnik.errors import InvalidSetting
from vestnik.journal.disk import private
from vestnik.trace.files import Begin, End, to_line
from vestnik.trace.lives import read_lives
from vestnik.trace.records import AnyRecord, Published


class TraceFile:
    """The trace of one life of a broker, after those that are in the file already.

    What was flushed is there when the broker is killed. What it had stored by then, but not sent, may not be.
    """

    def __init__(self, path: Path, node: str) -> None:
        self._path = path
        try:
            self._file = os.fdopen(private(str(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")
            with path.open("rb") as before:
                before.seek(max(0, self._file.tell() - 1))
                if before.read() not in (b"", b"\n"):
                    self._file.write(b"\n")  # after half a line of a broker that was killed
        except OSError as error:
            raise InvalidSetting("trace", f"{path} cannot be written: {error.strerror or error}") from None
        self._file.write(to_line(Begin(node)))
        self._file.flush()

    def complete(self, stored: Iterable[Append]) -> Iterator[Append]:
        """Record what was stored and is not in the file, as it is gone through: it is published by this life."""
        lines = self._path.read_bytes().splitlines(keepends=True)
        known = {
            (record.event.source, record.event.id)
            for life in read_lives(lines, str(self._path))
            for record in life.records
            if isinstance(record, Published)
        }
        for what in stored:
            new = [event for event in what.events if event.seq is not None and (event.source, event.id) not in known]
            self.write([Published(time.time(), what.client, event) for event in new])
            yield what

    def write(self, records: Iterable[AnyRecord]) -> None:
        self._file.writelines(map(to_line, records))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.write(to_line(End()))
        self._file.close()
