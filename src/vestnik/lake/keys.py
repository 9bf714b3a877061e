"""Keys of events: by which an event is known again, in whatever journal it is found.

A key is a digest of source and id. Keys are in sorted files, so that those of a range are a slice of each file, and
looking for some costs a search and not a reading of all. A duplicate is found among the new keys, or by a search in
the files of those that are known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from hashlib import blake2s
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vestnik.journal.disk import sync_directory
from vestnik.lake.layout import reading

SIZE: Final = 16
DIGEST: Final = np.dtype(f"S{SIZE}")
STAGED: Final = np.dtype([("digest", DIGEST), ("rank", "<i8"), ("file", "<u4"), ("row", "<u4")])
"""A key of an event that may be new: which copy of an event is best has the least rank. It is a row of a file."""
COPY: Final = 1 << 61
"""Added to the rank of what was not found where it was taken."""

Keys = NDArray[Any]


def digests(rows: pa.RecordBatch) -> bytes:
    """The keys of events, one behind the other."""
    sources, ids = (rows.column(name).cast(pa.binary()).to_pylist() for name in ("source", "id"))
    heads = {source: b"%d:%b" % (len(source), source) for source in set(sources)}  # where a source ends is clear
    texts = map(add, map(heads.__getitem__, sources), ids)
    return b"".join([blake2s(text, digest_size=SIZE).digest() for text in texts])


class Span(NamedTuple):
    """Digests whose first two bytes are from `first` to below `end`."""

    first: int
    end: int

    def of(self, found: Keys) -> Keys:
        """The slice of sorted digests, or of what is sorted by them."""
        names = found if found.dtype.names is None else found["digest"]
        low = 0 if self.first == 0 else int(np.searchsorted(names, _bound(self.first)))
        high = len(names) if self.end > 0xFFFF else int(np.searchsorted(names, _bound(self.end)))
        return found[low:high]


def spans(count: int) -> list[Span]:
    """All digests, in so many spans of about the same number."""
    count = max(1, min(count, 0x10000))
    bounds = [0x10000 * place // count for place in range(count + 1)]
    return [Span(first, end) for first, end in pairwise(bounds)]


def _bound(first: int) -> Any:
    return np.array(first.to_bytes(2, "big"), DIGEST)


def save(path: Path, keys: Keys) -> None:
    with path.open("xb") as file:
        np.save(file, keys, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    sync_directory(path.parent)


def load(path: Path) -> Keys:
    """Read where it is looked at."""
    with reading(path):
        found: Keys = np.load(path, mmap_mode="r", allow_pickle=False)
    return found


class Found(NamedTuple):
    """The keys that are new, in order, and for each staged file of keys the rows (file, row) that are not wanted."""

    new: Keys
    unwanted: list[Keys]


def compare(staged: Sequence[Keys], known: Iterable[Keys]) -> Found:
    """Of each event the one of the least rank, and among these the first, is wanted; where it is known, none is."""
    every = np.concatenate(staged) if staged else np.empty(0, STAGED)
    part = np.repeat(np.arange(len(staged)), [len(one) for one in staged])
    order = in_order(every["digest"], part, every["rank"])
    names = every["digest"][order]
    is_unwanted = np.zeros(len(every), bool)
    is_unwanted[1:] = names[1:] == names[:-1]
    for old in known:
        if len(old):
            places = np.minimum(np.searchsorted(old, names), len(old) - 1)
            is_unwanted |= old[places] == names
    unwanted = order[is_unwanted]
    places = every[["file", "row"]][unwanted]
    return Found(names[~is_unwanted], [places[part[unwanted] == number] for number in range(len(staged))])


def in_order(names: Keys, *then: Keys) -> Keys:
    """The places of digests in their order; of equal ones by what comes last in `then` first, as `np.lexsort` does.

    Where no two begin alike, which is as good as always where none are equal, numbers are sorted instead.
    """
    heads = np.ascontiguousarray(names).view(">u8")[::2].astype(np.uint64)
    order = np.argsort(heads)
    is_clear = bool(np.all(np.diff(heads[order]) != 0))
    return order if is_clear else np.lexsort((*then, names))
