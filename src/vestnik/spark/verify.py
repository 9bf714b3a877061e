"""Is what happened right, for traces of any length: the rules of vestnik.verify over slices of the trace.

    trace = read_traces(spark, ["b1.jsonl", "b2.jsonl"])
    violations(trace)       run, at, rule, said, client, subscription, event, records
    latency(trace)          run, scope, name, deliveries, p50, p90, p99, max
    useless(trace)          run, sender, receiver, copies, useless

A table may hold many runs; each is judged by itself. Workers run the functions that `vestnik check` runs, on slices of
the trace, so both say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from vestnik.matching import Matcher
from vestnik.model.events import Event
from vestnik.spark.schemas import spark_schema
from vestnik.spark.slices import LINES, ORDER, PART, Line, Run, Slice, each_slice, part, runs
from vestnik.trace.files import Reader, to_line
from vestnik.trace.records import Dropped, Published, Subscribed
from vestnik.verify.cuts import CUTS, Demands, Owner, judged, place
from vestnik.verify.kept import unmet
from vestnik.verify.latency import RANKS, SCOPES, deliveries
from vestnik.verify.safety import ALWAYS
from vestnik.verify.useless import copies
from vestnik.verify.violations import Violation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TEXT: Final = pa.string()
VIOLATIONS: Final = pa.schema(
    [
        pa.field("run", TEXT, nullable=False),
        pa.field("at", pa.float64(), nullable=False),
        pa.field("rule", TEXT, nullable=False),
        pa.field("said", TEXT, nullable=False),
        pa.field("client", TEXT, nullable=False),
        pa.field("subscription", TEXT, nullable=False),
        pa.field("event", TEXT),
        pa.field("records", pa.list_(TEXT), nullable=False),
    ]
)
"""`event` is JSON, and `records` are lines of the trace; `at` is the time of the last of them."""
DELIVERIES: Final = pa.schema([("run", TEXT), ("client", TEXT), ("broker", TEXT), ("seconds", pa.float64())])
COPIES: Final = pa.schema([("run", TEXT), ("sender", TEXT), ("receiver", TEXT), ("is_needed", pa.bool_())])
EVENTFUL: Final = ("Published", "Acknowledged", "Rejected", "Notified", "Dropped")
ACCURACY: Final = 10_000
"""Percentiles are exact up to so many deliveries, and beyond right by one in so many."""


def violations(
    trace: DataFrame,
    *,
    settling: float | None = None,
    since: float = ALWAYS,
    advertisements: bool = False,
    stored: bool = False,
    known: Mapping[str, Run] | None = None,
) -> DataFrame:
    """What is wrong: the rows are what `check_trace` finds, for each run. InvalidTrace where a file cannot be read.

    `known` is what `runs(trace)` gives, where that was asked before.
    """
    known = runs(trace) if known is None else known
    demands = Demands(settling, since, advertisements, stored)
    places = _by_place(trace, stored=stored)
    parts = [_by_event(trace, known), places, _by_client(trace)]
    if any(run.is_causal for run in known.values()):
        parts.append(_by_cause(trace))
    if stored:
        parts.append(each_slice(places, known, partial(_unmet, demands), PART))
        published = trace.where("op = 'Published'").select(*LINES.names)
        parts.append(published.mapInArrow(_Replayed(known), spark_schema(PART)))
    return each_slice(_union(parts), known, partial(_judged, demands), VIOLATIONS)


def violation_of(row: Any) -> Violation:
    """The violation that a row of VIOLATIONS tells of."""
    event = None if row.event is None else Event.from_json(row.event)
    records = tuple(map(Reader().read, row.records))
    return Violation(row.rule, row.said, row.client, row.subscription, event, records)


def latency(trace: DataFrame, *, known: Mapping[str, Run] | None = None) -> DataFrame:
    """How long events took to clients: of all, of the clients at each broker, and of each client."""
    from pyspark.sql import functions as sf

    known = runs(trace) if known is None else known
    rows = part(trace.where("op IN ('Published', 'Notified')"), "event", _owner("source", "id"))
    found = each_slice(rows, known, _deliveries, DELIVERIES)
    columns = zip(SCOPES, (sf.lit(""), sf.col("broker"), sf.col("client")), strict=True)
    named = [sf.struct(sf.lit(scope).alias("scope"), column.alias("name")) for scope, column in columns]
    ranks = sf.percentile_approx("seconds", list(RANKS), ACCURACY)
    return (
        found.select("run", sf.explode(sf.array(*named)).alias("of"), "seconds")
        .groupBy("run", "of.scope", "of.name")
        .agg(sf.count("*").alias("deliveries"), ranks.alias("ranks"), sf.max("seconds").alias("max"))
        .selectExpr("run", "scope", "name", "deliveries", "ranks[0] p50", "ranks[1] p90", "ranks[2] p99", "max")
    )


def useless(trace: DataFrame, *, known: Mapping[str, Run] | None = None) -> DataFrame:
    """By link between brokers, how many copies of events it carried, and how many that nobody behind it needed."""
    known = runs(trace) if known is None else known
    rows = part(trace.where("op IN ('Published', 'Notified')"), "event", _owner("source", "id"))
    found = each_slice(_union([rows, _sent(trace)]), known, _copies, COPIES)
    return found.groupBy("run", "sender", "receiver").agg(*_counts())


def _counts() -> tuple[Any, Any]:
    from pyspark.sql import functions as sf

    return sf.count("*").alias("copies"), sf.count_if(~sf.col("is_needed")).alias("useless")


# --- who gets what ---


def _by_event(trace: DataFrame, known: Mapping[str, Run]) -> DataFrame:
    """What tells of an event; of messages, those with events that expire."""
    rows = part(trace.where(f"op IN {EVENTFUL}"), "event", _owner("source", "id"))
    if not any(run.is_mortal for run in known.values()):
        return rows
    mortal = trace.where("expires").selectExpr("run", "array(source, id) AS owner").distinct()
    return rows.unionByName(_sent(trace).join(mortal, ["run", "owner"], "left_semi"))


def _sent(trace: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sf

    rows = trace.where("op = 'Sent'").withColumn("key", sf.explode("carried"))
    return part(rows, "event", _owner("key.source", "key.id"))


def _by_place(trace: DataFrame, *, stored: bool) -> DataFrame:
    """What tells of a place in a stream, and what was published there just before."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    of_stream = Window.partitionBy("run", "broker", "stream").orderBy(*ORDER)
    rows = trace.where("op IN ('Published', 'Notified', 'Dropped')" if stored else "op IN ('Published', 'Notified')")
    rows = rows if stored else rows.where("stream IS NOT NULL")
    before = trace.where("op = 'Published' AND seq IS NOT NULL").withColumn("seq", sf.lead("seq").over(of_stream))
    of = _owner("broker", "stream", "seq")
    return part(rows, "place", of).unionByName(part(before.where("seq IS NOT NULL"), "place", of))


def _by_client(trace: DataFrame) -> DataFrame:
    return part(trace.where("op IN ('Notified', 'Lost', 'Missing')"), "client", _owner("client"))


def _by_cause(trace: DataFrame) -> DataFrame:
    """What tells of a cause, and of its effects."""
    from pyspark.sql import functions as sf

    rows = trace.where("op IN ('Published', 'Notified', 'Dropped')")
    named = trace.select("run", "source", "id", sf.explode("causes").alias("cause")).distinct()
    causes = named.selectExpr("run", "cause.source", "cause.id").distinct()
    own = part(rows.join(causes, ["run", "source", "id"], "left_semi"), "cause", _owner("source", "id"))
    effects = rows.join(named, ["run", "source", "id"])
    return own.unionByName(part(effects, "cause", _owner("cause.source", "cause.id")))


def _owner(*columns: str) -> Any:
    from pyspark.sql import functions as sf

    return sf.array(*(sf.col(column).cast("string") for column in columns))


def _union(parts: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), parts)


# --- what workers do with a slice ---


def _judged(demands: Demands, cut: str, found: Slice) -> Iterator[dict[str, Any]]:
    """The violations in a slice."""
    for violation in judged(CUTS[cut], found.history(demands.settling), demands, found.owners):
        yield violation._asdict() | {
            "at": violation.records[-1].at,
            "event": None if violation.event is None else violation.event.to_json(),
            "records": [to_line(record).decode().rstrip("\n") for record in violation.records],
        }


def _unmet(demands: Demands, cut: str, found: Slice) -> Iterator[dict[str, Any]]:
    """What was published at the places of a slice, or dropped, for the clients that it did not reach."""
    missed: dict[Owner, set[str]] = {}
    for claim in unmet(found.history(demands.settling), demands.since, advertisements=demands.advertisements):
        published = found.records[claim.number]
        assert isinstance(published, Published)
        missed.setdefault(place(published.event), set()).add(claim.span.client)
    for line, record in zip(found.lines, found.records, strict=True):
        if isinstance(record, Published | Dropped) and place(record.event) in found.owners:
            yield from _for_clients(line, missed.get(place(record.event), ()))


def _for_clients(line: Line, clients: Iterable[str]) -> Iterator[dict[str, Any]]:
    """A part for the slice of each client."""
    for client in sorted(clients):
        yield {"cut": "client", "owner": [client], **dict(zip((*ORDER, "record"), line, strict=True))}


def _deliveries(cut: str, found: Slice) -> Iterator[dict[str, Any]]:
    """How long the events of a slice took."""
    return (delivery._asdict() for delivery in deliveries(found.history(), found.owners))


def _copies(cut: str, found: Slice) -> Iterator[dict[str, Any]]:
    """Which copies of the events of a slice were needed."""
    return (copy._asdict() for copy in copies(found.history(), found.owners))


class _Replayed:
    """What was published, for the clients who asked for such a past."""

    def __init__(self, known: Mapping[str, Run]) -> None:
        reader = Reader()
        self._asked: dict[str, Matcher[tuple[str, int]]] = {}
        for run, of_run in known.items():
            for number, line in enumerate(of_run.life):
                record = reader.read(line[-1])
                if isinstance(record, Subscribed) and record.replay is not None:
                    self._asked.setdefault(run, Matcher()).add((record.client, number), record.filter)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = Reader()
        for batch in batches:
            given: list[dict[str, Any]] = []
            for run, *line in zip(*(batch.column(name).to_pylist() for name in batch.schema.names), strict=True):
                if run in self._asked:
                    record = reader.read(line[-1])
                    assert isinstance(record, Published)
                    clients = {client for client, _ in self._asked[run].match(record.event)}
                    given += [{"run": run, **row} for row in _for_clients(tuple(line), clients)]
            yield pa.RecordBatch.from_pylist(given, PART)
