"""Few large files for many small ones. Readers see the one or the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from vestnik.lake.declared import Declared, extended
from vestnik.lake.keys import load, save
from vestnik.lake.layout import KEYS, Writer, writing
from vestnik.lake.manifest import Column, DataFile, Manifest, PlainFile
from vestnik.lake.running import Runner, one_by_one
from vestnik.lake.staging import ORDER, read_events, write_events

FEW_FILES: Final = 8
"""Small files of a type and date, or of keys, that are left as they are."""
LARGE: Final = 64 << 20
"""Bytes of a file that is large enough."""
MANY_KEYS: Final = 16_000_000
"""Keys of a file that is large enough."""


class Merger(Struct, frozen=True):
    """Files of one type and date, to become one."""

    lake: Path
    name: str
    files: tuple[DataFile, ...]
    columns: dict[str, Column]


class KeyMerger(Struct, frozen=True):
    """Files of keys, to become one."""

    lake: Path
    name: str
    files: tuple[PlainFile, ...]


def compact(lake: str | PathLike[str], run: Runner = one_by_one, few: int = 1) -> tuple[int, int]:
    """Merge small files wherever there are more than a `few`; how many files there were, and are."""
    with writing(lake) as writer:
        before = writer.latest()
        after = compacted(writer, before, run, few)
        return len(before.events), len(after.events)


def compacted(writer: Writer, manifest: Manifest, run: Runner, few: int = FEW_FILES) -> Manifest:
    """Merge small files wherever there are more than a `few`, and commit that."""
    mergers = [
        Merger(writer.folder, writer.new_name(), files, manifest.declared.get(files[0].type, {}))
        for files in _small(manifest.events, few)
    ]
    keys = [file for file in manifest.keys if file.rows < MANY_KEYS]
    merged = run(merge, mergers)
    merged_keys = run(merge_keys, [KeyMerger(writer.folder, writer.new_name(), tuple(keys))] if len(keys) > few else [])
    if not merged and not merged_keys:
        return manifest
    gone = {file.path for merger in mergers for file in merger.files}
    gone_keys = {file.path for file in keys} if merged_keys else set()
    return writer.commit(
        replace(
            manifest,
            events=(*(file for file in manifest.events if file.path not in gone), *merged),
            keys=(*(file for file in manifest.keys if file.path not in gone_keys), *merged_keys),
        )
    )


def redeclared(writer: Writer, manifest: Manifest, declared: Declared, run: Runner) -> Manifest:
    """Make other columns of declared types, in all files of those that are declared otherwise, and commit that."""
    columns = {type: dict(named) for type, named in declared.items()}
    if columns == manifest.declared:
        return manifest
    old = [file for file in manifest.events if columns.get(file.type, {}) != manifest.declared.get(file.type, {})]
    mergers = [Merger(writer.folder, writer.new_name(), (file,), columns.get(file.type, {})) for file in old]
    new = run(merge, mergers)
    gone = set(old)
    events = (*(file for file in manifest.events if file not in gone), *new)
    return writer.commit(replace(manifest, events=events, declared=columns))


def _small(files: Sequence[DataFile], few: int) -> list[tuple[DataFile, ...]]:
    """Files that are to become one, of a type and date, no more than make a large one together."""
    place: Callable[[DataFile], tuple[str, str]] = attrgetter("type", "date")
    found = []
    for _, group in groupby(sorted([file for file in files if file.size < LARGE], key=place), key=place):
        small = sorted(group, key=lambda file: file.first)
        if len(small) > few:
            sizes = np.cumsum([file.size for file in small]) // LARGE
            heaps = [tuple(file for file, heap in zip(small, sizes, strict=True) if heap == one) for one in set(sizes)]
            found += [heap for heap in heaps if len(heap) > 1]
    return found


def merge(what: Merger) -> DataFile:
    """One file, in order, with the columns that are declared now."""
    tables = [read_events(what.lake / file.path) for file in what.files]
    rows = pa.concat_tables(tables).sort_by(ORDER)
    one = what.files[0]
    name = f"{what.name}-{os.urandom(4).hex()}"
    return write_events(what.lake, name, one.type, one.date, extended(rows, what.columns))


def merge_keys(what: KeyMerger) -> PlainFile:
    keys = np.sort(np.concatenate([load(what.lake / file.path) for file in what.files]))
    path = f"{KEYS}/{what.name}-{os.urandom(4).hex()}.npy"
    save(what.lake / path, keys)
    return PlainFile(path, len(keys))
