"""Rows that are asked together: a list while they are few, sieves when they are many."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, TypeAlias

from vestnik.matching.single.paths import Paths
from vestnik.matching.single.rows import Row
from vestnik.matching.single.sieve import CAPACITY, Sieve

MANY = 128
"""Rows in the longest list."""


class SievedBucket:
    """Rows in sieves."""

    __slots__ = ("_paths", "_sieves")

    def __init__(self, paths: Paths, rows: list[Row]) -> None:
        self._paths = paths
        self._sieves: list[Sieve] = []
        for row in rows:
            self.add(row)

    def __len__(self) -> int:
        return sum(map(len, self._sieves))

    def __iter__(self) -> Iterator[Row]:
        return (row for sieve in self._sieves for row in sieve)

    def add(self, row: Row) -> None:
        sieve = next((sieve for sieve in self._sieves if len(sieve) < CAPACITY), None)
        if sieve is None:
            sieve = Sieve(self._paths)
            self._sieves.append(sieve)
        sieve.add(row)

    def remove(self, row: Row) -> None:
        sieve = next(sieve for sieve in self._sieves if row in sieve)
        sieve.remove(row)
        if not sieve:
            self._sieves.remove(sieve)

    def scan(self, values: list[Any]) -> list[Hashable]:
        """The ids of the rows that hold of an event's values."""
        return [id for sieve in self._sieves for id in sieve.scan(values)]


Bucket: TypeAlias = list[Row] | SievedBucket


def put(bucket: Bucket, row: Row, paths: Paths) -> Bucket:
    """The bucket with one more row."""
    if isinstance(bucket, list):
        bucket.append(row)
        return bucket if len(bucket) <= MANY else SievedBucket(paths, bucket)
    bucket.add(row)
    return bucket


def take(bucket: Bucket, row: Row) -> Bucket:
    """The bucket without `row`."""
    if isinstance(bucket, list):
        del bucket[next(i for i, other in enumerate(bucket) if other is row)]
        return bucket
    bucket.remove(row)
    if len(bucket) > MANY // 2:
        return bucket
    rows = list(bucket)
    for other in rows:
        bucket.remove(other)
    return rows
