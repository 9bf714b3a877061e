"""The folder of a broker: what is where in it, and whether a folder is one."""

from __future__ import annotations

from enum import Enum, auto
from pathlib import Path
from typing import Final

from vestnik.journal.directory import names_in
from vestnik.journal.disk import private
from vestnik.journal.identity import identity_in
from vestnik.journal.segments import SUFFIX

JOURNAL: Final = "journal"
"""The directory of what the broker took."""
HELD: Final = "held"
"""The directory of what the broker holds until its time."""
_NAME: Final = "name"


def put_name(folder: Path, name: str) -> None:
    """Write down whose folder it is: whoever finds it without its broker can tell."""
    if name_in(folder) != name:
        unfinished = folder / f"{_NAME}.new"
        with open(unfinished, "w", encoding="utf-8", opener=private) as file:
            file.write(name)
        unfinished.replace(folder / _NAME)


def name_in(folder: Path) -> str:
    """Whose folder it is; empty where that was not written down."""
    try:
        return (folder / _NAME).read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


class Kind(Enum):
    """The owner of a folder."""

    BROKER = auto()
    PART = auto()
    """A directory inside the folder of a broker."""
    HISTORY = auto()


def kind_of(folder: Path) -> Kind | None:
    """Return whose folder it is, by what is in it; None if it is neither a broker's nor a history's."""
    if name_in(folder) or (folder / JOURNAL).is_dir():
        return Kind.BROKER
    if not names_in(folder, SUFFIX):
        return None
    is_part = folder.name in (JOURNAL, HELD) and name_in(folder.parent)
    return Kind.PART if is_part or identity_in(folder) else Kind.HISTORY
