"""The checkpoint of a streaming query, looked at before Spark does, so that damage is said in plain words.

CHECKPOINT/metadata      the id of the query
CHECKPOINT/offsets/N     how far each source was read before, and is to be read in batch N
CHECKPOINT/commits/N     batch N is done

Each is JSON, and those of batches have the version of their format as a first line. Spark reads the last ones.
"""

from __future__ import annotations

import json
import re
from os import PathLike
from pathlib import Path
from typing import Final

from vestnik.errors import DamagedCheckpoint

VERSION: Final = re.compile(r"v\d+")
NO_OFFSET: Final = "-"
"""What stands for the offset of a source that has none yet."""
READ: Final = 2
"""Batches that Spark looks back at."""


def check_checkpoint(folder: str | PathLike[str]) -> None:
    """DamagedCheckpoint where Spark could not go on from what is in `folder`; a new one may be empty, or not there."""
    at = Path(folder)
    if (metadata := at / "metadata").exists():
        _check(metadata, _text(metadata))
    for log in ("offsets", "commits"):
        for path in _batches(at / log)[-READ:]:
            version, _, rest = _text(path).partition("\n")
            if not VERSION.fullmatch(version) or not rest.strip():
                raise DamagedCheckpoint(path, "it ends too early" if not rest else "it does not begin with a version")
            for line in rest.splitlines():
                if line != NO_OFFSET:
                    _check(path, line)
    planned, done = _batches(at / "offsets"), _batches(at / "commits")
    if done and (not planned or int(planned[-1].name) < int(done[-1].name)):
        raise DamagedCheckpoint(at / "offsets" / done[-1].name, f"it is not there, and commits/{done[-1].name} is")


def _batches(log: Path) -> list[Path]:
    return sorted([path for path in log.glob("*") if path.name.isdecimal()], key=lambda path: int(path.name))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedCheckpoint(path, str(error)) from None


def _check(path: Path, text: str) -> None:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise DamagedCheckpoint(path, f"there should be JSON ({error})") from None
    if not isinstance(found, dict):
        raise DamagedCheckpoint(path, "there should be a JSON object")
