"""The past from a lake: the last so many, those since a time, the latest by a key, or all, of what a filter wants.

    for taken in replayed(Lake("lake"), "symbol = 'ACME'", Replay(last=100)):
        ...

It is what brokers would give that had forgotten nothing: each event once, each stream in its order, between streams by
time, and none before its causes. Files that cannot have any of it are not opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vestnik.lake.events import taken_of
from vestnik.lake.journals import as_wanted
from vestnik.lake.layout import Lake, reading
from vestnik.lake.manifest import DataFile, Manifest
from vestnik.lake.order import merge, rank_of
from vestnik.lake.schema import EVENTS
from vestnik.model.envelope import Pair
from vestnik.model.filters import Filter
from vestnik.recovery.selection import Selection
from vestnik.wire.messages import Taken
from vestnik.wire.replays import Replay

ROWS: Final = 4096
"""That are looked at together."""


def replayed(
    lake: Lake, wanted: Filter | str | Sequence[Filter], replay: Replay, version: Manifest | None = None
) -> list[Taken]:
    """What any of the filters wants, as `replay` says, in order; of the latest version, or of one that is given."""
    filters = tuple([as_wanted(wanted)] if isinstance(wanted, Filter | str) else wanted)
    files = _candidates(lake.latest() if version is None else version, filters, replay)
    find = _all if replay.bound is None or replay.latest_by is not None else _last
    found = find(lake, files, filters, replay)
    selection, by_event = Selection((Filter.all(),), replay), dict[int, Taken]()
    for taken in _in_order(found):
        by_event[id(taken.event)] = taken
        selection.take(taken.event, taken.time)
    return [by_event[id(event)] for event, _ in selection.found()]


def _candidates(version: Manifest, filters: Sequence[Filter], replay: Replay) -> list[DataFile]:
    """Files that may have some of it: those of types and times that are asked for."""
    types = {file.type for file in version.events}
    wanted = {type for type in types if any(filter.overlaps(_of_type(type)) for filter in filters)}
    return [
        file for file in version.events if file.type in wanted and (replay.since is None or file.last >= replay.since)
    ]


def _of_type(type: str) -> Filter:
    return Filter.parse("type = " + "'" + type.replace("'", "''") + "'", limits=None)


def _all(lake: Lake, files: Iterable[DataFile], filters: tuple[Filter, ...], replay: Replay) -> list[Taken]:
    selection = Selection(filters, Replay(since=replay.since, all=True))
    return [
        taken
        for file in files
        for taken in _rows(lake.folder / file.path, replay.since)
        if selection.wants(taken.event, taken.time)
    ]


def _last(lake: Lake, files: Iterable[DataFile], filters: tuple[Filter, ...], replay: Replay) -> list[Taken]:
    """The last so many by time, from the latest file on, until those that are left are older than all of them."""
    selection = Selection(filters, Replay(since=replay.since, all=True))
    bound, found, least = replay.bound or 0, list[Taken](), replay.since
    for file in sorted(files, key=lambda file: file.last, reverse=True):
        if len(found) == bound and least is not None and file.last < least:
            break
        found += [taken for taken in _rows(lake.folder / file.path, least) if selection.wants(taken.event, taken.time)]
        found = sorted(found, key=rank_of)[-bound:]
        if len(found) == bound:
            least = rank_of(found[0])[0]
    return found


def _rows(path: Path, since: int | None) -> Iterator[Taken]:
    """What a file has that happened since a time."""
    with reading(path), pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ROWS, columns=EVENTS.names):
            if since is not None:
                happened = pc.coalesce(batch.column("time"), batch.column("taken_at")).cast(pa.int64())
                batch = batch.filter(pc.greater_equal(happened, since))
            yield from taken_of(batch)


def _in_order(found: Iterable[Taken]) -> Iterator[Taken]:
    streams: dict[Pair | None, list[Taken]] = {}
    for taken in found:
        streams.setdefault(taken.event.stream, []).append(taken)
    return merge([sorted(streams[stream], key=_seq) for stream in sorted(streams, key=lambda one: one or ("", ""))])


def _seq(taken: Taken) -> int:
    return taken.event.seq or 0
