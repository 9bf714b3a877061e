"""What people and programs find who look at a lake's files, and ask for no version.

    LAKE/_files/events/type_=T/date=D/RUN-1.data      a file under the name by which versions name it
    LAKE/events/type_=T/date=D/RUN-1.parquet          the same file, if the latest version names it

A file is written under the first name. Spark, pyarrow and shells pass over what begins with _, and no pattern for
Parquet files matches it: so it may lie there before its version comes, and for as long as an earlier version is read.
The second name is a hard link. It comes after the version that names the file, and goes as soon as the latest version
names it no more. What goes, goes first: so no event is ever shown twice.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec.structs import replace

from vestnik.journal.disk import make_directory, sync_directory
from vestnik.lake.manifest import Manifest

FILES: Final = "_files"
EVENTS: Final = "events"
QUARANTINE: Final = "quarantine"
SHOWN: Final = (EVENTS, QUARANTINE)
"""Folders in which people look for Parquet files."""
SUFFIX: Final = ".data"
"""Of files as versions name them."""
PARQUET: Final = ".parquet"


def kept_at(path: str) -> str:
    """Return the path by which a version names the file that is shown at `path`."""
    return f"{FILES}/{PurePosixPath(path).with_suffix('')}{SUFFIX}" if not path.startswith(f"{FILES}/") else path


def shown_at(path: str) -> str:
    """Return the path at which a file is shown that a version names; the earlier layout had but one for both."""
    inner = path.removeprefix(f"{FILES}/")
    return inner if inner == path else f"{inner.removesuffix(SUFFIX)}{PARQUET}"


def relocated(manifest: Manifest, at: Callable[[str], str]) -> Manifest:
    """Return a manifest that has its files of events and of the quarantine at other paths."""
    return replace(
        manifest,
        events=tuple([replace(file, path=at(file.path)) for file in manifest.events]),
        quarantine=tuple([replace(file, path=at(file.path)) for file in manifest.quarantine]),
    )


def show(lake: Path, manifest: Manifest, spared: Collection[str] = ()) -> None:
    """Show what a version names, and nothing else but the `spared`; what is shown already is not touched.

    It may be killed at any point, and is then done again by the next writer.
    """
    wanted = {shown_at(file.path): file.path for files in (manifest.events, manifest.quarantine) for file in files}
    found = {
        path.relative_to(lake).as_posix()
        for place in SHOWN
        for path in (lake / place).rglob("*")
        if not path.is_dir() or path.is_symlink()
    }
    surplus = sorted(found - wanted.keys() - set(spared))
    for path in surplus:
        unlink(lake / path)
    _sync(lake, surplus)
    added = [path for path in sorted(wanted.keys() - found) if wanted[path] != path]
    for path in added:
        make_directory((lake / path).parent)
        with suppress(FileNotFoundError):  # who reads it is told that it is damaged, or not there
            link(lake / wanted[path], lake / path)
    _sync(lake, added)


def link(existing: Path, new: Path) -> None:
    """Give a file a second name; a copy of it, if the disk has no links or no more of them for this file."""
    try:
        os.link(existing, new)
    except FileNotFoundError:
        raise
    except FileExistsError:
        return
    except OSError:
        unfinished = new.with_name(f".{new.name}.new")
        shutil.copyfile(existing, unfinished)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(new)


def unlink(path: Path) -> None:
    path.unlink()


def _sync(lake: Path, paths: Iterable[str]) -> None:
    for folder in sorted({(lake / path).parent for path in paths}):
        sync_directory(folder)


def adopt(lake: Path, manifest: Manifest) -> Manifest:
    """Return the manifest of a lake of the earlier layout, in which all files were shown, with both names for each."""
    moved = relocated(manifest, kept_at)
    old = sorted(manifest.paths() - moved.paths())
    for path in old:
        make_directory((lake / kept_at(path)).parent)
        with suppress(FileNotFoundError):
            link(lake / path, lake / kept_at(path))
    _sync(lake, map(kept_at, old))
    return moved
