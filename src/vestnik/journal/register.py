"""A register: names, each with what is written under it, that change often and must not be forgotten."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from os import PathLike
from struct import Struct
from typing import Final

from vestnik.journal.journal import Journal
from vestnik.journal.records import LEAST, Entry
from vestnik.journal.reports import Recovery
from vestnik.journal.settings import MIB, Settings

WRITTEN: Final = 2
REMOVED: Final = 3
SIZE: Final = Struct("<I")
LEAST_WRITTEN: Final = MIB
"""How many bytes of changes there are, at least, before all is written anew and the changes dropped."""


class Register(MutableMapping[bytes, bytes]):
    """A dictionary of bytes in a directory of its own. A change is durable after a `sync`.

    It is a journal of changes. When they take twice as much as what is in it, all of that is written behind them, and
    what is before is dropped once it is durable. `last`, `committed` and `sync` count changes, so that a `GroupCommit`
    serves it, too; `recovery` says whether changes were lost, which leaves what was before.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._values: dict[bytes, bytes] = {}
        self._written = 0
        self._needed = 0  # bytes that writing all anew would take
        self._anew_at = 0
        for record in journal.read():
            self._written += LEAST + len(record.payload)
            self._replay(record.kind, record.payload)

    @classmethod
    def open(cls, directory: str | PathLike[str], *, fsync: bool = True) -> Register:
        """The register in `directory`; see `Journal.open`."""
        return cls(Journal.open(directory, Settings(segment_size=MIB, retain_size=1 << 40, fsync=fsync)))

    @property
    def recovery(self) -> Recovery:
        return self._journal.recovery

    @property
    def last(self) -> int:
        return self._journal.last

    @property
    def committed(self) -> int:
        return self._journal.committed

    def __getitem__(self, name: bytes) -> bytes:
        return self._values[name]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __setitem__(self, name: bytes, value: bytes) -> None:
        self._write([_entry(name, value)])
        self._put(name, value)
        self._tidy()

    def __delitem__(self, name: bytes) -> None:
        if name not in self._values:
            raise KeyError(name)
        self._write([(REMOVED, 0, name)])
        self._take(name)
        self._tidy()

    def sync(self) -> int:
        """Wait until all changes are durable."""
        anew = self._anew_at
        position = self._journal.sync()
        self._journal.drop_before(anew)
        return position

    def close(self) -> None:
        """Make durable what is not, if nothing has failed, and let the directory go."""
        self._journal.close()

    def _put(self, name: bytes, value: bytes) -> None:
        self._take(name)
        self._values[name] = value
        self._needed += LEAST + SIZE.size + len(name) + len(value)

    def _take(self, name: bytes) -> None:
        value = self._values.pop(name, None)
        if value is not None:
            self._needed -= LEAST + SIZE.size + len(name) + len(value)

    def _write(self, entries: list[Entry]) -> None:
        self._journal.append(entries)
        self._written += sum(LEAST + len(payload) for _, _, payload in entries)

    def _tidy(self) -> None:
        """Write all anew where the changes have become many."""
        if self._written > max(LEAST_WRITTEN, 2 * self._needed):
            if not self._journal.roll():
                return  # there is no descriptor for another segment; the next change tries again
            position, self._written = self._journal.last + 1, 0
            self._write([_entry(name, value) for name, value in self._values.items()])
            self._anew_at = position

    def _replay(self, kind: int, payload: bytes) -> None:
        if kind == REMOVED:
            self._take(payload)
        elif kind == WRITTEN:
            begin = SIZE.size + SIZE.unpack_from(payload)[0]
            self._put(payload[SIZE.size : begin], payload[begin:])


def _entry(name: bytes, value: bytes) -> Entry:
    return WRITTEN, 0, SIZE.pack(len(name)) + name + value
