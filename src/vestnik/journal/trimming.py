"""Dropping records one by one, by splitting segments that other settings made larger."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

from vestnik.journal.compaction import copy_records, records_of
from vestnik.journal.directory import Directory
from vestnik.journal.disk import create, write_all
from vestnik.journal.index import remove_index, write_index
from vestnik.journal.records import Record, size_of
from vestnik.journal.retention import first_kept, is_oversized
from vestnik.journal.salvage import UNFINISHED
from vestnik.journal.segments import HEADER_SIZE, Header, Segment, name_of, new_mark
from vestnik.journal.settings import Settings
from vestnik.journal.shelf import Shelf


class Drop(Protocol):
    """Drops the first `number` segments; the segments `kept` hold copies of some of their records."""

    def __call__(self, number: int, kept: Sequence[Segment] = ()) -> None: ...


def trim(shelf: Shelf, settings: Settings, now: int, begin: Callable[[], None], drop: Drop) -> None:
    """Drop the records that are not retained at the time `now`, and no others. The caller has the lock.

    `begin` closes the segment that grows, and begins another.
    """
    first, number = first_kept(shelf.segments, settings, now, partial(records_of, shelf))
    if is_oversized(shelf.growing, settings) or shelf.growing.first < first:
        begin()
    for at in range(len(shelf.closed) - 1, number, -1):
        _split_oversized(shelf, at, settings)
    cut = shelf.segments[number]
    if cut.first < first:
        kept = _split(shelf, cut, first, settings)
        if kept or first > cut.last:
            shelf.directory.sync()
            shelf.put(number + 1, 0, kept)
            drop(number + 1, kept)
    else:
        drop(number)
        if shelf.closed:
            _split_oversized(shelf, 0, settings)


def _split_oversized(shelf: Shelf, number: int, settings: Settings) -> None:
    segment = shelf.segments[number]
    if is_oversized(segment, settings) and (parts := _split(shelf, segment, segment.first, settings)):
        shelf.put(number, 1, parts)


def _split(shelf: Shelf, segment: Segment, first: int, settings: Settings) -> list[Segment]:
    """Write the records of a closed segment from position `first` on into segments as `settings` make them.

    Each stands for the positions after the last record before it. The files of later positions come first, and are
    durable before the next gets its name: after a crash `segment` stands for what is before them. None are written if
    it is damaged: they would not show that anything is missing.
    """
    records = records_of(shelf, segment)
    if segment.is_damaged or len(records) < segment.count:
        return []
    groups = list(_groups([record for record in records if first <= record.position <= segment.last], settings))
    written: list[Segment] = []
    last = segment.last  # less than that of its last record if a crash has left later segments of it
    try:
        for number, group in reversed(list(enumerate(groups))):
            begin = groups[number - 1][-1].position + 1 if number else first
            written.insert(0, _written(shelf.directory, begin, last, group))
            last = begin - 1
    except BaseException:
        for part in written:
            part.path.unlink()
            remove_index(part.path)
        raise
    return written


def _groups(records: Iterable[Record], settings: Settings) -> Iterator[list[Record]]:
    group: list[Record] = []
    size, most, oldest = HEADER_SIZE, settings.segment_count, settings.segment_age
    for record in records:
        by_count = most is not None and len(group) >= most
        by_age = oldest is not None and group and record.time - group[0].time > oldest
        if size >= settings.segment_size or by_count or by_age:
            yield group
            group, size = [], HEADER_SIZE
        group.append(record)
        size += size_of(record)
    if group:
        yield group


def _written(directory: Directory, first: int, last: int, records: list[Record]) -> Segment:
    """Write a segment that stands for the positions `first` to `last`. It replaces one of the same name.

    Segments that were written before are durable before this one has its name.
    """
    path = directory.path / name_of(first)
    segment = Segment(path.with_name(path.name + UNFINISHED), new_mark(), first, first - 1, is_sparse=True)
    try:
        file = create(directory, segment.path, bytes(HEADER_SIZE))
        try:
            copy_records(file, segment, records)
            segment.last = last
            write_all(file, Header(segment.mark, first, last, segment.count).encode(), 0)
            os.fsync(file)
        finally:
            directory.close(file)
        directory.sync()
        segment.path = segment.path.rename(path)
        write_index(directory, segment, is_durable=True)
    except BaseException:
        path.with_name(path.name + UNFINISHED).unlink(missing_ok=True)
        raise
    return segment
