"""What a lake has stays: for those who read it, through damage to its log, and when declarations change."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lake.lakes import NOON, content, quote, rows, table, write
from vestnik import Event, Replay
from vestnik.errors import InvalidJournal, InvalidLake, InvalidSetting
from vestnik.journal import Journal
from vestnik.journal.folders import put_name
from vestnik.lake import staging
from vestnik.lake.compaction import compact
from vestnik.lake.declared import read_declared
from vestnik.lake.journals import open_journal
from vestnik.lake.layout import KEEP, Lake
from vestnik.lake.manifest import Column, versions
from vestnik.lake.replay import replayed
from vestnik.lake.running import one_by_one
from vestnik.lake.taking import search, take_in
from vestnik.server.history import entry_of
from vestnik.wire.packing import TAKEN, pack_taken


def aged(lake: Path, seconds: float) -> None:
    """As if all that is there had been written so long ago."""
    for path in versions(lake / "log"):
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))


def test_a_version_is_kept_for_an_hour_after_the_next_one_came(tmp_path: Path) -> None:
    lake, one = tmp_path / "lake", tmp_path / "b1"
    for n in range(3):
        take_in(lake, [write(one, "b1", [quote(n, "b1")])])
    aged(lake, 5 * KEEP)
    read = Lake(lake).paths()
    compact(lake)  # the version that is read was the latest until now
    take_in(lake, [write(one, "b1", [quote(3, "b1")])])
    assert len(read) == 3 and sum(len(table(path)) for path in read) == 3
    aged(lake, 2 * KEEP)
    take_in(lake, [one])
    assert not any(Path(path).exists() for path in read), "an hour after, they are gone"


def test_a_lake_whose_log_is_gone_is_not_emptied(tmp_path: Path) -> None:
    lake, one = tmp_path / "lake", write(tmp_path / "b1", "b1", [quote(1, "b1")])
    take_in(lake, [one])
    files = [path for path in Lake(lake).paths() if Path(path).exists()]
    for path in versions(lake / "log"):
        path.unlink()
    with pytest.raises(InvalidLake, match="no version"):
        take_in(lake, [one])
    with pytest.raises(InvalidLake, match="no version"):
        Lake(lake).latest()
    assert files and all(Path(path).exists() for path in files)


def test_a_declaration_that_changes_holds_for_all_that_is_there(tmp_path: Path) -> None:
    lake, one = tmp_path / "lake", write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(3)])
    take_in(lake, [one], declared={"quote": {"what": Column("symbol", "string")}})
    write(one, "b1", [quote(3, "b1"), Event("x", {}, source="s", id="4").stamped("b1", 9)])
    done = take_in(lake, [one], declared={"quote": {"what": Column("n", "bigint")}})
    assert sorted(row["what"] for row in rows(lake) if row["type"] == "quote") == [0, 1, 2, 3]
    assert done.events == 2 and len(rows(lake)) == 5
    before = content(lake)
    again = take_in(lake, [one], declared={"quote": {"what": Column("n", "bigint")}})
    assert (again.version, content(lake)) == (done.version, before), "nothing new makes no version"
    take_in(lake, [one], declared={})
    assert not any("what" in row for row in rows(lake))


@pytest.mark.parametrize("text", ['[t]\nprice = "double"\nPrice = "string"', '[t]\nType = "string"'])
def test_columns_whose_names_differ_in_case_alone_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "types.toml").write_text(text)
    with pytest.raises(InvalidSetting, match="of that name"):
        read_declared(tmp_path / "types.toml")


def test_large_events_are_written_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    took = [quote(n, "b1") for n in range(40)]
    one = write(tmp_path / "b1", "b1", [*took, *took[5:15], b"nonsense"])
    take_in(tmp_path / "whole", [one])
    monkeypatch.setattr(staging, "BYTES", 1)
    monkeypatch.setattr("vestnik.wire.leaves.MOST", 7)
    assert take_in(tmp_path / "parts", [one]).again == 10
    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    assert len(Lake(tmp_path / "parts").paths()) > 1


def test_a_type_of_any_length_is_replayed(tmp_path: Path) -> None:
    long = Event("t" * 10_000, {}, source="s", id="1").stamped("b1", 1)
    take_in(tmp_path / "lake", [write(tmp_path / "b1", "b1", [long, quote(1, "b1")])])
    assert len(replayed(Lake(tmp_path / "lake"), "TRUE", Replay(all=True))) == 2


def test_times_before_1970(tmp_path: Path) -> None:
    day = 86_400_000_000
    with Journal.open(tmp_path / "b1" / "journal") as journal:
        put_name(tmp_path / "b1", "b1")
        journal.append([(TAKEN, at, pack_taken("c", quote(n, "b1"))) for n, at in enumerate([-day - 1, -1, 0, day])])
    take_in(tmp_path / "lake", [tmp_path / "b1"])
    dates = {file.date: file.rows for file in Lake(tmp_path / "lake").latest().events}
    assert dates == {"1969-12-30": 1, "1969-12-31": 1, "1970-01-01": 1, "1970-01-02": 1}


def test_the_folder_of_a_history_is_named_for_what_it_is(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "kept") as journal:
        journal.append([entry_of(NOON, quote(1, "b1"))])
    with pytest.raises(InvalidJournal, match=r"of a history.*brokers"):
        open_journal(tmp_path / "kept")


def test_where_the_disk_is_full_nothing_is_left_of_what_was_begun(tmp_path: Path) -> None:
    lake, one = tmp_path / "lake", write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(3)])
    take_in(lake, [one])
    before = sorted(path for path in lake.rglob("*") if path.is_file())
    write(one, "b1", [quote(n, "b1") for n in range(3, 6)])

    def full(work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        if work is search:
            raise OSError(errno.ENOSPC, "No space left on device")
        return one_by_one(work, parts)

    with pytest.raises(OSError, match="No space"):
        take_in(lake, [one], full)
    assert sorted(path for path in lake.rglob("*") if path.is_file()) == before
    assert take_in(lake, [one]).events == 3


@pytest.mark.parametrize("size", [0, 50])
def test_a_file_that_is_damaged_is_named(tmp_path: Path, size: int) -> None:
    lake, one = tmp_path / "lake", tmp_path / "b1"
    for n in range(2):
        take_in(lake, [write(one, "b1", [quote(n, "b1")])])
    manifest = Lake(lake).latest()
    for file in (manifest.events[0].path, manifest.keys[0].path):
        os.truncate(lake / file, size)
    for act in (
        lambda: compact(lake),
        lambda: replayed(Lake(lake), "TRUE", Replay(all=True)),
        lambda: take_in(lake, [write(one, "b1", [quote(7, "b1")])]),
    ):
        with pytest.raises(InvalidLake, match=r"(data|npy) is damaged"):
            act()
