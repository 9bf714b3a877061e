"""Which journal it is. One that is begun anew at the same place, by a broker of the same name, is another."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from vestnik.journal.disk import private, sync_directory

_IDENTITY: Final = "identity"


def identity_in(directory: Path) -> str:
    """Of the journal in a directory; empty where nobody has written it down."""
    try:
        return (directory / _IDENTITY).read_text(encoding="ascii")
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def identify(directory: Path) -> str:
    """The same, made up and written down where there is none. Whoever calls it has the journal for itself."""
    if found := identity_in(directory):
        return found
    made = secrets.token_hex(8)
    unfinished = directory / f"{_IDENTITY}.new"
    with open(unfinished, "w", encoding="ascii", opener=private) as file:
        file.write(made)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(directory / _IDENTITY)
    sync_directory(directory)
    return made
