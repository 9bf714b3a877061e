"""Marks: a few names with numbers that change often and must not be forgotten."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from os import PathLike
from struct import Struct
from typing import Final

from vestnik.journal.journal import Journal
from vestnik.journal.records import Entry
from vestnik.journal.reports import Recovery
from vestnik.journal.settings import MIB, Settings

SET: Final = 0
REMOVED: Final = 1
NUMBER: Final = Struct("<q")
LEAST_WRITTEN: Final = 1_000
"""How many changes are written, at least, before all marks are written anew and the changes dropped."""


class Marks(MutableMapping[str, int]):
    """A dictionary of names and numbers of 64 bits in a directory of its own. A change is durable after a `sync`.

    It is a journal of changes. When there are many more changes than marks, all marks are written behind them, and what
    is before these is dropped once they are durable. `last`, `committed` and `sync` count changes, so that a
    `GroupCommit` serves it, too; `recovery` says whether changes were lost, which gives marks their values of before.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._values: dict[str, int] = {}
        self._written = 0
        self._rewritten_at = 0
        for record in journal.read():
            self._written += 1
            self._replay(record.kind, record.payload)

    @classmethod
    def open(cls, directory: str | PathLike[str], *, fsync: bool = True) -> Marks:
        """The marks in `directory`; see `Journal.open`."""
        return cls(
            Journal.open(directory, Settings(segment_size=MIB, retain_size=1 << 40, held_size=1 << 40, fsync=fsync))
        )

    @property
    def recovery(self) -> Recovery:
        return self._journal.recovery

    @property
    def last(self) -> int:
        return self._journal.last

    @property
    def committed(self) -> int:
        return self._journal.committed

    def __getitem__(self, name: str) -> int:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __setitem__(self, name: str, value: int) -> None:
        self._write([_entry(name, value)])
        self._values[name] = value
        self._tidy()

    def __delitem__(self, name: str) -> None:
        del self._values[name]
        self._write([(REMOVED, 0, name.encode())])
        self._tidy()

    def sync(self) -> int:
        """Wait until all changes are durable."""
        anew = self._rewritten_at
        position = self._journal.sync()
        self._journal.drop_before(anew)
        return position

    def close(self) -> None:
        """Make durable what is not, if nothing has failed, and let the directory go."""
        self._journal.close()

    def _write(self, entries: list[Entry]) -> None:
        self._journal.append(entries)
        self._written += len(entries)

    def _tidy(self) -> None:
        """Write all marks anew where the changes have become many."""
        if self._written > max(LEAST_WRITTEN, 4 * len(self._values)):
            self._journal.roll()
            position, self._written = self._journal.last + 1, 0
            self._write([_entry(name, value) for name, value in self._values.items()])
            self._rewritten_at = position

    def _replay(self, kind: int, payload: bytes) -> None:
        if kind == REMOVED:
            self._values.pop(payload.decode(), None)
        else:
            self._values[payload[NUMBER.size :].decode()] = NUMBER.unpack_from(payload)[0]


def _entry(name: str, value: int) -> Entry:
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"the mark {name} would need more than 64 bits")
    return SET, 0, NUMBER.pack(value) + name.encode()
