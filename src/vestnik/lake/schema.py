"""The schemas of the lake: what a row of the event table is, and what one of the quarantine is."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

INSTANT: Final = pa.timestamp("us", tz="UTC")

EVENTS: Final = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("subject", pa.string()),
        pa.field("time", INSTANT),
        pa.field("priority", pa.int8(), nullable=False),
        pa.field("not_before", INSTANT),
        pa.field("expires", INSTANT),
        pa.field("causes", pa.list_(pa.struct([("source", pa.string()), ("id", pa.string())])), nullable=False),
        pa.field("extensions", pa.string()),
        pa.field("data", pa.string(), nullable=False),
        pa.field("broker", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("position", pa.int64()),
        pa.field("taken_by", pa.string()),
        pa.field("taken_at", INSTANT),
    ]
)
"""An event, and where it was taken.

`data` and `extensions` are JSON objects in one line; no extensions are null. `broker` and `seq` are those of the
event's stream. `taken_by` is the broker from whose journal it is, `position` its place there, `taken_at` when it was
written there; all three are null for an event that nobody took yet.
"""

QUARANTINE: Final = pa.schema(
    [
        pa.field("taken_by", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("positions", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("taken_at", INSTANT),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("payload", pa.binary()),
    ]
)
"""Positions of a journal that cannot be read: the first, how many, why, and the bytes of a record that is no event.

`kind` is one of `vestnik.lake.losses.Kind`. `positions` is null if the number is not known. Files that were written
before these two columns existed have null in both.
"""
