"""A batch is published once, wherever an attempt at it ended. No JVM; a broker on a thread of its own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark.brokers import published, running
from vestnik.broker import sources
from vestnik.client.sync import SyncBus
from vestnik.errors import InvalidEvent, NotAccepted, NotStaged, Unreachable
from vestnik.lake.journals import open_journal
from vestnik.spark.source import publishing
from vestnik.spark.source.options import Writing
from vestnik.spark.source.staging import Staging
from vestnik.spark.source.writing import forsake, settle, stage

SMALL = 5


class Crash(BaseException):
    """The end of the process, as far as the code can see."""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with running(tmp_path / "b") as url:
        yield url


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "CHUNK", SMALL)


def rows(start: int, stop: int, **columns: Any) -> pa.RecordBatch:
    some = [{"type": "t", "data": json.dumps({"n": n})} for n in range(start, stop)]
    return pa.RecordBatch.from_pylist([{**row, **columns} for row in some])


def options(url: str, tmp_path: Path, **more: str) -> Writing:
    return Writing.of({"url": url, "stagingLocation": str(tmp_path / "staging"), **more})


def staged(how: Writing, order: Callable[[list[int]], Any] = list) -> list[Any]:
    """Two partitions, of twelve and of three rows, in some order."""
    starts = [list(order([0, 4, 8])), [12]]
    messages = []
    for partition, firsts in enumerate(starts):
        width = 4 if partition == 0 else 3
        messages.append(stage([rows(n, n + width) for n in firsts], how, "q", 7, partition))
    return messages


ALL = Counter({("spark", "t", n): 1 for n in range(15)})


def crash_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, *, after: bool) -> None:
    """Let the process end at the nth call of a method, before or after it did what it does."""
    calls = iter(range(1, 1_000))
    method = getattr(owner, name)

    def crashing(*arguments: Any, **named: Any) -> Any:
        is_now = next(calls) == call
        if is_now and not after:
            raise Crash
        found = method(*arguments, **named)
        if is_now:
            raise Crash
        return found

    monkeypatch.setattr(owner, name, crashing)


PLACES = [
    *((SyncBus, "publish_many", call) for call in (1, 2, 3)),
    *((Staging, "advance", call) for call in (1, 2, 3)),
    (Staging, "decide", 1),
    (Staging, "finish", 1),
    (Staging, "drop", 1),
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("owner", "name", "call"), PLACES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_whoever_goes_on_after_a_crash_publishes_the_rest(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, after: bool
) -> None:
    how = options(url, tmp_path)
    with monkeypatch.context() as patch:
        crash_at(patch, owner, name, call, after=after)
        with pytest.raises(Crash):
            settle(staged(how), how, 7)
    settle(staged(how, reversed), how, 7)  # in another order, so under other ids
    settle(staged(how), how, 7)
    assert published(url) == ALL
    assert not (tmp_path / "staging" / "q" / "7").exists()


def test_the_broker_may_have_forgotten_the_ids(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    how = options(url, tmp_path)
    with monkeypatch.context() as patch:
        crash_at(patch, SyncBus, "publish_many", 2, after=True)
        with pytest.raises(Crash):
            settle(staged(how), how, 7)
    many = 2 * sources.IDS + 1
    others = stage([rows(100, 100 + many)], how, "other", 0, 0)
    monkeypatch.setattr(publishing, "CHUNK", 10_000)
    settle([others], how, 0)
    monkeypatch.setattr(publishing, "CHUNK", SMALL)
    settle(staged(how), how, 7)
    assert published(url, "n < 100") == ALL
    assert published(url).total() == many + 15


def test_what_was_given_up_before_it_was_decided_is_dropped(tmp_path: Path, url: str) -> None:
    how = options(url, tmp_path)
    messages = staged(how)
    forsake([*messages, None], how, 7)
    with pytest.raises(NotStaged, match="share"):
        settle(messages, how, 7)


def test_what_was_decided_is_kept_though_it_is_given_up(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = options(url, tmp_path)
    messages = staged(how)
    with monkeypatch.context() as patch:
        crash_at(patch, SyncBus, "publish_many", 2, after=False)
        with pytest.raises(Crash):
            settle(messages, how, 7)
    forsake(messages, how, 7)
    settle(staged(how), how, 7)
    assert published(url) == ALL


@pytest.mark.parametrize(
    ("name", "keep"), [("committed", 0), ("7/decision", 5), ("7/0-*.arrow", 0), ("7/1-*.arrow", -9)]
)
def test_a_file_that_is_damaged_is_named_and_the_batch_is_not_taken_for_done(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, name: str, keep: int
) -> None:
    how = options(url, tmp_path)
    settle([stage([rows(100, 101)], how, "q", 6, 0)], how, 6)
    with monkeypatch.context() as patch:
        crash_at(patch, SyncBus, "publish_many", 1, after=False)
        with pytest.raises(Crash):
            settle(staged(how), how, 7)
    (path,) = (tmp_path / "staging" / "q").glob(name)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(NotStaged, match=rf"{path.name}: the file is damaged.*put the folder back"):
        settle(staged(how), how, 7)
    assert (tmp_path / "staging" / "q" / "7").exists(), "what was staged is kept"


def test_rows_keep_what_they_say(tmp_path: Path, url: str) -> None:
    how = options(url, tmp_path, source="feed")
    given = pa.RecordBatch.from_pylist(
        [
            {"type": "t", "data": '{"n": 1}', "id": "own", "source": None, "position": 5, "priority": 9},
            {"type": "t", "data": '{"n": 2}', "id": None, "source": "other", "position": 6, "priority": None},
        ]
    )
    settle([stage([given], how, "q", 0, 0)], how, 0)
    with open_journal(url) as journal:
        found = [one.event for one in journal.read()]
    assert [(one.source, one.id, one.priority) for one in found] == [("feed", "own", 9), ("other", "q-0-0-1", 4)]


def test_a_row_that_is_no_event_is_named_with_what_to_do(tmp_path: Path) -> None:
    how = options("h:1", tmp_path)
    bad = pa.RecordBatch.from_pylist([{"type": "t", "data": "{}"}, {"type": "t", "data": "[1]"}])
    with pytest.raises(InvalidEvent, match=r"partition 0.*row 1: data: must be a JSON object.*onBadRow.*quarantine"):
        stage([bad], how, "q", 0, 0)


def test_bad_rows_and_refused_events_are_kept_and_the_rest_goes_on(tmp_path: Path, url: str) -> None:
    how = options(url, tmp_path)
    settle([stage([rows(1, 2, id="same")], how, "first", 0, 0)], how, 0)
    lenient = options(url, tmp_path, onBadRow="quarantine")
    some = [rows(1, 3), pa.RecordBatch.from_pylist([{"type": "", "data": '{"n": 0}'}]), rows(3, 4, id="same")]
    message = stage([*some, rows(4, 6)], lenient, "q", 0, 0)
    with pytest.raises(NotAccepted, match=r"same of source spark.*onBadRow"):
        settle([message], how, 0)
    settle([message], lenient, 0)
    assert published(url, "id != 'same'") == Counter({("spark", "t", n): 1 for n in (1, 2, 4, 5)})
    lines = (tmp_path / "staging" / "q" / "quarantine" / "0.jsonl").read_text().splitlines()
    assert [json.loads(line)["reason"].split(";")[0] for line in lines] == [
        "row 0: type: must not be empty",
        "another event of this source and id was published before",
    ]


def test_a_broker_that_is_not_there_is_named(tmp_path: Path) -> None:
    how = options("127.0.0.1:1", tmp_path, timeout="0.2")
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        settle(staged(how), how, 7)
