"""Both sides in parts: each event goes to every round of shards, and what the rounds found of it is put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from vestnik.spark import answers
from vestnik.spark.answers import ROW
from vestnik.spark.shards import ShardFile, Subscriptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROUND_NUMBER: Final = "round_"
_FOUND: Final = {
    "pairs": ("subscription_id", "string"),
    "lists": ("subscriptions", "array<string>"),
    "counts": ("matches", "bigint"),
}
_ANSWERS: Final = {"pairs": answers.pairs, "lists": answers.lists, "counts": answers.counts}


def rounds_of(shards: Sequence[ShardFile], room: int) -> list[list[ShardFile]]:
    """The shards in rounds of at most `room` bytes, or of one shard."""
    rounds: list[list[ShardFile]] = []
    left = 0
    for shard in shards:
        if shard.bytes > left:
            rounds.append([])
            left = room
        rounds[-1].append(shard)
        left -= shard.bytes
    return rounds


def in_rounds(
    rows: DataFrame, subscriptions: Subscriptions, paths: Sequence[tuple[str, ...]], result: str, room: int
) -> DataFrame:
    """The answer of `match`, by way of a partition for each round and slice of the events."""
    from pyspark.sql import functions as f

    rounds = rounds_of(subscriptions.shards, room)
    slices = max(1, rows.sparkSession.sparkContext.defaultParallelism)
    numbered = rows.withColumn(ROW, f.monotonically_increasing_id())
    every = f.explode(f.array(*map(f.lit, range(len(rounds)))))
    cell = f.col(ROUND_NUMBER) * slices + f.pmod(f.xxhash64(ROW), f.lit(slices)).cast("int")
    spread = numbered.withColumn(ROUND_NUMBER, every).repartitionById(len(rounds) * slices, cell)
    name, kind = _FOUND[result]
    answer = f"event_source string, event_id string, {name} {kind}, {ROW} bigint"
    found = spread.mapInArrow(_Round(rounds, paths, result), answer)
    if result == "pairs":
        return found.drop(ROW)
    together = f.sum(name) if result == "counts" else f.flatten(f.collect_list(name))
    return found.groupBy(ROW, "event_source", "event_id").agg(together.alias(name)).drop(ROW)


@dataclass(frozen=True)
class _Round:
    """The answers of the round that a partition is for, with the number of the event's row."""

    rounds: list[list[ShardFile]]
    paths: Sequence[tuple[str, ...]]
    result: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in pc.unique(batch.column(ROUND_NUMBER)).to_pylist():
                mine = batch.filter(pc.equal(batch.column(ROUND_NUMBER), number))
                work = answers.Work(self.rounds[number], self.paths, _ANSWERS[self.result])
                yield from work(iter([mine]))
