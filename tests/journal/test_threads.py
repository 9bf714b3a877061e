"""Readers, a committer and a compactor beside one who appends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from journal.journals import entries, entry, missing
from vestnik.journal import Journal, Record, Settings

LAST = 20_000


def follow(journal: Journal, is_done: Event) -> tuple[list[Record], set[int]]:
    """All records as they come, and what was passed over."""
    cursor, found = journal.read(), list[Record]()
    while not is_done.is_set():
        found += cursor
    found += cursor
    return found, missing(cursor.lost)


def until(is_done: Event, act: Callable[[], object]) -> None:
    while not is_done.is_set():
        act()


def append(journal: Journal, is_done: Event) -> None:
    try:
        for first in range(1, LAST, 10):
            journal.append(entries(first, first + 9))
    finally:
        is_done.set()


def test_readers_see_everything_in_order_while_it_is_appended(tmp_path: Path) -> None:
    settings = Settings(segment_size=10_000, fsync=False)
    is_done = Event()
    with Journal.open(tmp_path, settings) as journal, ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(follow, journal, is_done) for _ in range(2)]
        syncing = threads.submit(until, is_done, journal.sync)
        append(journal, is_done)
        syncing.result()
        for reader in readers:
            found, lost = reader.result()
            assert [(one.kind, one.time, one.payload) for one in found] == entries(1, LAST)
            assert lost == set()


def test_readers_are_told_what_is_dropped_and_compacted_under_their_hands(tmp_path: Path) -> None:
    settings = Settings(segment_size=10_000, retain_size=100_000, fsync=False)
    is_done = Event()
    with Journal.open(tmp_path, settings) as journal, ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(follow, journal, is_done) for _ in range(2)]
        syncing = threads.submit(until, is_done, journal.sync)
        compacting = threads.submit(until, is_done, lambda: journal.compact(lambda record: record.position % 500))
        append(journal, is_done)
        syncing.result(), compacting.result()
        for reader in readers:
            found, lost = reader.result()
            positions = [one.position for one in found]
            assert positions == sorted(set(positions))
            assert all((one.kind, one.time, one.payload) == entry(one.position) for one in found)
            assert not lost & set(positions)
            assert set(range(LAST - 400, LAST + 1)) <= set(positions) | lost
