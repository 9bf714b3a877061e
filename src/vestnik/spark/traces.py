"""Traces as a table: one row a record, and one where a life ends.

Within a run, records are in the order of `clock`, `file` and `place`. What the rules are cut by has columns of its own:
the event of a record (`source`, `id`), its stream and number there (`broker`, `stream`, `seq`), what it names as its
`causes`; and of messages what they carry, and over which link. `record` is the line of the file. A life ends with the
row `End`, whose `record` is CUT where that is not its own end; a file that cannot be read, with the row `Unreadable`,
whose `place` is the line, and `record` the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from vestnik.errors import InvalidTrace
from vestnik.model.events import Event
from vestnik.spark.schemas import spark_schema
from vestnik.trace.files import End, parts, to_line
from vestnik.trace.lives import timed
from vestnik.trace.records import AnyRecord, Published, Sent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS: Final = pa.list_(pa.struct([("source", pa.string()), ("id", pa.string())]))
TRACE: Final = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),
        pa.field("place", pa.int64(), nullable=False),
        pa.field("clock", pa.float64(), nullable=False),
        pa.field("node", pa.string(), nullable=False),
        pa.field("op", pa.string(), nullable=False),
        pa.field("client", pa.string()),
        pa.field("source", pa.string()),
        pa.field("id", pa.string()),
        pa.field("broker", pa.string()),
        pa.field("stream", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("expires", pa.bool_()),
        pa.field("causes", KEYS),
        pa.field("sender", pa.string()),
        pa.field("receiver", pa.string()),
        pa.field("carried", KEYS),
        pa.field("record", pa.string(), nullable=False),
    ]
)
END: Final = "End"
UNREADABLE: Final = "Unreadable"
CUT: Final = "cut"
ROWS: Final = 10_000
"""Of one batch."""


def read_traces(
    spark: SparkSession, traces: Mapping[str, Sequence[str | PathLike[str]]] | Sequence[str | PathLike[str]]
) -> DataFrame:
    """The traces in files of JSON lines: those of one run, or by the names of runs.

    Each file is read by one task, as a stream. On a cluster, files are where all machines find them.
    """
    runs = traces if isinstance(traces, Mapping) else {"": traces}
    files = [
        (run, number, fspath(path), Path(path).absolute())
        for run, paths in runs.items()
        for number, path in enumerate(paths)
    ]
    return spark.range(0, len(files), 1, max(1, len(files))).mapInArrow(_Reading(files), spark_schema(TRACE))


class _Reading:
    """What the tasks do: read the files with these numbers."""

    def __init__(self, files: list[tuple[str, int, str, Path]]) -> None:
        self._files = files

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                run, file, name, path = self._files[number]
                with path.open("rb") as lines:
                    yield from trace_batches(lines, name, run, file)


def trace_batches(lines: Iterable[bytes], name: str, run: str = "", file: int = 0) -> Iterator[pa.RecordBatch]:
    """The rows of a file called `name`, which is the one with the number `file` of its run."""
    rows: list[dict[str, Any]] = []
    for row in _rows(lines, name):
        rows.append({"run": run, "file": file, **row})
        if len(rows) == ROWS:
            yield pa.RecordBatch.from_pylist(rows, TRACE)
            rows = []
    yield pa.RecordBatch.from_pylist(rows, TRACE)


def _rows(lines: Iterable[bytes], name: str) -> Iterator[dict[str, Any]]:
    place = count()
    try:
        for begun, clock, part in timed(parts(lines, name)):
            row = {"place": next(place), "clock": clock, "node": begun.node}
            yield row | (_end(part) if isinstance(part, End) else _columns(part))
    except InvalidTrace as error:
        yield {"place": error.line, "clock": 0.0, "node": name, "op": UNREADABLE, "record": error.reason}


def _end(end: End) -> dict[str, Any]:
    return {"op": END, "record": CUT if end.cut else ""}


def _columns(record: AnyRecord) -> dict[str, Any]:
    row: dict[str, Any] = {"op": type(record).__name__, "record": to_line(record).decode().rstrip("\n")}
    row["client"] = getattr(record, "client", None)
    event = getattr(record, "event", None)
    if isinstance(event, Event):
        broker, stream = event.stream or (None, None)
        row |= {"source": event.source, "id": event.id, "broker": broker, "stream": stream, "seq": event.seq}
    match record:
        case Published(event=event):
            row |= {"expires": event.expires is not None, "causes": _keys(event.causes)}
        case Sent(sender=sender, receiver=receiver, events=events):
            row |= {"sender": sender, "receiver": receiver, "carried": _keys(events)}
    return row


def _keys(keys: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"source": source, "id": id} for source, id in keys]
