"""All readers of the past are told what the journal of a broker has lost at either end."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from network.test_durable import VESTNIK
from network.worlds import broker, client, logged, quote
from vestnik import Replay
from vestnik.journal import Journal, Settings
from vestnik.journal.identity import identify
from vestnik.journal.index import index_of
from vestnik.journal.segments import HEADER_SIZE
from vestnik.server.history import Bounds, HistoryStore
from vestnik.wire.leaves import opened
from vestnik.wire.packing import TAKEN, pack_taken


def damage_the_first_record(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    data[HEADER_SIZE + 30] ^= 1
    segment.write_bytes(data)


def damage_the_header(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    data[20] ^= 1
    segment.write_bytes(data)


def remove(segment: Path) -> None:
    segment.unlink()


HARMS = [(damage_the_first_record, 1), (damage_the_header, 3), (remove, 3)]


@pytest.mark.parametrize(("harm", "lost"), HARMS, ids=["first record", "header", "removed"])
async def test_readers_are_told_what_is_lost(
    tmp_path: Path, harm: Callable[[Path], None], lost: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with broker(data=tmp_path) as b, client(b) as bus:
        await bus.publish_many([quote(n, source="s", id=str(n)) for n in (1, 2, 3)])
    (segment,) = (tmp_path / "journal").glob("*.segment")
    harm(segment)
    for life in range(2):
        async with broker(data=tmp_path) as b, client(b) as bus:
            if not life:
                (recovered,) = logged(caplog, "journal.recovered")
                assert "some of it is lost" in recovered and f"'lost': {lost}," in recovered
            await bus.publish(quote(10 + life, source="s", id=f"new {life}"))
            with caplog.at_level(logging.WARNING, "vestnik"):
                fetched = await bus.fetch("price > 0")
            prices = [*range(lost + 1, 4), *([10, 100] if life else []), 10 + life]
            assert [event.data["price"] for event in fetched] == prices
            assert "not all of the past was found" in caplog.text and "cannot be read" in caplog.text
            caplog.clear()

            replayed = await bus.subscribe("price > 0", replay=Replay(all=True))
            found = [await replayed.get(10) for _ in prices]
            told = [one.gap.reason for one in found if one.gap is not None]
            await bus.publish(quote(100, source="t"))
            last = await replayed.get(10)
            told += [last.gap.reason] if last.gap is not None else []
            assert [one.event.data["price"] for one in found] == prices
            assert len(told) == 1 and "cannot be read" in told[0]

            page = (await bus.review(upto=3)).page
            taken, unread = opened(page)
            assert [one.position for one in taken] == list(range(lost + 1, 4))
            assert [(one.first, one.last, one.dropped) for one in unread] == [(1, lost, False)]

            known = await bus.inspect("history")
            assert len(known["lost"]) == 1 and "cannot be read" in known["lost"][0]
    command = [str(VESTNIK), "history", "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "cannot be read" in done.stderr


async def test_readers_are_told_of_damage_that_nobody_found_before_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A closed segment has an index: the broker does not read it when it starts."""
    with Journal.open(tmp_path / "journal", Settings(segment_size=400)) as journal:
        identify(tmp_path / "journal")
        for n in range(1, 21):
            event = quote(n, source="s", id=str(n)).stamped("b", n)
            journal.append([(TAKEN, 1_000 + n, pack_taken("c", event))])
    segments = sorted((tmp_path / "journal").glob("*.segment"))
    assert len(segments) > 2 and index_of(segments[0]).exists()
    damage_the_first_record(segments[0])
    async with broker(data=tmp_path) as b, client(b) as bus:
        assert "cannot be read" not in caplog.text
        replayed = await bus.subscribe("price > 0", replay=Replay(all=True))
        found = [await replayed.get(10) for _ in range(2, 21)]
        assert [one.event.data["price"] for one in found] == list(range(2, 21))
        (gap,) = [one.gap for one in found if one.gap is not None]
        assert "cannot be read" in gap.reason
        with caplog.at_level(logging.WARNING, "vestnik"):
            assert len(await bus.fetch("price > 0")) == 19
        assert "not all of the past was found" in caplog.text


async def test_what_retention_dropped_is_not_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with broker(data=tmp_path, retain_count=8) as b, client(b) as bus:
        for number in range(40):
            await bus.publish(quote(number, source="s"))
        with caplog.at_level(logging.WARNING, "vestnik"):
            assert 0 < len(await bus.fetch("price >= 0")) < 40
        assert "cannot be read" not in caplog.text
        assert (await bus.inspect("history"))["lost"] == []


async def test_a_history_tells_what_its_folder_has_lost(tmp_path: Path) -> None:
    store = HistoryStore(Bounds(), tmp_path)
    for number in (1, 2, 3):
        store.keep(quote(number, source="s", id=str(number)))
    await store.close()
    (segment,) = tmp_path.glob("*.segment")
    damage_the_first_record(segment)
    again = HistoryStore(Bounds(), tmp_path)
    lost: list[str] = []
    assert [event.data["price"] for _, event in again.taken(lost)] == [2, 3]
    assert len(lost) == 1 and "position 1 cannot be read" in lost[0]
    await again.close()
