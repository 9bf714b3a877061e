"""Events as rows of the event table: column by column, of events or of the records of a journal.

The JSON of all rows is written in one call: each object is a line, since JSON has no line break inside a string.
`vestnik.lake.events` is the way back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import json, msgpack

from vestnik.journal import Record
from vestnik.lake.losses import Kind, Loss, kind_of
from vestnik.lake.schema import EVENTS, INSTANT, QUARANTINE
from vestnik.model.envelope import MEDIUM, Pairs
from vestnik.model.events import Event, Seldom
from vestnik.wire.leaves import columns_of
from vestnik.wire.messages import Page, Taken, Unread
from vestnik.wire.packing import TAKEN, UNREADABLE, unpack_taken

CHUNK: Final = 4096
"""Events that are best handled at once: they fit into the processor's cache."""

_encoder = json.Encoder()
_CAUSES = EVENTS.field("causes").type
_ORDINARY = Seldom()
_decode_taken = msgpack.Decoder(tuple[str, Event]).decode


class Unreadable(NamedTuple):
    """Positions of a journal that cannot be read, from `position` on: since when, why, and the bytes of a record.

    `positions` is None if how many they are is not known.
    """

    position: int
    time: int | None
    reason: str
    payload: bytes | None
    kind: Kind = Kind.NO_EVENT
    positions: int | None = 1

    def loss(self, broker: str) -> Loss:
        """Return what is lost by it of the journal of `broker`."""
        last = None if self.positions is None else self.position + self.positions - 1
        return Loss(broker, self.kind, self.position, last, self.positions)


def batch_of(events: Sequence[Event]) -> pa.RecordBatch:
    """The rows of events that nobody took."""
    places = [pa.nulls(len(events), EVENTS.field(name).type) for name in ("position", "taken_by", "taken_at")]
    return pa.record_batch([*_columns(events), *places], schema=EVENTS)


def batch_of_taken(taken: Sequence[Taken], taken_by: str) -> pa.RecordBatch:
    """The rows of what the broker `taken_by` took."""
    events = [one.event for one in taken]
    return _taken(events, [one.position for one in taken], [one.time for one in taken], taken_by)


def batch_of_records(records: Sequence[Record], taken_by: str) -> tuple[pa.RecordBatch, list[Unreadable]]:
    """The rows of records from the journal of `taken_by`, and the records that hold no event.

    What is held until its time comes is passed over: it is recorded again, with its number, when it is let go.
    """
    bad: list[Unreadable] = []
    batches = [_read(records[at : at + CHUNK], taken_by, bad) for at in range(0, len(records), CHUNK)]
    return (pa.concat_batches(batches) if batches else batch_of_taken((), taken_by)), bad


def batch_of_page(page: Page, taken_by: str) -> tuple[pa.RecordBatch, list[Unreadable]]:
    """Return the rows of a page from the journal of `taken_by`, and what should be on it and cannot be read."""
    positions, times, events, unread = columns_of(page)
    return _taken(events, positions, times, taken_by), [unreadable(one) for one in unread]


def unreadable(one: Unread) -> Unreadable:
    """Return what cannot be read as one row of the quarantine, at its first position."""
    several = "" if one.first == one.last else f"up to position {one.last}: "
    count = one.last - one.first + 1
    return Unreadable(one.first, one.time, several + one.reason, one.payload or None, kind_of(one), count)


def quarantine_of(bad: Sequence[Unreadable], taken_by: str) -> pa.RecordBatch:
    """The rows of what could not be read in the journal of `taken_by`."""
    columns = [
        _same(taken_by, pa.string(), len(bad)),
        pa.array([one.position for one in bad], pa.int64()),
        pa.array([one.positions for one in bad], pa.int64()),
        pa.array([one.kind.value for one in bad], pa.string()),
        pa.array([one.time for one in bad], INSTANT),
        pa.array([one.reason for one in bad], pa.string()),
        pa.array([one.payload for one in bad], pa.binary()),
    ]
    return pa.record_batch(columns, schema=QUARANTINE)


def _read(records: Sequence[Record], taken_by: str, bad: list[Unreadable]) -> pa.RecordBatch:
    events: list[Event] = []
    positions: list[int] = []
    times: list[int] = []
    for record in records:
        if record.kind != TAKEN:
            continue
        try:
            event = _decode_taken(record.payload)[1]
        except UNREADABLE:
            try:
                event = unpack_taken(record.payload)[1]
            except UNREADABLE as error:
                bad.append(Unreadable(record.position, record.time, f"it holds no event: {error}", record.payload))
                continue
        if event.seq is not None:
            events.append(event)
            positions.append(record.position)
            times.append(record.time)
    return _taken(events, positions, times, taken_by)


def _taken(events: Sequence[Event], positions: Sequence[int], times: Sequence[int], taken_by: str) -> pa.RecordBatch:
    places = [pa.array(positions, pa.int64()), _same(taken_by, pa.string(), len(events)), pa.array(times, INSTANT)]
    return pa.record_batch([*_columns(events), *places], schema=EVENTS)


def _columns(events: Sequence[Event]) -> list[pa.Array]:
    """The columns up to `seq`."""
    return [
        _texts([event.source for event in events]),
        _texts([event.id for event in events]),
        _texts([event.type for event in events]),
        *_seldom_columns(events),
        _lines([event.body for event in events]),
        _texts([event.broker for event in events]),
        pa.array([event.seq for event in events], pa.int64()),
    ]


def _seldom_columns(events: Sequence[Event]) -> list[pa.Array]:
    """From `subject` to `extensions`; mostly there is nothing in them."""
    count = len(events)
    found = [event.seldom for event in events]
    if found.count(None) == count:
        nothing, never = pa.nulls(count, pa.string()), pa.nulls(count, INSTANT)
        return [nothing, never, _same(MEDIUM, pa.int8(), count), never, never, _no_causes(count), nothing]
    seldoms = [seldom or _ORDINARY for seldom in found]
    return [
        _texts([seldom.subject for seldom in seldoms]),
        pa.array([seldom.time for seldom in seldoms], INSTANT),
        pa.array([seldom.priority for seldom in seldoms], pa.int8()),
        pa.array([seldom.not_before for seldom in seldoms], INSTANT),
        pa.array([seldom.expires for seldom in seldoms], INSTANT),
        _causes([seldom.causes for seldom in seldoms]),
        _texts([_encoder.encode(said).decode() if (said := seldom.extensions) else None for seldom in seldoms]),
    ]


def _texts(values: list[str] | list[str | None]) -> pa.Array:
    return pa.array(values, pa.string())


def _same(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)


def _lines(objects: Iterable[Any]) -> pa.Array:
    """Each as JSON."""
    lines = pa.array([_encoder.encode_lines(objects)], pa.string())
    return pc.split_pattern(lines, "\n").flatten()[:-1]


def _causes(causes: list[Pairs]) -> pa.Array:
    if not any(causes):
        return _no_causes(len(causes))
    return pa.array([[{"source": source, "id": id} for source, id in some] for some in causes], _CAUSES)


def _no_causes(count: int) -> pa.Array:
    return pa.ListArray.from_arrays(_same(0, pa.int32(), count + 1), pa.array([], _CAUSES.value_type))
