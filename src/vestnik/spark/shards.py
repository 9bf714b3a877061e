"""Subscriptions compiled in Spark tasks, and shipped as files that workers map into memory.

A shard is some hundred thousand subscriptions compiled together. Tasks parse and compile; the driver keeps what they
made as files and has Spark bring them to every machine, where all workers share one copy in memory.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

import pyarrow as pa

from vestnik.errors import FilterError, WrongValue
from vestnik.matching.batch.compiled import CompiledFilters, compile_filters
from vestnik.matching.batch.documents import collector_paused
from vestnik.matching.batch.intervals import RankBoxes, rank_boxes
from vestnik.matching.batch.mapped import read_mapped, write_mapped
from vestnik.model.filters import Filter
from vestnik.spark.temporary import lasting, temporary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHARD: Final = 250_000
"""Subscriptions that are compiled together: a task that does takes about 1 GB."""
READ_AT_ONCE: Final = 1 << 20
"""Bytes of a shard that go through Java at a time."""
ROUND: Final = 1 << 30
"""Bytes of shards that a pass over the events looks at; a worker maps no more at a time."""
COMPILED: Final = "shard binary, id string, filter string, reason string"
_COMPILED: Final = pa.schema(
    [("shard", pa.binary()), ("id", pa.string()), ("filter", pa.string()), ("reason", pa.string())]
)


class Shard(NamedTuple):
    """Subscriptions compiled together; number i is `ids[i]`. There are `boxes` where they are intervals of ranks."""

    ids: pa.Array
    compiled: CompiledFilters
    boxes: RankBoxes | None


class Rejected(NamedTuple):
    """A subscription that is none, and why."""

    id: str | None
    filter: str | None
    reason: str


class ShardFile(NamedTuple):
    """A file that Spark brings to every machine, by its name there."""

    name: str
    bytes: int
    subscriptions: int

    def open(self) -> Shard:
        """The shard, on any machine of the session's."""
        from pyspark import SparkFiles

        return _opened(SparkFiles.get(self.name))


class Subscriptions:
    """Subscriptions that are compiled and shipped, for any number of matches in their session."""

    def __init__(self, shards: list[ShardFile], rejected: list[Rejected]) -> None:
        self.shards = shards
        self.rejected = rejected

    def __len__(self) -> int:
        return sum(shard.subscriptions for shard in self.shards)

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """The paths of events that any of them looks at."""
        return sorted({path for shard in self.shards for path in shard.open().compiled.paths})


def compile_subscriptions(subscriptions: DataFrame, *, most: int = SHARD) -> Subscriptions:
    """Compile `id` and `filter` (its text) in tasks, `most` together. What does not parse is `rejected`."""
    if missing := sorted({"id", "filter"} - set(subscriptions.columns)):
        raise WrongValue("subscriptions have the columns id and filter", f"without {' and '.join(missing)}")
    from pyspark import StorageLevel

    spark = subscriptions.sparkSession
    texts = subscriptions.selectExpr("cast(id AS string) AS id", "cast(filter AS string) AS filter").cache()
    shards = max(1, -(-texts.count() // most))
    made = texts.repartition(shards).mapInArrow(_compile, COMPILED).persist(StorageLevel.DISK_ONLY)
    made.count()  # all tasks at once; what they made is then taken one by one
    texts.unpersist()
    files: list[ShardFile] = []
    rejected: list[Rejected] = []
    pieces = _new_file()
    for row in made.toLocalIterator():
        if row.reason is not None:
            rejected.append(Rejected(row.id, row.filter, row.reason))
        elif row.shard is not None:
            with pieces.open("ab") as file:
                file.write(row.shard)
        else:
            spark.sparkContext.addFile(str(pieces))
            files.append(ShardFile(pieces.name, pieces.stat().st_size, int(row.id)))
            pieces = _new_file()
    made.unpersist()
    return Subscriptions(files, sorted(rejected, key=lambda one: (one.id or "", one.filter or "")))


def _compile(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The shard of all rows in pieces, then how many are in it, as `id`; and the rows that are no subscription."""
    with collector_paused():
        yield from _compiled(batches)


def _compiled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    ids: list[str] = []
    filters: list[Filter] = []
    for batch in batches:
        bad: list[tuple[None, str | None, str | None, str]] = []
        for id, text in zip(batch.column("id").to_pylist(), batch.column("filter").to_pylist(), strict=True):
            try:
                filters.append(_parsed(id, text))
                ids.append(id)
            except (FilterError, WrongValue) as error:
                bad.append((None, id, text, str(error)))
        yield _rows(bad)
    if filters:
        boxes = rank_boxes([wanted.region for wanted in filters])
        shard = Shard(pa.array(ids, pa.string()), compile_filters(enumerate(filters)), boxes)
        with temporary("vestnik-shard-") as folder:
            path = folder / "shard"
            write_mapped(path, shard)
            with path.open("rb") as file:
                while piece := file.read(READ_AT_ONCE):
                    yield _rows([(piece, None, None, None)])
        yield _rows([(None, str(len(ids)), None, None)])


def _parsed(id: str | None, text: str | None) -> Filter:
    if id is None or text is None:
        raise WrongValue("a subscription has an id and a filter", None)
    return Filter.parse(text)


def _rows(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, _COMPILED, strict=True)], schema=_COMPILED)


def _new_file() -> Path:
    return _folder() / f"vestnik-{uuid4().hex}.shard"


@lru_cache(maxsize=1)
def _folder() -> Path:
    """Where the driver keeps shards while it runs: Spark fetches them from there when a machine asks."""
    return lasting("vestnik-shards-")


@lru_cache(maxsize=64)
def _opened(path: str) -> Shard:
    shard = read_mapped(path)
    if not isinstance(shard, Shard):
        raise pickle.UnpicklingError(f"{path} holds no subscriptions")
    return shard
