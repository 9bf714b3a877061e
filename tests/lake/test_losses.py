"""An ingest reports what it could not take in: how many positions, of which broker, and why."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lake.lakes import NOON, ids, quarantined, quote, write
from network.worlds import broker, client
from vestnik import Event
from vestnik.journal import Journal, Settings
from vestnik.lake import taking
from vestnik.lake.journals import open_journal
from vestnik.lake.losses import Kind, Loss
from vestnik.lake.taking import take_in

SMALL = {"segment_size": 2_000, "retain_size": 4_000}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "PART", 7)


def retained(folder: Path, first: int = 0, count: int = 90) -> tuple[Path, int]:
    """Append events to a journal that keeps few of them; return its folder and the first position that it still has."""
    write(folder, "b1", [quote(n, "b1") for n in range(first, first + count)], **SMALL)
    with open_journal(folder) as journal:
        return folder, journal.first()


def test_the_first_ingest_reports_what_retention_dropped_before_it(tmp_path: Path) -> None:
    one, first = retained(tmp_path / "b1")
    done = take_in(tmp_path / "lake", [one])
    assert first > 20 and done.events == 90 - (first - 1)
    assert done.losses == (Loss("b1", Kind.DROPPED, 1, first - 1, first - 1),)
    (row,) = quarantined(tmp_path / "lake")
    assert (row["kind"], row["position"], row["positions"]) == ("dropped", 1, first - 1)


def test_a_later_ingest_reports_only_what_was_lost_since(tmp_path: Path) -> None:
    lake, (one, first) = tmp_path / "lake", retained(tmp_path / "b1")
    take_in(lake, [one])
    assert take_in(lake, [one]).losses == (), "nothing new"
    _, now = retained(one, 90, 200)
    assert take_in(lake, [one]).losses == (Loss("b1", Kind.DROPPED, 91, now - 1, now - 91),)
    assert [row["positions"] for row in quarantined(lake)] == [first - 1, now - 91], "the lake keeps all of them"


def test_each_kind_of_loss_is_counted_apart_and_in_positions(tmp_path: Path) -> None:
    lake, (one, first) = tmp_path / "lake", retained(tmp_path / "b1")
    write(one, "b1", [b"nonsense", quote(90, "b1"), b"nonsense"])
    path = sorted((one / "journal").glob("*.segment"))[0]
    content = bytearray(path.read_bytes())
    content[200:-200] = bytes(len(content) - 400)
    path.write_bytes(content)
    done = take_in(lake, [one])
    assert done.lost(Kind.DROPPED) == first - 1
    assert done.lost(Kind.NO_EVENT) == 2
    assert done.lost(Kind.DAMAGED) > 1
    assert done.events + done.lost() == 93, "every position is an event or a loss"
    assert len(ids(lake)) == done.events
    assert sum(row["positions"] for row in quarantined(lake)) == done.lost()


def test_a_journal_from_which_everything_was_dropped(tmp_path: Path) -> None:
    lake, one = tmp_path / "lake", write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(30)])
    with Journal.open(one / "journal", Settings(retain_age=1)) as journal:
        journal.retain(NOON * 2)
        assert journal.first == 31
    assert take_in(lake, [one]).losses == (Loss("b1", Kind.DROPPED, 1, 30, 30),)
    assert take_in(lake, [one]).losses == ()
    assert take_in(lake, [write(one, "b1", [quote(30, "b1")])]).events == 1


def test_an_empty_journal_has_lost_nothing(tmp_path: Path) -> None:
    assert take_in(tmp_path / "lake", [write(tmp_path / "b1", "b1", [])]).losses == ()


def test_positions_that_were_skipped_are_no_losses(tmp_path: Path) -> None:
    lake, one = tmp_path / "lake", write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(3)])
    assert take_in(lake, [one]).events == 3
    write(one, "b1", [quote(n, "b1") for n in range(3, 5)], skip=200)  # some parts have nothing
    done = take_in(lake, [one])
    assert (done.events, done.losses, ids(lake)) == (2, (), list(range(5)))
    assert take_in(tmp_path / "other", [one]).losses == ()


@pytest.mark.parametrize("is_kept", [True, False], ids=["data folder", "memory"])
async def test_a_running_broker_tells_what_it_dropped_if_it_knows(tmp_path: Path, is_kept: bool) -> None:
    """A broker without a data folder does not count positions from 1: those before its start are no loss."""
    data = retained(tmp_path / "b1")[0] if is_kept else None
    with open_journal(data) if data else open_journal(write(tmp_path / "x", "x", [])) as journal:
        first = journal.first()
    async with broker("b1", data=data) as running, client(running) as bus:
        await bus.publish(Event("t", {}, source="s", id="1000"))
        url = f"vestnik://{running.address.removeprefix('vestnik://')}"
        done = await asyncio.to_thread(take_in, tmp_path / "lake", [url])
    assert done.losses == ((Loss("b1", Kind.DROPPED, 1, first - 1, first - 1),) if is_kept else ())
    assert 1000 in ids(tmp_path / "lake")


async def test_a_broker_without_a_folder_tells_what_its_memory_had_no_room_for(tmp_path: Path) -> None:
    async with broker("b1") as running, client(running) as bus:
        running.host.core.recovery.tail.room = 1  # the last event stays
        begin = running.host.core.recovery.tail.next
        await bus.publish_many([Event("t", {}, source="s", id=str(n)) for n in range(10)])
        url = f"vestnik://{running.address.removeprefix('vestnik://')}"
        done = await asyncio.to_thread(take_in, tmp_path / "lake", [url])
    assert (done.events, done.losses) == (1, (Loss("b1", Kind.DROPPED, begin, begin + 8, 9),))


async def test_a_broker_without_a_folder_that_starts_again_has_another_journal(tmp_path: Path) -> None:
    last = 0
    for start in range(2):
        async with broker("b1") as running, client(running) as bus:
            await bus.publish(Event("t", {}, source="s", id=str(start)))
            url = f"vestnik://{running.address.removeprefix('vestnik://')}"
            done = await asyncio.to_thread(take_in, tmp_path / "lake", [url])
            replaced = (Loss("b1", Kind.REPLACED, last + 1, None, None),) if start else ()
            assert (done.events, done.losses) == (1, replaced)
            last = running.host.core.recovery.tail.next - 1


def test_a_journal_that_was_begun_anew_has_lost_an_unknown_number(tmp_path: Path) -> None:
    lake, one = tmp_path / "lake", write(tmp_path / "b1", "b1", [quote(n, "b1") for n in range(10)])
    take_in(lake, [one])
    two, first = retained(tmp_path / "b2", 100)
    done = take_in(lake, [two])
    assert set(done.losses) == {
        Loss("b1", Kind.REPLACED, 11, None, None),
        Loss("b1", Kind.DROPPED, 1, first - 1, first - 1),
    }
