"""The folders of a lake, and who may change them.

    LAKE/log/00000000000000000007.json                                a version: which files are the lake
    LAKE/_files/events/type_=stock.quote/date=2026-11-16/RUN-1.data   events of a type, taken on a date, in that order
    LAKE/_files/quarantine/RUN-1.data                                 what of the journals could not be taken in
    LAKE/keys/RUN-1.npy                                               by what known events are recognised
    LAKE/events, LAKE/quarantine                                      the files of the latest version, as .parquet

Readers take a version, and with it the files to read. Writers take turns: they hold the lock, write new files beside
the old ones, and end with a new version that names them. No file is ever changed. Who looks for Parquet files finds
those of the latest version (`shown`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msgspec.structs import replace

from vestnik.errors import InvalidLake
from vestnik.journal.disk import make_directory
from vestnik.journal.lock import Lock
from vestnik.lake.manifest import Manifest, read_version, versions, write_version
from vestnik.lake.shown import EVENTS, FILES, QUARANTINE, SHOWN, adopt, show

LOG: Final = "log"
KEYS: Final = "keys"
KEEP: Final = 3600.0
"""Seconds for which a version can be read after the next one has come."""
NO_VERSION: Final = "has no version, so which files are the lake is not known; put one back, or begin another lake"
LONGEST: Final = 200
"""Characters of a folder's name."""
DAY: Final = 86_400_000_000
"""Microseconds."""


class Lake:
    """A lake in a folder, to be read."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder).absolute()
        if not (self.folder / LOG).is_dir():
            raise InvalidLake(self.folder, "is no lake; vestnik pipeline ingest makes one")

    def __repr__(self) -> str:
        return f"<Lake {self.folder}>"

    def latest(self) -> Manifest:
        """The version to read."""
        if found := versions(self.folder / LOG):
            return read_version(found[-1])
        if any(path.is_file() for place in (FILES, KEYS, *SHOWN) for path in (self.folder / place).rglob("*")):
            raise InvalidLake(self.folder / LOG, NO_VERSION)
        return Manifest()

    def version(self, number: int) -> Manifest:
        """An earlier one; InvalidLake where it is kept no more."""
        latest = self.latest()
        return latest if number == latest.version else read_version(self.folder / LOG / f"{number:020}.json")

    def paths(self, type: str | None = None) -> list[str]:
        """The Parquet files of the latest version, of one type or of all, for whatever reads such files."""
        return [str(self.folder / file.path) for file in self.latest().events if type in (None, file.type)]


class Writer(Lake):
    """A lake that is being changed, by this process alone. Each writing has a name, by which its files go."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._spared: set[str] = set()  # files of an earlier layout that are shown and can still be read
        self.name = f"{time.time_ns() // 1000:x}-{secrets.token_hex(4)}"
        self._count = 0

    def begin(self) -> None:
        """Give a new lake a version without files: so if there are files and no version, something was lost.

        The files of a lake of an earlier layout get the names that they have now.
        """
        latest = self.latest()
        if not versions(self.folder / LOG):
            write_version(self.folder / LOG, latest)
        elif (adopted := adopt(self.folder, latest)) != latest:
            write_version(self.folder / LOG, replace(adopted, version=latest.version + 1))

    def new_name(self) -> str:
        """For files that nobody else writes."""
        self._count += 1
        return f"{self.name}-{self._count}"

    def commit(self, manifest: Manifest) -> Manifest:
        """Make it the latest version, and show its files; return it with its number."""
        manifest = replace(manifest, version=manifest.version + 1)
        write_version(self.folder / LOG, manifest)
        show(self.folder, manifest, self._spared)
        return manifest

    def drop(self, paths: Iterable[str]) -> None:
        """Remove files that were written, where the latest version does not name them."""
        named = self.latest().paths()
        for path in paths:
            if path not in named:
                (self.folder / path).unlink()

    def tidy(self, now: float) -> None:
        """Drop versions that are too old, and files that no version names: what was begun and not brought to an end.

        Show the files of the latest version, if a writer was killed before it had done that.
        """
        for path, following in pairwise(versions(self.folder / LOG)):
            if following.stat().st_mtime < now - KEEP:
                path.unlink()
        named = {path for version in versions(self.folder / LOG) for path in read_version(version).paths()}
        for unfinished in (self.folder / LOG).glob("*.new"):
            unfinished.unlink()
        for place in (FILES, KEYS):
            for path in (self.folder / place).rglob("*.*"):
                if path.is_file() and path.relative_to(self.folder).as_posix() not in named:
                    path.unlink()
        self._spared = {path for path in named if path.startswith(SHOWN)}
        show(self.folder, self.latest(), self._spared)


@contextmanager
def writing(folder: str | PathLike[str]) -> Iterator[Writer]:
    """The lake, made where there is none. What is not brought to an end is dropped, here or by the next writer.

    JournalLocked where somebody else writes, InvalidLake where there is something else in the folder.
    """
    at = Path(folder).absolute()
    if at.exists() and not (at / LOG).is_dir() and (not at.is_dir() or any(at.iterdir())):
        raise InvalidLake(at, "is no lake, and not empty; name another folder")
    for place in (f"{FILES}/{QUARANTINE}", *SHOWN, KEYS, LOG):
        make_directory(at / place)
    lock = Lock(at)
    try:
        writer = Writer(at)
        writer.begin()
        writer.tidy(time.time())
        try:
            yield writer
        except Exception:
            with suppress(OSError):
                writer.tidy(time.time())
            raise
    finally:
        lock.release()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """While a file of a lake is read: InvalidLake, which names it, where it is damaged or not there."""
    try:
        yield
    except (OSError, ValueError, EOFError) as error:
        raise InvalidLake(path, f"is damaged, or not there: {error}; put back what it was") from error


def partition_of(type: str, date: str) -> str:
    """The folder of events of a type that were taken on a date. A type whose name is too long goes by its digest."""
    name = f"~{blake2b(type.encode(), digest_size=16).hexdigest()}" if is_digest(type) else quote(type, safe="")
    return f"{FILES}/{EVENTS}/type_={name}/date={date}"


def is_digest(type: str) -> bool:
    """Whether a type goes by its digest, in the name of its folder."""
    return len(quote(type, safe="")) > LONGEST


def date_of(day: int) -> str:
    """The date of a day, counted from 1970."""
    return datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()
