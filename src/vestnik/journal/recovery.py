"""Opening what an earlier life has left: what is missing is said, and no position is used again."""

from __future__ import annotations

from pathlib import Path

from vestnik.journal.directory import Directory, names_in
from vestnik.journal.index import SUFFIX as INDEX
from vestnik.journal.index import index_of
from vestnik.journal.reports import Lost
from vestnik.journal.reservation import RANGE, reserved_in
from vestnik.journal.salvage import UNFINISHED, Found, miss, take
from vestnik.journal.segments import SUFFIX, first_of, segments_in
from vestnik.journal.watermark import NOTHING, Watermark, watermark_in

CUT_OFF = "the end of the journal is missing, by its watermark"


def recover(directory: Directory, fsync: bool) -> Found:
    """Find the segments in `directory`: read those that have no index, and the last one.

    An unfinished write at the end of the last one is cut off. A segment whose header is damaged is set aside under
    another name; where other bytes are damaged, they stay, and every reader passes over them. What compaction had no
    time to remove goes: another segment stands for it. If the journal ends before its watermark, all positions up to
    the reserved end are lost.
    """
    folder = directory.path
    for name in names_in(folder, f"{SUFFIX}{UNFINISHED}"):
        (folder / name).unlink()
    reached, reserved = watermark_in(folder), reserved_in(folder)
    paths = segments_in(folder)
    found = Found(first_of(paths[0]) if paths else reached.first)
    for number, path in enumerate(paths, 1):
        if first_of(path) < found.end:
            path.unlink()
            continue
        _expect(found, first_of(path))
        take(found, directory, path, first_of(paths[number]) if number < len(paths) else None, fsync)
    _continue(found, reached, reserved, is_new=not paths and reached == NOTHING)
    if found.end <= reached.last or found.set_aside:
        miss(found, folder, found.next, found.set_aside or CUT_OFF)
    found.latest = max([reached.latest, *(segment.latest for segment in found.segments if segment.count)])
    _remove_indexes(found, folder)
    return found


def _continue(found: Found, reached: Watermark, reserved: int | None, *, is_new: bool) -> None:
    """Set the position that comes next: the reserved end. If that is unknown or impossible, one that is safe."""
    used = max(found.end, reached.last + 1)
    if reserved is not None and reserved >= used:
        found.next = reserved
    elif is_new:
        found.next = used
    else:
        found.next = found.unreserved = max(used, found.end + found.most, reached.reserved) + RANGE


def _expect(found: Found, first: int) -> None:
    """Report as lost what is missing before the next segment, which begins with position `first`."""
    if found.end < first:
        found.lost.append(Lost(found.end, first - 1, "their segments are missing"))
    found.end = first


def _remove_indexes(found: Found, folder: Path) -> None:
    """Remove the indexes of segments that are gone, damaged, or grow again."""
    kept = {index_of(path).name for path in found.indexed}
    for name in names_in(folder, f"{SUFFIX}{INDEX}"):
        if name not in kept:
            (folder / name).unlink()
