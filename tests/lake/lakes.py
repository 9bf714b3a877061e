"""Journals as brokers leave them, and what is in a lake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vestnik import Event
from vestnik.journal import Journal, Settings
from vestnik.journal.folders import put_name
from vestnik.journal.identity import identify
from vestnik.lake.layout import Lake
from vestnik.wire.packing import TAKEN, pack_taken

NOON = 1_800_000_000_000_000
HOUR = 3_600_000_000


def quote(n: int, broker: str = "b", **more: Any) -> Event:
    data = {"symbol": f"S{n % 7}", "price": n / 4, "n": n}
    return Event("quote", data, source=f"s{n % 3}", id=str(n), **more).stamped(broker, n + 1)


def write(
    folder: Path, broker: str, events: Iterable[Event | bytes], every: int = 1_000_000, skip: int = 0, **settings: Any
) -> Path:
    """Append to the journal of a broker; each is taken some microseconds after the one before. Bytes are no events.

    Before the first, `skip` positions are left out, as after an unclean end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    put_name(folder, broker)
    with Journal.open(folder / "journal", Settings(**settings)) as journal:
        identify(folder / "journal")
        for event in events:
            payload = event if isinstance(event, bytes) else pack_taken("c", event)
            journal.append([(TAKEN, NOON + journal.last * every, payload)], at=journal.next + skip)
            skip = 0
    return folder


def rows(lake: Path) -> list[dict[str, Any]]:
    """The event table of the latest version."""
    return [row for path in Lake(lake).paths() for row in pq.ParquetFile(path).read().to_pylist()]


def quarantined(lake: Path) -> list[dict[str, Any]]:
    files = Lake(lake).latest().quarantine
    return [row for file in files for row in pq.ParquetFile(lake / file.path).read().to_pylist()]


def content(lake: Path) -> Counter[str]:
    """All that is in a lake, as a multiset."""
    return Counter(map(repr, [*rows(lake), *quarantined(lake)]))


def ids(lake: Path) -> list[int]:
    return sorted(int(row["id"]) for row in rows(lake))


def table(path: str) -> pa.Table:
    return pq.ParquetFile(path).read()
