"""The folder of a broker: what is where in it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from vestnik.journal.disk import private

JOURNAL: Final = "journal"
"""The directory of what the broker took."""
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
