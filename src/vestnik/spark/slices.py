"""Traces in slices, each with the life of its network (vestnik.verify.cuts says why that is enough).

The life is collected and shipped to all workers. The traffic is sent to slices by owner, many owners to a slice: by the
hash of the owner, and so many slices that each gets about ROOM rows. All that one owner has comes into the same slice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from vestnik.errors import InvalidTrace
from vestnik.spark.schemas import spark_schema
from vestnik.spark.traces import END, UNREADABLE
from vestnik.trace.files import Reader
from vestnik.trace.records import AnyRecord
from vestnik.verify.cuts import LIFE, Owner
from vestnik.verify.histories import History

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ROOM: Final = 100_000
"""Rows of a slice, about, beside the life of the network."""
ORDER: Final = ("clock", "file", "place")
PART: Final = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("cut", pa.string(), nullable=False),
        pa.field("owner", pa.list_(pa.string()), nullable=False),
        pa.field("clock", pa.float64(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),
        pa.field("place", pa.int64(), nullable=False),
        pa.field("record", pa.string(), nullable=False),
    ]
)
"""A record that goes to the slice of an owner, as the rules are cut."""
LINES: Final = pa.schema([PART.field(name) for name in ("run", *ORDER, "record")])
FACTS: Final = {kind.__name__ for kind in LIFE}
TOLD: Final = ("Lost", "Missing")

Line: TypeAlias = tuple[float, int, int, str]
"""A record with its place in the order of its run."""


class Run(NamedTuple):
    """Of one run: the life of its network, how many records there are of each kind, and how many slices to make."""

    life: list[Line]
    counts: Mapping[str, int]
    slices: int
    is_mortal: bool
    is_causal: bool


class Slice(NamedTuple):
    """A part of a trace: its lines, the records on them, and whose they are."""

    lines: list[Line]
    records: list[AnyRecord]
    owners: frozenset[Owner]

    def history(self, settling: float | None = None) -> History:
        return History(self.records, settling, [line[0] for line in self.lines])


Work: TypeAlias = Callable[[str, Slice], Iterable[Mapping[str, Any]]]
"""Makes rows of a slice by a cut, but for the name of the run."""


def runs(trace: DataFrame, room: int = ROOM) -> dict[str, Run]:
    """What there is in the table, for slices of about `room` rows; InvalidTrace where a file could not be read."""
    kinds = _kinds(trace)
    if any(row.op == UNREADABLE for row in kinds):
        wrong = trace.where(f"op = '{UNREADABLE}'").orderBy("run", "file").first()
        assert wrong is not None
        raise InvalidTrace(wrong.node, wrong.place, wrong.record)
    lives = _lives(trace)
    found: dict[str, Run] = {}
    for run, of_run in groupby(sorted(kinds, key=itemgetter("run")), itemgetter("run")):
        records = [row for row in of_run if row.op != END]
        ends = {tuple(line) for row in records for line in (row.first, row.last)}
        life = lives.get(run, set()) | ({min(ends), max(ends)} if ends else set())
        counts = {row.op: row["count"] for row in records}
        is_mortal, is_causal = any(row.expires for row in records), any(row.causes for row in records)
        found[run] = Run(sorted(life), counts, -(-sum(counts.values()) // room) or 1, is_mortal, is_causal)
    return found


def _kinds(trace: DataFrame) -> list[Any]:
    """How many records of each kind there are, the first and the last, and whether events expire and have causes."""
    from pyspark.sql import functions as sf

    line = sf.struct(*ORDER, "record")
    kinds = trace.groupBy("run", "op").agg(
        sf.count("*").alias("count"),
        sf.min(line).alias("first"),
        sf.max(line).alias("last"),
        sf.max("expires").alias("expires"),
        sf.max(sf.size("causes") > 0).alias("causes"),
    )
    return kinds.collect()


def _lives(trace: DataFrame) -> dict[str, set[Line]]:
    """The life of each network: the records of LIFE, and of others what rules ask for across owners.

    These are the first that each client published, and the first message with events that each node was sent, which
    tell that there is such a client and that it is seen what it is sent; and of what was dropped at a node, the last
    before clients were told of losses.
    """
    from pyspark.sql import functions as sf

    line = sf.struct(*ORDER, "record").alias("line")
    facts = trace.where(sf.col("op").isin(FACTS)).select("run", "op", line).collect()
    first = (sf.col("op") == "Published") | ((sf.col("op") == "Sent") & (sf.size("carried") > 0))
    by = trace.where(first).groupBy("run", "op", sf.coalesce("client", "receiver"))
    lives: dict[str, set[Line]] = {}
    for row in [*facts, *by.agg(sf.min(line).alias("line")).collect()]:
        lives.setdefault(row.run, set()).add(tuple(row.line))
    marks: dict[str, list[Line]] = {}
    for row in facts:
        if row.op in TOLD:
            marks.setdefault(row.run, []).append(tuple(row.line))
    if marks:
        dropped = trace.where("op = 'Dropped'").select(*LINES.names)
        for row in dropped.mapInArrow(_LastBefore(marks), spark_schema(LINES)).collect():
            lives[row.run].add(tuple(row[1:]))
    return lives


class _LastBefore:
    """Of what was dropped at each node, the last before each of the marks."""

    def __init__(self, marks: dict[str, list[Line]]) -> None:
        self._marks = {run: sorted(of_run) for run, of_run in marks.items()}

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = Reader()
        last: dict[tuple[str, str, int], Line] = {}
        for batch in batches:
            for run, *line in zip(*(batch.column(name).to_pylist() for name in batch.schema.names), strict=True):
                marks, found = self._marks.get(run, []), tuple(line)
                before = bisect_left(marks, found)
                if before < len(marks):
                    key = run, reader.read(found[-1]).node, before  # type: ignore[union-attr]  # a Dropped record
                    last[key] = max(found, last.get(key, found))
        rows = [(run, *line) for (run, _, _), line in last.items()]
        yield pa.RecordBatch.from_pylist([dict(zip(LINES.names, row, strict=True)) for row in rows], LINES)


def part(rows: DataFrame, cut: str, owner: Column) -> DataFrame:
    """These rows of a trace for the slices of their owners."""
    from pyspark.sql import functions as sf

    return rows.select("run", sf.lit(cut).alias("cut"), owner.alias("owner"), *ORDER, "record")


def each_slice(parts: DataFrame, known: Mapping[str, Run], work: Work, schema: pa.Schema) -> DataFrame:
    """What `work` gives for each slice."""
    from pyspark.sql import functions as sf

    spark = parts.sparkSession
    sizes = spark.createDataFrame([(run, of_run.slices) for run, of_run in known.items()], "run string, slices int")
    numbered = parts.join(sf.broadcast(sizes), "run").withColumn("slice", sf.expr("pmod(xxhash64(owner), slices)"))
    slicing = _Slicing(spark.sparkContext.broadcast({run: of_run.life for run, of_run in known.items()}))

    def task(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        run, cut, _ = (value.as_py() for value in key)
        found = slicing.slice(run, rows)
        return pa.Table.from_pylist([{"run": run, **row} for row in work(cut, found)], schema)

    return numbered.drop("slices").groupBy("run", "cut", "slice").applyInArrow(task, spark_schema(schema))


class _Slicing:
    """Makes slices of rows, in workers."""

    def __init__(self, lives: Any) -> None:
        """`lives` is a broadcast: the life of each run."""
        self._lives = lives
        self._known: tuple[str, dict[Line, AnyRecord]] | None = None

    def slice(self, run: str, rows: pa.Table) -> Slice:
        columns = (rows.column(name).to_pylist() for name in ("owner", *ORDER, "record"))
        owners, lines = set[Owner](), set[Line]()
        for owner, *line in zip(*columns, strict=True):
            owners.add(tuple(owner))
            lines.add(tuple(line))
        life, reader = self._life(run), Reader()
        ordered = sorted(lines | life.keys())
        records = [life[line] if line in life else reader.read(line[-1]) for line in ordered]
        return Slice(ordered, records, frozenset(owners))

    def _life(self, run: str) -> dict[Line, AnyRecord]:
        if self._known is None or self._known[0] != run:
            reader = Reader()
            self._known = run, {line: reader.read(line[-1]) for line in self._lives.value[run]}
        return self._known[1]
