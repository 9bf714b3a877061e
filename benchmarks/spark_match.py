"""Matching in bulk on Spark: the compiled matcher, and what plain Spark SQL does with the same tables."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.columns import Numbers, Words, batch
from benchmarks.report import Report, Row
from benchmarks.trees import cpu_of_tree, peak_of_tree
from benchmarks.workloads import Stock, general, stock
from vestnik import Event
from vestnik.lake.rows import batch_of
from vestnik.lake.schema import EVENTS
from vestnik.spark import session
from vestnik.spark.match import Subscriptions, chosen, compile_subscriptions, match

GIB = 1 << 30


class WrongAnswer(Exception):
    """`ours` pairs were found where there are `truth`: there is no figure to print."""

    def __init__(self, ours: int, truth: int) -> None:
        super().__init__(ours, truth)


class Scale(NamedTuple):
    events: int
    subscriptions: int
    general_events: int
    general_subscriptions: int
    repeat: int


FULL = Scale(1_000_000, 100_000, 1_000_000, 10_000, 3)
QUICK = Scale(2_000, 500, 500, 200, 1)


@cache
def spark() -> Any:
    """A session whose Java compiles what runs long as well as it can: that is to the good of the peer."""
    conf = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4"}
    return session("local[2]", "bench", **conf)


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


class Timed(NamedTuple):
    seconds: float
    spread: float


def timed(call: Callable[[], object], repeat: int) -> Timed:
    """CPU seconds of the process tree, after one run to warm up."""
    call()
    found = []
    for _ in range(repeat):
        start = cpu_of_tree()
        call()
        found.append(max(cpu_of_tree() - start, 0.01))
    return Timed(median(found), (max(found) - min(found)) / median(found))


def matched(events: Any, wanted: Subscriptions, result: str, plan: str | None = None) -> None:
    run_through(match(events, wanted, result, plan=plan))


def run_through(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def events_of(workload: Stock, name: str) -> Any:
    """The event table of a stock workload, in Parquet."""
    names, prices = (workload.events[path].arrow() for path in ("symbol", "price"))
    count = len(prices)
    data = pc.binary_join_element_wise('{"symbol":"', names, '","price":', pc.cast(prices, pa.string()), "}", "")
    columns: dict[str, Any] = {
        **{field.name: pa.nulls(count, field.type) for field in EVENTS},
        "source": pa.repeat("exchange", count),
        "id": pc.cast(pa.array(np.arange(count)), pa.string()),
        "type": pa.repeat("market.quote", count),
        "priority": pa.array(np.full(count, 4, np.int8)),
        "causes": pa.array([[]], EVENTS.field("causes").type).take(pa.array(np.zeros(count, np.int32))),
        "data": data,
    }
    return stored(pa.table(columns, schema=EVENTS), name)


def stored(table: pa.Table, name: str) -> Any:
    path = Path(folder().name) / name
    path.mkdir()
    half = -(-len(table) // 2)
    for part in range(2):  # one for each core
        pq.write_table(table.slice(part * half, half), path / f"{part}.parquet")
    return spark().read.parquet(str(path))


def subscriptions_of(texts: Iterable[object], name: str) -> Any:
    lines = list(map(str, texts))
    return stored(pa.table({"id": [f"s{n}" for n in range(len(lines))], "filter": lines}), name)


def check_counts(counts: Any, workload: Stock) -> None:
    """WrongAnswer unless `counts` add up to the pairs of `workload`, found by bisection in the bounds by symbol."""
    words, numbers = workload.events["symbol"], workload.events["price"]
    assert isinstance(words, Words) and isinstance(numbers, Numbers)
    truth = 0
    for code in range(len(workload.symbols)):
        prices, mine = numbers.values[words.codes == code], workload.symbol == code
        begun = np.searchsorted(np.sort(workload.lo[mine]), prices, side="right")
        ended = np.searchsorted(np.sort(workload.hi[mine]), prices, side="left")
        truth += int((begun - ended).sum())
    found = counts.selectExpr("sum(matches)").first()[0]
    if found != truth:
        raise WrongAnswer(found, truth)


@cache
def stocks(events: int, subscriptions: int, symbols: int) -> tuple[Any, Any, Stock]:
    workload = stock(subscriptions, events, symbols)
    name = f"{events}x{subscriptions}x{symbols}"
    return events_of(workload, f"events{name}"), subscriptions_of(workload.filters(), f"subs{name}"), workload


@cache
def compiled(events: int, subscriptions: int, symbols: int) -> Subscriptions:
    return compile_subscriptions(stocks(events, subscriptions, symbols)[1])


@cache
def peer(scale: Scale) -> Any:
    """Spark SQL's own way, given the bounds of subscriptions as columns of numbers."""
    events, _, workload = stocks(scale.events, scale.subscriptions, 1_000)
    symbols = pa.array(workload.symbols).take(pa.array(workload.symbol))
    ids = [f"s{n}" for n in range(len(workload.lo))]
    bounds = stored(pa.table({"subscription_id": ids, "s": symbols, "lo": workload.lo, "hi": workload.hi}), "bounds")
    read = events.selectExpr("source event_source", "id event_id", "from_json(data, 'symbol string, price double') d")
    return read.join(bounds.hint("broadcast"), bounds.s == read.d.symbol).where("d.price BETWEEN lo AND hi")


def match_counts(report: Report, _: object) -> None:
    scale = QUICK if report.quick else FULL
    events, _, workload = stocks(scale.events, scale.subscriptions, 1_000)
    start = cpu_of_tree()
    wanted = compiled(scale.events, scale.subscriptions, 1_000)
    took = cpu_of_tree() - start
    case = f"{len(wanted):,} subscriptions"
    report.add(
        Row("match-counts", f"compile {case}", took, "CPU s", note=f"{sum(s.bytes for s in wanted.shards):,} bytes")
    )
    sql = peer(scale).groupBy("event_source", "event_id").count()
    for counts in (match(events, wanted, "counts"), sql.withColumnRenamed("count", "matches")):
        check_counts(counts, workload)
    ours = timed(lambda: run_through(match(events, wanted, "counts")), scale.repeat)
    theirs = timed(lambda: run_through(sql), scale.repeat)
    ratio = theirs.seconds / ours.seconds
    report.add(
        Row("match-counts", f"{scale.events:,} events", ours.seconds, "CPU s", ours.spread, theirs.seconds, ratio, 2.0,
            of_ratio=True, note="peer: Spark SQL, join and group by")
    )  # fmt: skip


def match_pairs(report: Report, _: object) -> None:
    scale = QUICK if report.quick else FULL
    events, _, _ = stocks(scale.events, scale.subscriptions, 1_000)
    wanted = compiled(scale.events, scale.subscriptions, 1_000)
    plan = chosen(wanted, streaming=False)
    other = next(one for one in ("join", "passes") if one != plan)
    ours = timed(lambda: run_through(match(events, wanted, plan=plan)), scale.repeat)
    theirs = timed(lambda: run_through(match(events, wanted, plan=other)), scale.repeat)
    row = Row("match-pairs", f"plan {plan}", ours.seconds, "CPU s", ours.spread, theirs.seconds)
    report.add(row_with(row, ours.seconds / theirs.seconds, 1.2, note=f"peer: plan {other}"))
    sql = timed(lambda: run_through(peer(scale).select("event_source", "event_id", "subscription_id")), scale.repeat)
    row = Row("match-pairs", f"plan {plan} and Spark SQL's", ours.seconds, "CPU s", ours.spread, sql.seconds)
    report.add(row_with(row, ours.seconds / sql.seconds, None, note="peer: join of bounds as numbers"))


def row_with(row: Row, ratio: float, target: float | None, note: str) -> Row:
    return Row(row.section, row.case, row.ours, row.unit, row.spread, row.peer, ratio, target, True, True, note)


def match_general(report: Report, _: object) -> None:
    scale = QUICK if report.quick else FULL
    events = general_events(scale.general_events)
    for mix in ("selective", "general"):
        texts = [_nested(str(one)) for one in general(scale.general_subscriptions, 0, mix).filters]
        wanted = compile_subscriptions(subscriptions_of(texts, f"general-subs-{mix}"))
        for result in ("counts", "pairs"):
            took = timed(partial(matched, events, wanted, result), scale.repeat)
            rate = scale.general_events / took.seconds
            target = 100_000 if (mix, result) == ("selective", "counts") else None
            report.add(Row("match-general", f"{mix}, {result}", rate, "events/CPU s", took.spread, target=target))


def general_events(count: int) -> Any:
    """The event table of a general workload, whose events are the same whatever the filters are."""
    columns = batch(general(0, count).events)
    batches = []
    for at in range(0, count, 10_000):
        rows = enumerate(columns.slice(at, 10_000).to_pylist(), at)
        batches.append(batch_of([Event("t", _nested_data(row), source="s", id=str(n)) for n, row in rows]))
    return stored(pa.Table.from_batches(batches), "general")


NESTED = ("n0", "n1", "n2", "n3", "n4")
"""Numbers that are one level down."""


def _nested_data(row: dict[str, Any]) -> dict[str, Any]:
    """What is not null; some of it below `order`."""
    there = {name: value for name, value in row.items() if value is not None}
    below = {name: there.pop(name) for name in NESTED if name in there}
    return {"order": below, **there}


def _nested(text: str) -> str:
    for name in NESTED:
        text = text.replace(f"{name} ", f"order.{name} ")
    return text


def match_growth(report: Report, _: object) -> None:
    scale = QUICK if report.quick else FULL
    half = timed(_counting(scale.events // 2, scale.subscriptions), scale.repeat)
    full = timed(_counting(scale.events, scale.subscriptions), scale.repeat)
    row = Row("match-growth", "twice the events", full.seconds, "CPU s", full.spread, half.seconds)
    report.add(row_with(row, full.seconds / half.seconds, 2.1, "peer: half of them"))
    few = timed(_counting(scale.events, scale.subscriptions // 10, 100), scale.repeat)
    row = Row("match-growth", "ten times the subscriptions", full.seconds, "CPU s", full.spread, few.seconds)
    report.add(row_with(row, full.seconds / few.seconds, 2.0, "peer: a tenth, of a tenth of the symbols"))


def _counting(events: int, subscriptions: int, symbols: int = 1_000) -> Callable[[], None]:
    table, wanted = stocks(events, subscriptions, symbols)[0], compiled(events, subscriptions, symbols)
    return lambda: run_through(match(table, wanted, "counts"))


def match_large(report: Report, _: object) -> None:
    scale = QUICK if report.quick else FULL
    with peak_of_tree() as peak:
        start = cpu_of_tree()
        table, texts, workload = stocks(scale.events, 10 * scale.subscriptions, 1_000)
        made = cpu_of_tree()
        wanted = compile_subscriptions(texts)
        ready = cpu_of_tree()
        run_through(match(table, wanted, "counts"))
        done = cpu_of_tree()
        check_counts(match(table, wanted, "counts"), workload)
    case = f"{len(wanted):,} x {scale.events:,}"
    took = f"data {made - start:.0f} s, compile {ready - made:.0f} s, match {done - ready:.0f} s"
    report.add(
        Row(
            "match-large",
            case,
            peak() / GIB,
            "GiB",
            target=8,
            at_most=True,
            note=f"{len(wanted.shards)} shards, {took}",
        )
    )


SECTIONS = {
    "match-counts": match_counts,
    "match-pairs": match_pairs,
    "match-general": match_general,
    "match-growth": match_growth,
    "match-large": match_large,
}
