"""Traces on Spark: what is wrong, how long events took and which copies were useless, as found in memory."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest

from verify.runs import ACROSS, in_files, traces
from vestnik.spark.slices import Run, runs
from vestnik.spark.traces import trace_batches
from vestnik.spark.verify import latency, useless, violation_of, violations
from vestnik.trace.files import to_lines
from vestnik.trace.lives import read_lives, together
from vestnik.trace.records import AnyRecord
from vestnik.verify.histories import History
from vestnik.verify.latency import deliveries
from vestnik.verify.latency import latency as latency_in_memory
from vestnik.verify.traces import check_trace
from vestnik.verify.useless import copies
from vestnik.verify.useless import useless as useless_in_memory
from vestnik.verify.violations import Violation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOM = 400
"""Rows of a slice: few, so that even small traces are cut."""
MANY = 50
"""Slices, so that each owner has its own."""


class Traces(NamedTuple):
    """Many runs, in memory and as a table."""

    records: dict[str, list[AnyRecord]]
    table: DataFrame
    known: dict[str, Run]


@pytest.fixture(scope="module")
def many(spark: SparkSession) -> Traces:
    records: dict[str, list[AnyRecord]] = {}
    batches: list[pa.RecordBatch] = []
    for number, (name, found) in enumerate(traces()):
        files = {name: [list(to_lines(found))]}
        if number % 4 == 0:
            files[f"{name}, in files"] = in_files(found, Random(number))
        for run, of_run in files.items():
            records[run] = together(life for lines in of_run for life in read_lives(lines))
            for file, lines in enumerate(of_run):
                batches += trace_batches(lines, run, run, file)
    table = spark.createDataFrame(pa.Table.from_batches(batches)).cache()
    known = runs(table, ROOM)
    return Traces(records, table, known | {run: known[run]._replace(slices=MANY) for run in ACROSS})


ALWAYS = {
    "published", "active", "matching", "once", "streams", "fifo", "causal", "numbers", "timely", "presence", "losses",
    "liveness",
}  # fmt: skip


@pytest.mark.parametrize(
    ("demands", "rules"),
    [
        ({"since": 0.5}, ALWAYS),
        (
            {"stored": True, "advertisements": True, "settling": 1.0},
            ALWAYS | {"kept", "acknowledged", "replays", "admission"},
        ),
    ],
    ids=["some", "all"],
)
def test_violations_are_those_found_in_memory(many: Traces, demands: dict[str, Any], rules: set[str]) -> None:
    found: dict[str, Counter[Violation]] = {}
    for row in violations(many.table, **demands, known=many.known).collect():
        violation = violation_of(row)
        assert row.at == violation.records[-1].at
        found.setdefault(row.run, Counter())[violation] += 1
    for run, records in many.records.items():
        assert found.get(run, Counter()) == Counter(check_trace(records, **demands)), run
    assert {violation.rule for of_run in found.values() for violation in of_run} == rules


def test_latency_is_that_found_in_memory(many: Traces) -> None:
    found: dict[str, dict[tuple[str, str], tuple[Any, ...]]] = {}
    for row in latency(many.table, known=many.known).collect():
        found.setdefault(row.run, {})[row.scope, row.name] = row[3:]
    for run, records in many.records.items():
        assert found.get(run, {}) == latency_in_memory(deliveries(History(records))), run
    assert len(found) > 50


def test_useless_copies_are_those_found_in_memory(many: Traces) -> None:
    found: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}
    for row in useless(many.table, known=many.known).collect():
        found.setdefault(row.run, {})[row.sender, row.receiver] = row[3:]
    for run, records in many.records.items():
        assert found.get(run, {}) == useless_in_memory(copies(History(records))), run
    assert sum(useless for of_run in found.values() for _, useless in of_run.values()) > 0, "some links carry too much"
