"""What a lake holds, as of one version: which files, and how far each journal was read.

A version is one small file that appears whole, by renaming. All of a lake is what its latest version names; a file that
no version names is not there, whoever was killed while writing it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, json

from vestnik.errors import InvalidLake
from vestnik.journal.disk import sync_directory

FORMAT: Final = 1
SUFFIX: Final = ".json"


class DataFile(Struct, frozen=True):
    """Rows of the event table, of one type and one date. Events happened, or were taken, from `first` to `last`."""

    path: str
    type: str
    date: str
    rows: int
    size: int
    first: int
    last: int


class PlainFile(Struct, frozen=True):
    """Another file: rows of the quarantine, or keys of events."""

    path: str
    rows: int


class Column(Struct, frozen=True):
    """A column of a declared type: where in `data` it is from, and its SQL type."""

    path: str
    type: str


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """A version of a lake. `read` says up to which position the journal of each broker is in it, `journals` which."""

    version: int = 0
    read: dict[str, int] = {}
    journals: dict[str, str] = {}
    events: tuple[DataFile, ...] = ()
    quarantine: tuple[PlainFile, ...] = ()
    keys: tuple[PlainFile, ...] = ()
    declared: dict[str, dict[str, Column]] = {}
    format: int = FORMAT

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.events)

    def paths(self) -> set[str]:
        """All files that it names."""
        return {file.path for files in (self.events, self.quarantine, self.keys) for file in files}


def versions(log: Path) -> list[Path]:
    """The files of all versions that are kept, from the first."""
    return sorted(log.glob(f"{'[0-9]' * 20}{SUFFIX}"))


def read_version(path: Path) -> Manifest:
    """InvalidLake where the file holds none."""
    try:
        found = json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise InvalidLake(path, "is not there: that version is not kept any more") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidLake(
            path, f"is no version of a lake: {error}; where it is removed, the one before, if it is kept, is the latest"
        ) from None
    if found.format != FORMAT:
        raise InvalidLake(path, f"is of format {found.format}; this program knows {FORMAT}")
    return found


def write_version(log: Path, manifest: Manifest) -> None:
    """Make it the latest version: all at once, and for good."""
    target = log / f"{manifest.version:020}{SUFFIX}"
    unfinished = target.with_suffix(".new")
    with unfinished.open("wb") as file:
        file.write(json.format(json.encode(manifest), indent=1))
        file.flush()
        os.fsync(file.fileno())
    if target.exists():
        raise InvalidLake(target, "was written by somebody else meanwhile")
    unfinished.rename(target)
    sync_directory(log)
