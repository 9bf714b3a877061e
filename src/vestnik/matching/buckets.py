"""Rows that are asked together: a list while they are few, then with marks, and in sieves when they are many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any, TypeAlias

from vestnik.matching.marks import COLUMNS, Marks
from vestnik.matching.rows import Row
from vestnik.matching.sieve import CAPACITY, Sieve

SOME = 16
MANY = 1024


class MarkedBucket:
    """Rows, each with its marks."""

    __slots__ = ("columns", "rows")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.columns = [bytearray() for _ in range(COLUMNS)]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def add(self, row: Row, marks: Marks) -> None:
        self.rows.append(row)
        for column, mark in zip(self.columns, marks.acquire(row), strict=True):
            column.append(mark)

    def remove(self, row: Row, marks: Marks) -> None:
        place = next(i for i, other in enumerate(self.rows) if other is row)
        marks.release(row, bytes([column[place] for column in self.columns]))
        columns: list[Any] = [self.rows, *self.columns]
        for column in columns:
            last = column.pop()
            if place < len(column):
                column[place] = last

    def candidates(self, values: list[Any], tables: list[bytes]) -> Iterable[Row]:
        """The rows whose marks the tables of an event let pass."""
        passed = -1
        for column, table in zip(self.columns, tables, strict=True):
            passed &= int.from_bytes(column.translate(table), "little")
        rows = self.rows
        size = len(rows)
        return [rows[place] for place in compress(range(size), passed.to_bytes(size, "little"))]


class LargeBucket:
    """Rows in sieves."""

    __slots__ = ("_sieves",)

    def __init__(self) -> None:
        self._sieves: list[Sieve] = []

    def __len__(self) -> int:
        return sum(map(len, self._sieves))

    def __iter__(self) -> Iterator[Row]:
        return (row for sieve in self._sieves for row in sieve)

    def add(self, row: Row, marks: Marks) -> None:
        sieve = next((sieve for sieve in self._sieves if len(sieve) < CAPACITY), None)
        if sieve is None:
            sieve = Sieve()
            self._sieves.append(sieve)
        sieve.add(row)

    def remove(self, row: Row, marks: Marks) -> None:
        sieve = next(sieve for sieve in self._sieves if row in sieve)
        sieve.remove(row)
        if not sieve:
            self._sieves.remove(sieve)

    def candidates(self, values: list[Any], tables: list[bytes]) -> Iterable[Row]:
        """The rows that the sieves leave over."""
        return [row for sieve in self._sieves for row in sieve.candidates(values)]


Bucket: TypeAlias = list[Row] | MarkedBucket | LargeBucket


def put(bucket: Bucket, row: Row, marks: Marks) -> Bucket:
    """The bucket with one more row."""
    if isinstance(bucket, list):
        if len(bucket) < SOME:
            bucket.append(row)
            return bucket
        bucket = _moved(bucket, MarkedBucket(), marks)
    elif isinstance(bucket, MarkedBucket) and len(bucket) == MANY:
        bucket = _moved(bucket, LargeBucket(), marks)
    bucket.add(row, marks)
    return bucket


def take(bucket: Bucket, row: Row, marks: Marks) -> Bucket:
    """The bucket without `row`."""
    if isinstance(bucket, list):
        del bucket[next(i for i, other in enumerate(bucket) if other is row)]
        return bucket
    bucket.remove(row, marks)
    if isinstance(bucket, LargeBucket) and len(bucket) <= MANY // 2:
        return _moved(bucket, MarkedBucket(), marks)
    if isinstance(bucket, MarkedBucket) and len(bucket) <= SOME // 2:
        rows = list(bucket)
        for other in rows:
            bucket.remove(other, marks)
        return rows
    return bucket


def _moved(
    source: Bucket, target: MarkedBucket | LargeBucket, marks: Marks
) -> MarkedBucket | LargeBucket:
    for row in list(source):
        if not isinstance(source, list):
            source.remove(row, marks)
        target.add(row, marks)
    return target
