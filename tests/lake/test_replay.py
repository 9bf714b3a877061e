"""The past from a lake is what brokers would give that forgot nothing."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.lakes import HOUR, NOON, quote, write
from network.test_durable import VESTNIK
from network.worlds import broker, client, until
from vestnik import Event, Filter, Replay
from vestnik.lake import replay as replaying
from vestnik.lake.journals import open_journal
from vestnik.lake.layout import Lake
from vestnik.lake.order import merge
from vestnik.lake.replay import replayed
from vestnik.lake.taking import take_in
from vestnik.recovery.selection import Selection
from vestnik.server.process import Broker
from vestnik.services import deep
from vestnik.services.deep import LakeHistory
from vestnik.wire.messages import Taken
from vestnik.wire.origins import ReadTerms, Slice


@pytest.fixture
def journals(tmp_path: Path) -> list[Path]:
    draw = random.Random(5)
    made = []
    for name in ("b1", "b2"):
        count = {"s1": 0, "s2": 0}
        events = []
        for n in range(80):
            source = draw.choice(["s1", "s2"])
            count[source] += 1
            at = NOON + n * HOUR - draw.randrange(2) * HOUR // 2 if draw.random() < 0.3 else None
            causes = [("s1", "b1-3")] if name == "b2" and n == 1 else []
            event = Event(
                draw.choice(["quote", "trade"]),
                {"n": n, "symbol": f"S{n % 5}"},
                source=source,
                id=f"{name}-{n}",
                time=at,
                causes=causes,
            )
            events.append(event.stamped(name, count[source]))
        made.append(write(tmp_path / name, name, events, every=HOUR))
    take_in(tmp_path / "lake", made[:1])
    take_in(tmp_path / "lake", made)
    return made


REPLAYS = [
    Replay(all=True),
    Replay(last=1),
    Replay(last=17),
    Replay(last=1000),
    Replay(since=NOON + 40 * HOUR),
    Replay(since=NOON + 70 * HOUR, last=3),
    Replay(latest_by="symbol"),
    Replay(latest_by="symbol", last=2),
]


@pytest.mark.parametrize(
    "wanted", ["TRUE", "type = 'quote' AND n > 10", "symbol = 'S3' OR source = 's1'", "type = 'no'"]
)
@pytest.mark.parametrize("replay", REPLAYS, ids=str)
def test_a_lake_replays_what_brokers_do(tmp_path: Path, journals: list[Path], wanted: str, replay: Replay) -> None:
    found: list[Taken] = []
    for folder in journals:
        with open_journal(folder) as journal:
            found += journal.read()
    selection = Selection((Filter.parse(wanted),), replay)
    streams: dict[object, list[Taken]] = {}
    for one in found:
        streams.setdefault(one.event.stream, []).append(one)
    for one in merge([streams[stream] for stream in sorted(streams, key=str)]):
        selection.take(one.event, one.time)
    truth = [event for event, _ in selection.found()]
    assert [one.event for one in replayed(Lake(tmp_path / "lake"), wanted, replay)] == truth


def test_files_that_cannot_have_it_are_not_opened(
    tmp_path: Path, journals: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    read = replaying._rows

    def watched(path: Path, since: int | None) -> Iterator[Taken]:
        opened.append(path)
        return read(path, since)

    monkeypatch.setattr(replaying, "_rows", watched)
    lake = Lake(tmp_path / "lake")
    replayed(lake, "type = 'trade'", Replay(last=5))
    assert 0 < len(opened) < sum(file.type == "trade" for file in lake.latest().events)
    assert all("type_=trade" in str(path) for path in opened)
    opened.clear()
    replayed(lake, "TRUE", Replay(since=NOON + 79 * HOUR))
    assert 0 < len(opened) < len(lake.latest().events)


# --- a history over a lake ---


async def linked(b: Broker) -> None:
    await until(lambda: len(b.host.core.topology.brokers()) == 2)


async def test_a_late_subscriber_gets_what_brokers_have_forgotten_and_then_what_comes(tmp_path: Path) -> None:
    old = [quote(n, "b") for n in range(120)]
    take_in(tmp_path / "lake", [write(tmp_path / "data", "b", old[:110], segment_size=600)])
    write(tmp_path / "data", "b", old[110:], segment_size=600, retain_size=2_400)
    with open_journal(tmp_path / "data") as journal:
        assert 20 < journal.first() <= 110, "the broker has dropped what was before"
    async with broker("b", data=tmp_path / "data") as b, LakeHistory(tmp_path / "lake", join=b.address), client(b) as c:
        await linked(b)
        every = await c.subscribe("n >= 0", replay=Replay(all=True))
        last = await c.subscribe("n >= 0", replay=Replay(last=110))
        await c.publish(Event("quote", {"n": 120}, source="s2", id="120"))
        found = [await every.get() for _ in range(121)]
        assert [one.event.data["n"] for one in found] == list(range(121))
        assert not any(one.gap for one in found), "the lake has what the broker has dropped"
        assert [(await last.get()).event.data["n"] for _ in range(111)] == list(range(10, 121))
        assert every.try_get() is None and last.try_get() is None
        assert [event.data["n"] for event in await c.fetch("n < 5")] == [0, 1, 2, 3, 4]
        await asyncio.to_thread(take_in, tmp_path / "lake", [tmp_path / "data"])
        fetched = await c.fetch("n >= 0", limit=None)
        assert [event.data["n"] for event in fetched] == list(range(121)), (
            "a new version is seen, and nothing comes twice"
        )


async def test_a_long_past_comes_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.wire.pages.PAGE_SIZE", 2_000)
    take_in(tmp_path / "lake", [write(tmp_path / "old", "gone", [quote(n, "gone") for n in range(300)])])
    asked: list[tuple[int, int]] = []
    page = deep.LakeStore._page

    def watched(self: deep.LakeStore, terms: ReadTerms) -> Slice:
        found = page(self, terms)
        asked.append((terms.start, found.upto))
        return found

    monkeypatch.setattr(deep.LakeStore, "_page", watched)
    async with broker("b") as b, LakeHistory(tmp_path / "lake", join=b.address), client(b) as c:
        await linked(b)
        assert [event.data["n"] for event in await c.fetch("n >= 0", limit=None)] == list(range(300))
    assert len(asked) > 2 and [start for start, _ in asked[1:]] == [upto for _, upto in asked[:-1]]


async def test_a_lake_that_cannot_be_read_is_a_gap_that_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    take_in(tmp_path / "lake", [write(tmp_path / "old", "gone", [quote(n, "gone") for n in range(3)])])
    async with broker("b") as b, LakeHistory(tmp_path / "lake", join=b.address, name="deep"), client(b) as c:
        await linked(b)
        (tmp_path / "lake" / "log" / "00000000000000000001.json").write_text("{")
        with caplog.at_level(logging.WARNING, logger="vestnik"):
            assert await c.fetch("TRUE") == []
    assert "deep: the lake cannot be read" in caplog.text


async def test_a_history_over_a_lake_is_a_command(tmp_path: Path) -> None:
    take_in(tmp_path / "lake", [write(tmp_path / "old", "gone", [quote(n, "gone") for n in range(3)])])
    async with broker("b") as b, client(b) as c:
        words = [str(VESTNIK), "history", "--lake", str(tmp_path / "lake"), "--url", b.address]
        running = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.PIPE)
        assert running.stderr is not None
        assert b"answers from" in await running.stderr.readline()
        await linked(b)
        assert [event.data["n"] for event in await c.fetch("TRUE")] == [0, 1, 2]
        running.terminate()
        assert await running.wait() == 0
