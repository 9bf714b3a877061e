"""Journals become one table: each event once, nothing lost, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.lakes import HOUR, NOON, content, ids, quarantined, quote, rows, table, write
from network.worlds import broker, client
from vestnik import Event
from vestnik.errors import InvalidJournal, InvalidLake, InvalidSetting, JournalLocked, WrongValue
from vestnik.lake import taking
from vestnik.lake.compaction import compact
from vestnik.lake.declared import SQL, extended, read_declared
from vestnik.lake.keys import STAGED, compare, in_order, spans
from vestnik.lake.layout import Lake, writing
from vestnik.lake.manifest import Column
from vestnik.lake.rows import batch_of
from vestnik.lake.taking import take_in
from vestnik.model.spaces import walk


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "PART", 7)
    monkeypatch.setattr(taking, "SPAN", 20)


def test_journals_of_many_brokers_become_one_table(tmp_path: Path) -> None:
    one = write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(0, 40, 2)])
    two = write(tmp_path / "b2", "b2", [quote(n, "b2") for n in range(1, 40, 2)])
    done = take_in(tmp_path / "lake", [one, two])
    assert (done.events, done.again, done.lost()) == (40, 0, 0)
    assert ids(tmp_path / "lake") == list(range(40))
    found = {row["id"]: row for row in rows(tmp_path / "lake")}
    assert (found["2"]["taken_by"], found["2"]["position"], found["2"]["broker"]) == ("b1", 2, "b1")


def test_an_event_is_there_once_however_often_it_was_taken(tmp_path: Path) -> None:
    took = [quote(n, "b1") for n in range(20)]
    retried = [quote(n, "b2") for n in range(15, 25)]
    copies = write(tmp_path / "copies", "a-history", [*took, *took[:5]])  # read first, and taken as early
    one = write(tmp_path / "b1", "b1", [*took, *took[-3:]])
    two = write(tmp_path / "b2", "b2", retried, every=2_000_000)
    done = take_in(tmp_path / "lake", [copies, one, two])
    assert (done.events, done.again) == (25, 25 + 23 + 10 - 25)
    assert ids(tmp_path / "lake") == list(range(25))
    assert {row["taken_by"] for row in rows(tmp_path / "lake") if int(row["id"]) < 15} == {"b1"}, "not the copies"


def test_what_is_known_is_not_taken_in_again(tmp_path: Path) -> None:
    one = write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(20)])
    take_in(tmp_path / "lake", [one])
    before = content(tmp_path / "lake")
    two = write(tmp_path / "b2", "b2", [quote(n, "b2") for n in range(30)])
    assert take_in(tmp_path / "lake", [one, two]).events == 10
    assert not before - content(tmp_path / "lake")
    version = Lake(tmp_path / "lake").latest().version
    assert take_in(tmp_path / "lake", [one, two]).events == 0
    assert Lake(tmp_path / "lake").latest().version == version, "nothing new makes no version"


def test_journals_grow_and_late_ones_come(tmp_path: Path) -> None:
    one, lake = tmp_path / "b1", tmp_path / "lake"
    for start in range(0, 60, 6):
        late = Event("quote", {}, source="late", id=str(1000 + start), time=NOON - start * HOUR).stamped(
            "b1", start + 1
        )
        write(one, "b1", [*(quote(n, "b1") for n in range(start, start + 6)), late])
        assert take_in(lake, [one]).events == 7
    assert ids(lake) == sorted([*range(60), *range(1000, 1060, 6)])
    assert Lake(lake).latest().read == {"b1": 70}


def test_types_and_dates_are_folders_and_files_are_in_order(tmp_path: Path) -> None:
    strange = Event("a/b=ü c", {}, source="s", id="900").stamped("b1", 900)
    long = Event("t" * 300, {}, source="s", id="901").stamped("b1", 901)
    one = write(tmp_path / "b1", "b1", [strange, *(quote(n, "b1") for n in range(10)), long], every=5 * HOUR)
    two = write(tmp_path / "b2", "b2", [quote(n, "b2") for n in range(10, 20)], every=7 * HOUR)
    take_in(tmp_path / "lake", [one, two])
    compact(tmp_path / "lake")
    assert sorted(ids(tmp_path / "lake")) == [*range(20), 900, 901]
    for file in Lake(tmp_path / "lake").latest().events:
        found = table(str(tmp_path / "lake" / file.path)).to_pylist()
        times = [row["taken_at"] for row in found]
        assert times == sorted(times) and {row["type"] for row in found} == {file.type}
        assert {time.date().isoformat() for time in times} == {file.date} and f"/date={file.date}/" in file.path
        assert len(found) == file.rows and file.first <= file.last
    folders = {path.name for path in (tmp_path / "lake" / "events").iterdir()}
    assert {"type_=quote", "type_=a%2Fb%3D%C3%BC%20c"} < folders and len(folders) == 3


def test_what_is_no_event_is_set_aside_with_the_reason(tmp_path: Path) -> None:
    one = write(tmp_path / "b1", "b1", [quote(0, "b1"), b"nonsense", quote(1, "b1"), b"\x92\xa1c\x01"])
    assert take_in(tmp_path / "lake", [one]).lost() == 2
    assert [(row["position"], row["payload"]) for row in quarantined(tmp_path / "lake")] == [
        (2, b"nonsense"),
        (4, b"\x01"),
    ]
    assert all(row["taken_by"] == "b1" and "no event" in row["reason"] for row in quarantined(tmp_path / "lake"))
    assert take_in(tmp_path / "lake", [one]).lost() == 0


def test_a_range_without_any_event(tmp_path: Path) -> None:
    one = write(tmp_path / "b1", "b1", [quote(0, "b1")])
    take_in(tmp_path / "lake", [one])
    assert take_in(tmp_path / "lake", [write(one, "b1", [b"nonsense"])]).lost() == 1
    assert Lake(tmp_path / "lake").latest().read == {"b1": 2}


def test_what_is_damaged_or_dropped_is_named(tmp_path: Path) -> None:
    lake, one = tmp_path / "lake", write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(30)], segment_size=2_000)
    (path, *_) = sorted((one / "journal").glob("*.segment"))[1:]
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    path.write_bytes(damaged)
    assert (done := take_in(lake, [one])).events == 29 and done.lost() == 1
    (bad,) = quarantined(lake)
    assert "damaged" in bad["reason"] and bad["position"] - 1 not in ids(lake)
    write(one, "b1", [quote(n, "b1") for n in range(30, 90)], segment_size=2_000, retain_size=4_000)
    take_in(lake, [one])
    dropped = [row for row in quarantined(lake) if "dropped" in row["reason"]]
    assert len(dropped) == 1 and dropped[0]["position"] == 31 and "up to position " in dropped[0]["reason"]


@pytest.mark.parametrize("count", [3, 30])
def test_a_journal_that_was_begun_anew_is_read_from_its_beginning(tmp_path: Path, count: int) -> None:
    one, lake = write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(10)]), tmp_path / "lake"
    take_in(lake, [one])
    shutil.rmtree(one)
    write(one, "b1", [quote(n, "b1") for n in range(8, 100)][:count])
    done = take_in(lake, [one])
    assert (done.events, done.again, done.lost()) == (count - 2, 2, 0) and done.losses
    assert ids(lake) == list(range(8 + count))
    (lost,) = quarantined(lake)
    assert (lost["taken_by"], lost["position"]) == ("b1", 11) and "another journal" in lost["reason"]
    assert take_in(lake, [write(one, "b1", [quote(200, "b1")])]).events == 1
    assert len(quarantined(lake)) == 1 and Lake(lake).latest().read == {"b1": count + 1}


def test_a_journal_that_is_shorter_is_refused(tmp_path: Path) -> None:
    one = write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(3)])
    shutil.copytree(one, tmp_path / "before")
    write(one, "b1", [quote(n, "b1") for n in range(3, 10)])
    take_in(tmp_path / "lake", [one])
    with pytest.raises(InvalidJournal, match="lost its end"):
        take_in(tmp_path / "lake", [tmp_path / "before"])
    with pytest.raises(WrongValue, match="once"):
        take_in(tmp_path / "lake", [one, one])


async def test_the_journal_of_a_broker_that_runs(tmp_path: Path) -> None:
    async with broker("b", data=tmp_path / "data") as running, client(running) as bus:
        await bus.publish_many([Event("t", {"n": n}, source="s", id=str(n)) for n in range(30)])
        url = f"vestnik://{running.address.removeprefix('vestnik://')}"
        assert (await asyncio.to_thread(take_in, tmp_path / "one", [url])).events == 30
        assert (await asyncio.to_thread(take_in, tmp_path / "two", [tmp_path / "data"])).events == 30
        assert content(tmp_path / "one") == content(tmp_path / "two")
        await bus.publish(Event("t", {"n": 30}, source="s", id="30"))
        assert (await asyncio.to_thread(take_in, tmp_path / "one", [tmp_path / "data"])).events == 1, "either way"


# --- columns of declared types ---

TYPES = """
[quote]
symbol = "string"
price = "double"
number = { path = "n", type = "bigint" }
deep = { path = "a.b", type = "timestamp" }
"""


def test_declared_types_have_columns(tmp_path: Path) -> None:
    (tmp_path / "types.toml").write_text(TYPES)
    one = write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(3)])
    take_in(tmp_path / "lake", [one])
    odd = {"symbol": 3, "price": True, "n": 1.5, "a": {"b": "2026-01-01T00:00:00Z"}}
    write(
        one, "b1", [Event("quote", odd, source="s", id="3").stamped("b1", 99), Event("x", {}, id="4").stamped("b1", 1)]
    )
    take_in(tmp_path / "lake", [one], declared=read_declared(tmp_path / "types.toml"))
    last = next(row for row in rows(tmp_path / "lake") if row["id"] == "3")
    assert (last["symbol"], last["price"], last["number"]) == (None, None, None)
    assert last["deep"].isoformat() == "2026-01-01T00:00:00+00:00" and last["data"].startswith('{"symbol":3')
    assert "symbol" not in next(row for row in rows(tmp_path / "lake") if row["id"] == "4")
    compact(tmp_path / "lake")
    found = sorted(rows(tmp_path / "lake"), key=lambda row: int(row["id"]))
    assert [(row["symbol"], row["price"], row["number"]) for row in found[:3]] == [
        ("S0", 0.0, 0),
        ("S1", 0.25, 1),
        ("S2", 0.5, 2),
    ], "files that are merged get the columns that are declared now"


leaves = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
said = leaves | st.text(max_size=3) | st.just("2026-01-01T00:00:00Z") | st.lists(leaves, max_size=1)
found = st.dictionaries(st.sampled_from(["a", "b c"]), said | st.dictionaries(st.sampled_from(["a", "b c"]), said))


@given(st.lists(found, max_size=4), st.sampled_from(sorted(SQL)))
def test_a_declared_column_is_what_is_of_its_type(found: list[dict[str, Any]], kind: str) -> None:
    events = [Event("t", {}, source="s", id=str(n)) for n in range(len(found))]
    data = pa.array([json.dumps(one) for one in found], pa.string())
    given = pa.Table.from_batches([batch_of(events)]).drop("data").append_column("data", data)
    columns = {path: Column(path, kind) for path in ("a", "b c", "a.a", "a.b c", "b c.a.a")}
    extension = extended(given, columns)
    as_kind = SQL[kind][1]
    for path, column in columns.items():
        want = [as_kind(walk(one, tuple(column.path.split(".")))) for one in found]
        assert extension.column(path).combine_chunks().equals(pa.array(want, SQL[kind][0]))


@pytest.mark.parametrize(
    ("text", "reason"),
    [("x = 1", "has columns"), ('[t]\na = "int4"', "t.a"), ('[t]\nid = "string"', "of that name"), ("[", "no TOML")],
)
def test_declarations_that_mean_nothing(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "types.toml").write_text(text)
    with pytest.raises(InvalidSetting, match=reason):
        read_declared(tmp_path / "types.toml")


# --- small files ---


def test_small_files_become_few_and_all_stays(tmp_path: Path) -> None:
    one, lake = tmp_path / "b1", tmp_path / "lake"
    for start in range(0, 50, 5):
        write(one, "b1", [quote(n, "b1") for n in range(start, start + 5)])
        take_in(lake, [one])
    assert len(Lake(lake).paths()) <= 9, "ingest merges where there are many"
    before, old = content(lake), Lake(lake).latest()
    compact(lake)
    assert content(lake) == before and len(Lake(lake).paths()) == 1 and len(Lake(lake).latest().keys) == 1
    assert all((lake / file.path).exists() for file in old.events), "whoever reads the version before goes on"
    assert take_in(lake, [write(tmp_path / "b2", "b2", [quote(3, "b2")])]).again == 1


# --- keys ---


def test_duplicates_are_found_as_the_simple_way_finds_them() -> None:
    draw = random.Random(3)
    for _ in range(200):

        def some(count: int) -> list[bytes]:
            return sorted(draw.choice(b"abc\x00\xff").to_bytes(1, "big") * 9 + bytes(6) + b"x" for _ in range(count))

        staged = [
            np.array([(name, draw.randrange(3), part, row) for row, name in enumerate(some(draw.randrange(6)))], STAGED)
            for part in range(draw.randrange(4))
        ]
        known = [np.array(sorted(set(some(2))), "S16") for _ in range(draw.randrange(3))]
        found = compare(staged, known)
        best: dict[bytes, tuple[int, int, int]] = {}
        for part, one in enumerate(staged):
            for key in one:
                best[key["digest"]] = min(best.get(key["digest"], (99, 0, 0)), (key["rank"], part, key["row"]))
        for old in known:
            for name in old:
                best.pop(name, None)
        assert sorted(best) == found.new.tolist()
        for part, one in enumerate(staged):
            wanted = {row for _, at, row in best.values() if at == part}
            assert sorted(found.unwanted[part]["row"].tolist()) == [k["row"] for k in one if k["row"] not in wanted]


def test_spans_are_all_keys_and_each_once() -> None:
    keys = np.sort(np.frombuffer(random.Random(1).randbytes(16 * 500), "S16"))
    for count in (0, 1, 3, 70_000):
        assert np.array_equal(np.concatenate([span.of(keys) for span in spans(count)]), keys)
    assert np.array_equal(keys[in_order(keys)], keys)


# --- whoever is killed ---

KILLED = """
import os, signal, sys
from vestnik.lake import compaction, layout, manifest, shown, taking
taking.PART, taking.AT_ONCE, taking.SPAN = 7, 20, 5

def killed(when, work):
    def instead(*given):
        counts[0] -= 1
        if when == "before" and counts[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        result = work(*given)
        if counts[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return instead

where, name, when, count, lake, *journals = sys.argv[1:]
counts = [int(count)]
place = getattr(layout, where) if where == "Writer" else globals()[where]
setattr(place, name, killed(when, getattr(place, name)))
taking.take_in(lake, journals)
"""

POINTS = [
    ("taking", "stage", "after", 2),
    ("taking", "search", "after", 1),
    ("taking", "clean", "after", 1),
    ("layout", "write_version", "before", 1),
    ("layout", "write_version", "before", 2),
    ("manifest", "sync_directory", "before", 1),
    ("manifest", "sync_directory", "before", 2),
    ("Writer", "commit", "after", 1),
    ("Writer", "commit", "after", 2),
    ("Writer", "drop", "before", 1),
    ("compaction", "merge", "after", 1),
    ("compaction", "merge_keys", "after", 1),
]


def run_killed(point: Sequence[object], lake: Path, journals: Sequence[Path]) -> int:
    words = [sys.executable, "-c", KILLED, *map(str, point), str(lake), *map(str, journals)]
    return subprocess.run(words, capture_output=True, timeout=60).returncode


@pytest.mark.parametrize("point", POINTS, ids=lambda point: "-".join(map(str, point)))
def test_whoever_is_killed_has_lost_and_doubled_nothing(tmp_path: Path, point: tuple[Any, ...]) -> None:
    took = [quote(n, "b1") for n in range(30)]
    journals = [
        write(tmp_path / "b1", "b1", [*took[:10], b"nonsense", *took[10:]]),
        write(tmp_path / "b2", "b2", [quote(n, "b2") for n in range(20, 50)]),
    ]
    take_in(tmp_path / "undisturbed", journals)
    lake = tmp_path / "lake"
    assert run_killed(point, lake, journals) == -signal.SIGKILL
    seen = content(lake)
    assert not seen - content(tmp_path / "undisturbed"), "what can be read is whole"
    take_in(lake, journals)
    assert content(lake) == content(tmp_path / "undisturbed")
    with writing(lake) as writer:
        hidden = [path for place in ("_files", "keys") for path in (lake / place).rglob("*.*")]
        files = {path.relative_to(lake).as_posix() for path in hidden if path.is_file()}
        kept = {path for number in range(1, writer.latest().version + 1) for path in writer.version(number).paths()}
        assert files == kept, "nothing is left that no version names"


# --- what is no lake ---


def test_one_writes_at_a_time(tmp_path: Path) -> None:
    one = write(tmp_path / "b1", "b1", [quote(1, "b1")])
    with writing(tmp_path / "lake"), pytest.raises(JournalLocked):
        take_in(tmp_path / "lake", [one])


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b"{"), lambda path: path.write_text('{"format": 9}')])
def test_a_version_that_is_damaged_stops_with_its_name(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    lake, one = tmp_path / "lake", write(tmp_path / "b1", "b1", [quote(1, "b1")])
    take_in(lake, [one])
    spoil(lake / "log" / "00000000000000000001.json")
    with pytest.raises(InvalidLake, match=r"00000000000000000001\.json"):
        take_in(lake, [one])


def test_folders_that_are_no_lake(tmp_path: Path) -> None:
    with pytest.raises(InvalidLake, match="is no lake"):
        Lake(tmp_path)
    one = write(tmp_path / "b1", "b1", [quote(1, "b1")])
    with pytest.raises(InvalidLake, match="not empty"):
        take_in(one, [one])
