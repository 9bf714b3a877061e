"""Folders that commands write tables to: there as a whole, or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vestnik.cli.inputs import Refused


def check_new(out: Path) -> None:
    """Refused unless `out` is a folder that is new or empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Refused(f"{out} is there already; name a folder that is new or empty")


@contextmanager
def written_whole(out: Path) -> Iterator[Path]:
    """A folder beside `out` to write to, which takes its place at the end.

    Whoever is killed before that leaves nothing at `out`; what is beside it is dropped by the next one.
    """
    place = out.absolute()
    new = place.with_name(f".{place.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        new.replace(place)
    finally:
        shutil.rmtree(new, ignore_errors=True)
