"""The folders of a lake in which people and programs look for Parquet files, without asking for a version.

    LAKE/_files/events/type_=T/date=D/RUN-1.data      the permanent name of a file, which versions use
    LAKE/events/type_=T/date=D/RUN-1.parquet          the public name, if the latest version has the file

Tasks write a file under its permanent name. Spark, pyarrow and shells ignore names that begin with _, and no pattern
for Parquet files matches the suffix. So a file can be there before its version is committed, and stay while readers use
an earlier version.

The public name is a hard link. The writer makes it after the commit of a version that has the file. It removes the link
after the commit of a version that does not. It removes links before it makes others, so no event is shown twice.
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
"""The public folders."""
SUFFIX: Final = ".data"
"""The suffix of permanent names."""
PARQUET: Final = ".parquet"


def kept_at(path: str) -> str:
    """Return the permanent path of the file that is public at `path`."""
    return f"{FILES}/{PurePosixPath(path).with_suffix('')}{SUFFIX}" if not path.startswith(f"{FILES}/") else path


def shown_at(path: str) -> str:
    """Return the public path of a file; in the earlier layout both were the same."""
    inner = path.removeprefix(f"{FILES}/")
    return inner if inner == path else f"{inner.removesuffix(SUFFIX)}{PARQUET}"


def relocated(manifest: Manifest, at: Callable[[str], str]) -> Manifest:
    """Return the manifest with other paths for the files of events and of the quarantine."""
    return replace(
        manifest,
        events=tuple([replace(file, path=at(file.path)) for file in manifest.events]),
        quarantine=tuple([replace(file, path=at(file.path)) for file in manifest.quarantine]),
    )


def show(lake: Path, manifest: Manifest, spared: Collection[str] = ()) -> None:
    """Make the public folders hold the files of a version, the `spared` ones, and no others.

    If the process is killed meanwhile, the next writer does it again.
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
        with suppress(FileNotFoundError):  # a reader of the version reports that
            link(lake / wanted[path], lake / path)
    _sync(lake, added)


def link(existing: Path, new: Path) -> None:
    """Give a file a second name. Copy it if the file system refuses a hard link."""
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
    """Give the files of a lake of the earlier layout, which had public names only, permanent names; return those."""
    moved = relocated(manifest, kept_at)
    old = sorted(manifest.paths() - moved.paths())
    for path in old:
        make_directory((lake / kept_at(path)).parent)
        with suppress(FileNotFoundError):
            link(lake / path, lake / kept_at(path))
    _sync(lake, map(kept_at, old))
    return moved
