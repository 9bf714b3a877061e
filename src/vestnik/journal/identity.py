"""Which log a journal is. A later journal at the same place, by a broker of the same name, is another log."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from vestnik.journal.disk import private, sync_directory

_IDENTITY: Final = "identity"


def identity_in(directory: Path) -> str:
    """Return the identity of the journal in a directory; empty if none is written down."""
    try:
        found = (directory / _IDENTITY).read_text(encoding="ascii")
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
    return found if found.isdecimal() else ""


def identify(directory: Path) -> str:
    """Return the identity of the journal in a directory. If it has none, write one down.

    It is the time at which it is written, in microseconds since 1970, so a later journal has a greater one. The caller
    has the journal for itself.
    """
    if found := identity_in(directory):
        return found
    made = str(time.time_ns() // 1000)
    unfinished = directory / f"{_IDENTITY}.new"
    with open(unfinished, "w", encoding="ascii", opener=private) as file:
        file.write(made)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(directory / _IDENTITY)
    sync_directory(directory)
    return made


def log_of(identity: str) -> int:
    """Return the log id of an identity, which orders the logs of a broker; ValueError if it is none."""
    if not (identity.isascii() and identity.isdecimal()):
        raise ValueError(f"the identity of a journal is a decimal number, not {identity!r}")
    return int(identity)
