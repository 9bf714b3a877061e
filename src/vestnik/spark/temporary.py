"""Temporary folders that say whose they are, so that the next run can remove what a killed one left.

    PREFIXxxxxxxxx/.vestnik-owner      the machine on which it was made; locked while the process lives that made it

The kernel ends the lock with the process, however that ends. Only a folder is removed whose owner is known to be gone:
one without the file, of another machine or of another user is left alone.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from glob import escape
from pathlib import Path
from stat import S_ISDIR
from typing import Final, TypeAlias

OWNER: Final = ".vestnik-owner"
PREFIX: Final = "vestnik-"
"""Of all folders that are made for passing things in this machine's folder for them."""


Rescue: TypeAlias = Callable[[Path], object]
"""Takes out of a folder that was left what is to be kept."""


def _nothing(folder: Path) -> None:
    """Rescue nothing."""


def lasting(prefix: str) -> Path:
    """Make a folder that is there until this process ends."""
    folder, owner = _make(prefix, None)
    atexit.register(_remove, folder, owner)
    return folder


@contextmanager
def temporary(prefix: str, parent: Path | None = None, rescue: Rescue = _nothing) -> Iterator[Path]:
    """Make a folder in `parent`, or in this machine's folder for temporary files, and remove it in the end.

    What killed processes left there is removed first; `rescue` is given each such folder before.
    """
    folder, owner = _make(prefix, parent, rescue)
    try:
        yield folder
    finally:
        _remove(folder, owner)


def sweep(prefix: str = PREFIX, parent: Path | None = None, rescue: Rescue = _nothing) -> int:
    """Remove the folders with this prefix whose makers have ended; return how many there were."""
    place = Path(tempfile.gettempdir()) if parent is None else parent
    return sum(_swept(folder, rescue) for folder in place.glob(f"{escape(prefix)}*"))


def _make(prefix: str, parent: Path | None, rescue: Rescue = _nothing) -> tuple[Path, int]:
    """Make a folder; it gets its owner's file when that is locked, so nobody takes it for one that was left."""
    sweep(prefix if parent else PREFIX, parent, rescue)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    unfinished = folder / f"{OWNER}.new"
    owner = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    flock(owner, LOCK_EX)
    os.write(owner, socket.gethostname().encode())
    unfinished.rename(folder / OWNER)
    return folder, owner


def _remove(folder: Path, owner: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(owner)


def _swept(folder: Path, rescue: Rescue) -> bool:
    try:
        owner = os.open(folder / OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not _is_mine(folder, owner):
            return False
        flock(owner, LOCK_EX | LOCK_NB)
        rescue(folder)
        shutil.rmtree(folder, ignore_errors=True)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(owner)


def _is_mine(folder: Path, owner: int) -> bool:
    with suppress(OSError):
        found = folder.lstat()
        is_of_user = S_ISDIR(found.st_mode) and found.st_uid == os.fstat(owner).st_uid == os.getuid()
        return is_of_user and os.pread(owner, 1000, 0) == socket.gethostname().encode()
    return False
