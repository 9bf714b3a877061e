"""Lines at the end of a file: each is whole, or was the last when its writer ended."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def append(path: Path, lines: Iterable[bytes]) -> None:
    """Write lines behind those that are there, the last of which may be unfinished."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(b"".join([line + b"\n" for line in lines]))
