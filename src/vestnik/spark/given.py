"""Whether the traces that are given can be checked as one run (vestnik.trace.given has the rules)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vestnik.spark.traces import END
from vestnik.trace.files import Reader
from vestnik.trace.given import check_complete, check_once
from vestnik.trace.records import Restarted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_given(trace: DataFrame, names: Sequence[str]) -> None:
    """Raise RepeatedTrace or MissingTrace if the files with these `names`, all of one run, have that fault."""
    reader = Reader()
    rows = trace.where("node != '' AND op IN ('Restarted', 'Linked', 'Quiet')").orderBy("file", "place")
    facts = [(names[row.file], reader.read(row.record)) for row in rows.select("file", "record").collect()]
    check_once((name, fact) for name, fact in facts if isinstance(fact, Restarted))
    nodes = trace.where(f"op = '{END}'").select("node").distinct().collect()
    accepting = trace.where("op = 'Notified' AND broker IS NOT NULL AND seq IS NOT NULL").select("broker").distinct()
    traced = {row.node for row in nodes}
    check_complete(traced, (fact for _, fact in facts), {row.broker for row in accepting.collect()})
