"""What happens at a broker, in a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from vestnik.errors import InvalidSetting
from vestnik.trace.files import Begin, End, to_line
from vestnik.trace.records import AnyRecord


class TraceFile:
    """The trace of one life of a broker, after those that are in the file already.

    What was flushed is there when the broker is killed.
    """

    def __init__(self, path: Path, node: str) -> None:
        try:
            self._file = path.open("ab")
            with path.open("rb") as before:
                before.seek(max(0, self._file.tell() - 1))
                if before.read() not in (b"", b"\n"):
                    self._file.write(b"\n")  # after half a line of a broker that was killed
        except OSError as error:
            raise InvalidSetting("trace", f"{path} cannot be written: {error.strerror or error}") from None
        self._file.write(to_line(Begin(node)))
        self._file.flush()

    def write(self, records: Iterable[AnyRecord]) -> None:
        self._file.writelines(map(to_line, records))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.write(to_line(End()))
        self._file.close()
