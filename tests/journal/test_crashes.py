"""A process that is killed at any step loses nothing that was synced, uses no position twice, and invents no loss."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from journal.journals import NEW, entry, missing, read_all
from vestnik.journal import Entry, Journal, Observer, Record, Settings

SETTINGS = Settings(segment_size=200, retain_size=100_000)
CALLS: list[tuple[object, str]] = [
    (os, name) for name in ("pwrite", "fsync", "fdatasync", "ftruncate", "truncate", "posix_fallocate")
]
CALLS += [(Path, name) for name in ("rename", "unlink")]


class Snapshot(NamedTuple):
    """The files at some step; what was appended and up to where it was synced; and the last position handed out."""

    directory: Path
    appended: dict[int, Entry]
    committed: int
    used: int


@dataclass
class World:
    """A journal that is written to, and copies of its files before each step on the disk."""

    folder: Path
    appended: dict[int, Entry] = field(default_factory=dict)
    committed: int = 0
    used: int = 0
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        return self.folder / "journal"

    def copy(self) -> None:
        if self.directory.exists():
            to = shutil.copytree(self.directory, self.folder / str(len(self.snapshots)))
            self.snapshots.append(Snapshot(to, dict(self.appended), self.committed, self.used))

    @contextmanager
    def watched(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            is_copying = False

            def watching(call: Callable[..., Any]) -> Callable[..., Any]:
                def watch(*arguments: Any, **named: Any) -> Any:
                    nonlocal is_copying
                    if not is_copying:
                        is_copying = True
                        self.copy()
                        is_copying = False
                    return call(*arguments, **named)

                return watch

            for owner, name in CALLS:
                patch.setattr(owner, name, watching(getattr(owner, name)))
            yield

    def append(self, journal: Journal, numbers: range, skip: int = 0) -> None:
        for number in numbers:
            at = journal.next + skip
            self.used = journal.append([entry(number)], at)
            self.appended[at] = entry(number)

    def sync(self, journal: Journal) -> None:
        self.committed = journal.sync()


def every_third(record: Record) -> int | None:
    """The key of a record; those without one are never dropped."""
    return record.kind % 3 or None


def live(world: World) -> None:
    """Two lives of a journal in which everything is done that changes files."""
    with Journal.open(world.directory, SETTINGS) as journal:
        world.append(journal, range(1, 9))
        world.sync(journal)
        world.append(journal, range(9, 12), skip=3)
        journal.roll()
        world.append(journal, range(12, 14), skip=100_000)
        world.sync(journal)
        journal.compact(every_third)
        world.append(journal, range(14, 18))
    world.committed = journal.last
    trimming = Settings(segment_size=100, retain_size=100_000, retain_count=80)
    with Journal.open(world.directory, trimming) as journal:
        world.append(journal, range(18, 22))
        journal.trim(0)
        world.sync(journal)


def test_a_crash_at_any_step(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.watched():
        live(world)
    assert len(world.snapshots) > 50
    for directory, appended, committed, used in world.snapshots:
        kept = {p: one for p, one in appended.items() if p <= committed and one[0] % 3 == 0}
        told = [gap for part in Observer(directory).read(0) for gap in part.lost]
        assert told == [], directory.name
        for _ in range(3):
            with Journal.open(directory, SETTINGS) as journal:
                assert journal.recovery.lost == (), directory.name
                assert journal.next > used, directory.name
                cursor = journal.read()
                found = read_all(cursor)
                assert missing(cursor.lost) == set()
                assert kept.items() <= found.items()
                assert {p: one for p, one in found.items() if one != NEW}.items() <= world.appended.items()
                used = journal.append([NEW])
