"""Small journals, and what should be in them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from vestnik.journal import Cursor, Cut, Entry, Journal, Lost, Record, Settings

SMALL = Settings(segment_size=200, retain_size=100_000, fsync=False)
"""Segments of a few records, on a disk that never loses power."""


NEW: Entry = (0, 1_000_000, b"new")
"""Something that is appended later than everything else."""


def entry(number: int) -> Entry:
    """Something that is different for each number."""
    return number % 256, 1_000 * number, f"record {number} {'x' * (number % 7)}".encode()


def entries(first: int, last: int) -> list[Entry]:
    return [entry(number) for number in range(first, last + 1)]


def contents(records: Iterable[Record]) -> dict[int, Entry]:
    return {record.position: (record.kind, record.time, record.payload) for record in records}


def expected(first: int, last: int) -> dict[int, Entry]:
    return {number: entry(number) for number in range(first, last + 1)}


def filled(directory: Path, last: int, settings: Settings = SMALL) -> Journal:
    """A journal that has `entry(position)` at each position, some at a time."""
    journal = Journal.open(directory, settings)
    for first in range(journal.next, last + 1, 2):
        journal.append(entries(first, min(first + 1, last)))
    return journal


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.segment"))


def files(directory: Path) -> dict[str, bytes]:
    """What the segments in a directory hold, by name."""
    return {path.name: path.read_bytes() for path in segments(directory)}


def crashed(now: dict[str, bytes], durable: dict[str, bytes], share: float) -> dict[str, bytes]:
    """The files `now` if of all bytes that are not among those `durable` only the first were written, this share."""
    safe = {name: len(durable.get(name, b"").rstrip(b"\0")) for name in now}
    loose = {name: max(0, len(data.rstrip(b"\0")) - safe[name]) for name, data in now.items()}
    written, left = round(share * sum(loose.values())), {}
    for name, data in now.items():
        part = min(written, loose[name])
        written -= part
        left[name] = data[: safe[name] + part].ljust(len(data), b"\0")
    return left


def put(directory: Path, content: dict[str, bytes]) -> None:
    """Make the segments of a directory those of `content`, and remove all else that belongs to them."""
    directory.mkdir(exist_ok=True)
    for path in directory.glob("*.segment*"):
        if path.name not in content:
            path.unlink()
    for name, data in content.items():
        path = directory / name
        if not path.exists() or path.read_bytes() != data:
            overwrite(path, data)


def overwrite(path: Path, data: bytes) -> None:
    """Write in place: a file that is emptied first is slow on some disks."""
    path.touch()
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def missing(lost: Sequence[Lost], cut: Cut | None = None, last: int = 0) -> set[int]:
    """The positions that are said to be missing; `last` is the last that there ever was."""
    named = {position for one in lost for position in range(one.first, one.last + 1)}
    return named | (set(range(cut.after + 1, last + 1)) if cut else set())


def read_all(cursor: Cursor) -> dict[int, Entry]:
    found = list(cursor)
    assert [record.position for record in found] == sorted({record.position for record in found})
    return contents(found)


def failing_to_sync(after: int) -> str:
    """Return statements after which the disk fails in this process, from the sync number `after` on."""
    return f"""
import errno, itertools, os
def fdatasync(file, number=itertools.count(1), sync=os.fdatasync):
    if next(number) >= {after}:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    sync(file)
os.fdatasync = fdatasync
"""


def python(script: str, *arguments: object) -> subprocess.Popen[str]:
    """A process that runs `script`; what it prints comes line by line."""
    command = [sys.executable, "-u", "-c", script, *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
    )
