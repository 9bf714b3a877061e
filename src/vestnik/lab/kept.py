"""What came of tasks, in a file: what was done is not done again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec

from vestnik.lab.lines import append

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")

FILE = "done.jsonl"


class _Line(msgspec.Struct):
    """One outcome, of a function of one version of this package."""

    version: str
    of: str
    task: msgspec.Raw
    outcome: msgspec.Raw


class Kept(Generic[Task, Outcome]):
    """Outcomes of a function by its tasks, both plain data. Without a folder nothing is kept."""

    def __init__(self, folder: Path | None, call: Callable[[Task], Outcome]) -> None:
        self._path = None if folder is None else folder / FILE
        self._of = f"{call.__module__}.{call.__qualname__}"
        self._version = version("vestnik") if folder is not None else ""  # which a worker of a cluster does not know
        self._outcomes: dict[bytes, Outcome] = {}
        if self._path is not None and self._path.exists():
            decode = msgspec.json.Decoder(get_type_hints(call)["return"]).decode
            for text in self._path.read_bytes().splitlines():
                with suppress(msgspec.DecodeError):  # the last line may be unfinished
                    line = msgspec.json.decode(text, type=_Line)
                    if (line.version, line.of) == (self._version, self._of):
                        self._outcomes[bytes(line.task)] = decode(line.outcome)

    def get(self, task: Task) -> Outcome | None:
        return self._outcomes.get(_plain(task)) if self._outcomes else None

    def put(self, task: Task, outcome: Outcome) -> None:
        if self._path is not None:
            line = _Line(self._version, self._of, msgspec.Raw(_plain(task)), msgspec.Raw(_plain(outcome)))
            append(self._path, [msgspec.json.encode(line)])


def _plain(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=list)
