"""Taking the journals of brokers into a lake: each event once, all that is bad into the quarantine.

    take_in("lake", ["data/b1", "data/b2", "vestnik://b3:7447"])

It goes in steps, each of them the same work on many parts: read ranges of journals into files; compare the keys of what
was read with each other and with those that are known; write anew the files that hold what is not wanted. At the end
a version of the lake names the files, the new keys, and how far each journal was read, all at once. Whoever is killed
before that has done nothing; what was taken in is never taken in again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace

from vestnik.errors import InvalidJournal, WrongValue
from vestnik.lake.compaction import compacted, redeclared
from vestnik.lake.journals import located, open_journal
from vestnik.lake.keys import Keys, Span, compare, load, save, spans
from vestnik.lake.layout import KEYS, Writer, writing
from vestnik.lake.losses import Kind, Loss, summed
from vestnik.lake.manifest import Column, DataFile, Manifest, PlainFile
from vestnik.lake.running import Runner, one_by_one
from vestnik.lake.staging import Part, Staged, stage, write_events

PART: Final = 250_000
"""Positions that one task reads."""
AT_ONCE: Final = 10_000_000
"""Positions that are read for one version, about: what is killed has so much to do again, at most."""
SPAN: Final = 4_000_000
"""New keys that one task compares."""


class TookIn(Struct, frozen=True):
    """The result of an ingest: the number of new events, the number of known or repeated ones, and the losses.

    There is one loss for each broker and kind.
    """

    events: int = 0
    again: int = 0
    losses: tuple[Loss, ...] = ()
    version: int = 0

    def lost(self, kind: Kind | None = None) -> int:
        """Return the number of positions that were lost, for one reason or for any, as far as it is known."""
        return sum(one.positions or 0 for one in self.losses if kind in (None, one.kind))


class Range(Struct, frozen=True):
    """What of a journal is to be read: where it is, after which position and up to which; the first that it has.

    What is missing from `after` to `first` was dropped. If it took the place of another, that was read up to
    `replaced`.
    """

    at: str
    broker: str
    journal: str
    after: int
    first: int
    upto: int
    replaced: int | None = None


def take_in(
    lake: str | PathLike[str],
    journals: Iterable[str | PathLike[str]],
    run: Runner = one_by_one,
    *,
    declared: Mapping[str, Mapping[str, Column]] | None = None,
    say: Callable[[float], object] = lambda share: None,
) -> TookIn:
    """Take in what is in the journals now, folders or URLs, and not yet in the lake.

    `declared` replaces the declarations of types that the lake has, and all files get those columns. `say` is told the
    share that is done.
    """
    with writing(lake) as writer:
        manifest = writer.latest()
        before = manifest.version
        ranges = [found for at in journals if (found := _to_read(located(at), manifest)) is not None]
        _check(ranges)
        whole = sum(_count(one) for one in ranges)
        if declared is not None:
            manifest = redeclared(writer, manifest, declared, run)
        done = TookIn()
        while ranges:
            now, ranges = _some(ranges)
            manifest, done = _take(writer, manifest, now, run, done)
            say(1 - sum(_count(one) for one in ranges) / max(whole, 1))
        if manifest.version > before:
            manifest = compacted(writer, manifest, run)
        return replace(done, version=manifest.version)


def _to_read(at: str, manifest: Manifest) -> Range | None:
    with open_journal(at) as journal:
        before, first, last = journal.beginning() - 1, journal.first(), journal.last()
        if last <= before:
            return None
        broker, identity = journal.broker, journal.identity
    after, known = manifest.read.get(broker), manifest.journals.get(broker)
    if after is not None and known and identity not in ("", known):
        return Range(at, broker, identity, before, first, last, replaced=after)
    if after is not None and last < after:
        has = f"the lake has what {broker} took up to {after:,}"
        raise InvalidJournal(at, f"ends at position {last:,}, and {has}: it is another journal, or lost its end")
    return Range(at, broker, identity or known or "", before if after is None else after, first, last)


def _check(ranges: Sequence[Range]) -> None:
    places: dict[str, str] = {}
    for one in ranges:
        if one.broker in places:
            expected = f"the journal of each broker is read once; {places[one.broker]} is that of {one.broker}"
            raise WrongValue(expected, one.at, "leave one out")
        places[one.broker] = one.at


def _begin(one: Range) -> int:
    """Return the position after which there is something to read."""
    return min(max(one.first - 1, one.after), one.upto)


def _count(one: Range) -> int:
    return one.upto - _begin(one)


def _some(ranges: Sequence[Range]) -> tuple[list[Range], list[Range]]:
    """What is read for the next version, an equal number of each journal, and what is left."""
    share = max(1, AT_ONCE // len(ranges))
    now, later = [], []
    for one in ranges:
        end = min(one.upto, _begin(one) + share)
        now.append(replace(one, upto=end))
        if end < one.upto:
            later.append(replace(one, after=end, replaced=None))
    return now, later


def _parts(writer: Writer, one: Range, manifest: Manifest) -> list[Part]:
    begin = _begin(one)
    count = max(1, -(-(one.upto - begin) // PART))
    ends = [begin + (one.upto - begin) * place // count for place in range(1, count + 1)]
    afters = [one.after, *ends[:-1]]  # what is missing before the first is read, too
    replaced = [one.replaced, *(None for _ in ends[:-1])]
    return [
        Part(writer.folder, writer.new_name(), one.at, one.broker, one.journal, after, end, manifest.declared, before)
        for after, end, before in zip(afters, ends, replaced, strict=True)
    ]


def _take(
    writer: Writer, manifest: Manifest, ranges: Sequence[Range], run: Runner, done: TookIn
) -> tuple[Manifest, TookIn]:
    ranges = [one for one in ranges if one.upto > one.after]
    if not ranges:
        return manifest, done
    staged = run(stage, [part for one in ranges for part in _parts(writer, one, manifest)])
    events, keys = _each_once(writer, manifest, staged, run)
    quarantine = [file for one in staged for file in one.quarantine]
    count, found = sum(file.rows for file in events), sum(one.keys.rows for one in staged)
    manifest = writer.commit(
        replace(
            manifest,
            read={**manifest.read, **{one.broker: one.upto for one in ranges}},
            journals={**manifest.journals, **{one.broker: one.journal for one in ranges}},
            events=(*manifest.events, *events),
            quarantine=(*manifest.quarantine, *quarantine),
            keys=(*manifest.keys, *keys),
        )
    )
    writer.drop(path for one in staged for path in (one.keys.path, *(file.path for file in one.events)))
    return manifest, TookIn(
        done.events + count,
        done.again + found - count,
        summed([*done.losses, *(loss for one in staged for loss in one.losses)]),
    )


# --- each event once ---


class Comparison(Struct, frozen=True):
    """Keys of a span that are to be compared."""

    lake: Path
    name: str
    span: Span
    staged: tuple[str, ...]
    known: tuple[str, ...]


class Cleaning(Struct, frozen=True):
    """A file of which some rows are not wanted."""

    lake: Path
    name: str
    file: DataFile
    rows: bytes


def _each_once(
    writer: Writer, manifest: Manifest, staged: Sequence[Staged], run: Runner
) -> tuple[list[DataFile], list[PlainFile]]:
    paths, known = tuple(one.keys.path for one in staged), tuple(file.path for file in manifest.keys)
    wide = spans(-(-sum(one.keys.rows for one in staged) // SPAN))
    compared = run(search, [Comparison(writer.folder, writer.new_name(), span, paths, known) for span in wide])
    cleanings: dict[DataFile, Cleaning] = {}
    for number, one in enumerate(staged):
        unwanted = np.concatenate([found[number] for _, found in compared])
        for place in np.unique(unwanted["file"]):
            rows = np.sort(unwanted["row"][unwanted["file"] == place])
            file = one.events[place]
            cleanings[file] = Cleaning(writer.folder, writer.new_name(), file, rows.tobytes())
    cleaned = dict(zip(cleanings, run(clean, list(cleanings.values())), strict=True))
    files = [cleaned.get(file, file) for one in staged for file in one.events]
    return [file for file in files if file is not None], [keys for keys, _ in compared if keys.rows]


def search(what: Comparison) -> tuple[PlainFile, list[Keys]]:
    """Write down the keys that are new; say which rows of each part are not wanted."""
    staged = [what.span.of(load(what.lake / path)) for path in what.staged]
    found = compare(staged, (what.span.of(load(what.lake / path)) for path in what.known))
    path = f"{KEYS}/{what.name}-{os.urandom(4).hex()}.npy"
    if len(found.new):
        save(what.lake / path, found.new)
    return PlainFile(path, len(found.new)), found.unwanted


def clean(what: Cleaning) -> DataFile | None:
    """Write the file anew, without the rows that are not wanted; None where no row is left."""
    file, unwanted = what.file, np.frombuffer(what.rows, "<u4")
    if len(unwanted) == file.rows:
        return None
    is_wanted = np.ones(file.rows, bool)
    is_wanted[unwanted] = False
    rows = pq.ParquetFile(what.lake / file.path).read().filter(pa.array(is_wanted))
    return write_events(what.lake, f"{what.name}-{os.urandom(4).hex()}", file.type, file.date, rows)
