"""Folders that commands write tables to: there as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from vestnik.cli.inputs import Refused
from vestnik.spark.temporary import temporary

NEW: Final = "new"
OLD: Final = "old"
"""The result that is being replaced."""


def check_new(out: Path) -> None:
    """Refused unless `out` is a folder that is new or empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Refused(f"{out} is there already; name a folder that is new or empty")


@contextmanager
def written_whole(out: Path) -> Iterator[Path]:
    """Give a folder beside `out` to write to, which takes its place at the end; `out` is new or empty.

    A process that is killed before that leaves nothing at `out`. What it leaves beside it the next one removes.
    """
    with _beside(out) as new:
        yield new
        new.replace(out)


@contextmanager
def replaced_whole(out: Path) -> Iterator[Path]:
    """Give a folder beside `out` to write to, which takes the place of what is at `out` at the end.

    If a process is killed just then, the next one puts what was at `out` back there.
    """
    with _beside(out) as new:
        yield new
        old = new.with_name(OLD)
        if out.exists():
            out.rename(old)
        try:
            new.rename(out)
        except BaseException:
            if old.exists():
                old.rename(out)
            raise


@contextmanager
def _beside(out: Path) -> Iterator[Path]:
    place = out.absolute()
    place.parent.mkdir(parents=True, exist_ok=True)

    def put_back(left: Path) -> None:
        if (left / OLD).exists() and not place.exists():
            (left / OLD).rename(place)

    with temporary(f".{place.name}.", place.parent, put_back) as folder:
        folder.chmod(0o755)  # tasks may run as another user
        (folder / NEW).mkdir()
        yield folder / NEW
