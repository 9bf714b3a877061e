"""Other engines on the same data."""

from __future__ import annotations

from typing import Any

import duckdb
import msgspec
import numpy as np
import pyarrow as pa

from benchmarks.columns import batch
from benchmarks.workloads import Stock

JOIN = "FROM events e JOIN filters f ON e.symbol = f.symbol AND e.price BETWEEN f.lo AND f.hi"


class DuckStock:
    """The stock workload as a range join of two tables, in memory and loaded beforehand, on one thread."""

    def __init__(self, stock: Stock) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        names = pa.array(stock.symbols).take(pa.array(stock.symbol))
        filters = {"id": np.arange(len(stock.lo), dtype=np.int32), "symbol": names, "lo": stock.lo, "hi": stock.hi}
        events = pa.table(batch(stock.events)).append_column("id", pa.array(np.arange(len(batch(stock.events)))))
        self._load("filters", pa.table(filters))
        self._load("events", events)

    def _load(self, name: str, table: Any) -> None:
        self._connection.register("source", table)
        self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM source")
        self._connection.unregister("source")

    def counts(self) -> int:
        """Matches of each event; returns their sum."""
        rows = self._connection.execute(f"SELECT e.id, count(*) AS matches {JOIN} GROUP BY e.id").fetchnumpy()
        return int(rows["matches"].sum())

    def pairs(self) -> int:
        """Event and filter of each match; returns how many."""
        rows = self._connection.execute(f"SELECT e.id AS event, f.id AS filter {JOIN}").fetchnumpy()
        return len(rows["event"])


def decode(lines: list[bytes]) -> int:
    """Read whole documents and match nothing: what a reader of everything cannot be faster than."""
    decoder = msgspec.json.Decoder()
    return sum(1 for line in lines if decoder.decode(line))
