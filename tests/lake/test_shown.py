"""Whoever looks at the files of a lake without asking for its version sees each event once."""

from __future__ import annotations

import errno
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset as dataset
import pyarrow.parquet as pq
import pytest

from lake.lakes import content, ids, quote, rows, write
from lake.test_taking import POINTS, run_killed
from vestnik.lake import shown
from vestnik.lake.compaction import compact
from vestnik.lake.layout import Lake
from vestnik.lake.manifest import read_version, versions, write_version
from vestnik.lake.taking import take_in


def globbed(lake: Path) -> list[int]:
    """The ids of all events in Parquet files in any folder of the lake, however often they are there."""
    files = [path for path in lake.rglob("*.parquet") if "quarantine" not in path.parts]
    return sorted(int(row["id"]) for path in files for row in pq.ParquetFile(path).read().to_pylist())


def discovered(lake: Path) -> list[int]:
    """The ids that pyarrow finds in the folder of events."""
    found = dataset.dataset(lake / "events", partitioning="hive").to_table(columns=["id"])
    return sorted(map(int, found.column("id").to_pylist()))


def grown(tmp_path: Path, times: int = 5) -> Path:
    """Make a lake of some small files."""
    for start in range(0, 5 * times, 5):
        write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(start, start + 5)])
        take_in(tmp_path / "lake", [tmp_path / "b1"])
    return tmp_path / "lake"


AT_ONCE = [
    ("layout", "write_version", "after", 2),
    ("layout", "write_version", "after", 3),
    ("shown", "link", "after", 1),
    ("shown", "link", "before", 4),
    ("shown", "unlink", "after", 1),
    ("shown", "unlink", "after", 2),
]


@pytest.mark.parametrize("point", [*POINTS, *AT_ONCE], ids=lambda point: "-".join(map(str, point)))
def test_a_killed_ingest_shows_nothing_twice_and_the_next_one_all(tmp_path: Path, point: tuple[Any, ...]) -> None:
    took = [quote(n, "b1") for n in range(30)]
    journals = [
        write(tmp_path / "b1", "b1", [*took[:10], b"nonsense", *took[10:]]),
        write(tmp_path / "b2", "b2", [quote(n, "b2") for n in range(20, 50)]),
    ]
    lake = tmp_path / "lake"
    assert run_killed(point, lake, journals) == -signal.SIGKILL
    seen = Counter(globbed(lake))
    assert set(seen.values()) <= {1} and set(seen) <= set(ids(lake)), "what is committed, and each once"
    take_in(lake, journals)
    assert globbed(lake) == discovered(lake) == ids(lake) == list(range(50))


def test_a_compaction_leaves_what_it_replaced_to_those_who_read_it(tmp_path: Path) -> None:
    lake = grown(tmp_path)
    old = Lake(lake).paths()
    compact(lake)
    assert len(old) == 5 and len(list(lake.rglob("*.parquet"))) == 1
    assert globbed(lake) == discovered(lake) == list(range(25))
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in old) == 25, "the version before can be read"


def test_the_quarantine_is_shown_once_it_is_committed(tmp_path: Path) -> None:
    journal = write(tmp_path / "b1", "b1", [quote(0, "b1"), b"nonsense"])
    point = ("layout", "write_version", "before", 2)
    assert run_killed(point, tmp_path / "lake", [journal]) == -signal.SIGKILL
    assert not list((tmp_path / "lake" / "quarantine").iterdir())
    take_in(tmp_path / "lake", [journal])
    (file,) = (tmp_path / "lake" / "quarantine").iterdir()
    assert pq.ParquetFile(file).read().column("payload").to_pylist() == [b"nonsense"]


def test_a_file_that_was_removed_from_sight_is_shown_again(tmp_path: Path) -> None:
    lake = grown(tmp_path, 2)
    next(lake.rglob("*.parquet")).unlink()
    (lake / "events" / "stray.parquet").write_bytes(b"")
    take_in(lake, [tmp_path / "b1"])
    assert globbed(lake) == list(range(10))


def test_a_disk_without_links_has_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    lake = grown(tmp_path)
    compact(lake)
    assert globbed(lake) == discovered(lake) == ids(lake) == list(range(25))


def test_a_lake_of_the_earlier_layout_is_read_and_taken_over(tmp_path: Path) -> None:
    """Files were where everybody looks, and versions named them there."""
    lake = grown(tmp_path, 2)
    before = content(lake)
    for path in versions(lake / "log"):
        manifest = shown.relocated(read_version(path), shown.shown_at)
        path.unlink()
        write_version(lake / "log", manifest)
    for path in (lake / shown.FILES).rglob("*.data"):
        path.unlink()
    assert content(lake) == before and not any(shown.FILES in path for path in Lake(lake).paths())
    old = Lake(lake).paths()
    take_in(lake, [write(tmp_path / "b1", "b1", [quote(10, "b1")])])
    assert globbed(lake) == ids(lake) == list(range(11))
    assert all(shown.FILES in path for path in Lake(lake).paths())
    compact(lake)
    assert len(rows(lake)) == 11 and all(Path(path).exists() for path in old), "for an hour"
