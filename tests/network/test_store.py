"""What is stored, when it is, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from network.appends import append_at
from network.worlds import broker, client, logged, until
from vestnik import Event, Replay
from vestnik.journal import Journal
from vestnik.server.store import JournalStore
from vestnik.wire.packing import TAKEN, pack_taken


def event(id: str, source: str = "a", seq: int = 1) -> Event:
    return Event("t", {}, source=source, id=id).stamped("b", seq)


async def test_all_comes_back_in_the_order_of_offsets_whether_or_not_anybody_waits_for_it(tmp_path: Path) -> None:
    store = JournalStore(tmp_path / "journal")
    done: list[str] = []
    for offset, (request, one) in enumerate([(1, event("a")), (0, event("b", "e")), (0, event("c", "f"))], start=1):
        store.append(append_at(offset, one, request=request), lambda what, *_: done.append(what.events[0].id))
        assert not done, "nothing comes back before it is on disk"
    await until(lambda: len(done) == 3)
    await store.close()
    assert done == ["a", "b", "c"]


async def test_a_position_is_told_when_all_up_to_it_is_on_disk(tmp_path: Path) -> None:
    store = JournalStore(tmp_path / "journal")
    done: list[int] = []
    store.append(append_at(1, *[event(str(n)) for n in range(1, 6)]), lambda *_: done.append(store.position))
    assert store.position == 0
    await until(lambda: bool(done))
    assert done == [5] and store.position == 5
    await store.close()


async def test_what_is_no_event_is_named_and_the_rest_is_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Journal.open(tmp_path / "journal") as journal:
        journal.append([(TAKEN, 1, pack_taken("c", event("1"))), (TAKEN, 2, b"\x92\xa1c\x01")])
        journal.append([(TAKEN, 3, pack_taken("c", event("2", seq=3)))])
        journal.sync()
    reason = "position 2 cannot be read: it holds no event"
    async with broker(data=tmp_path) as running, client(running) as bus:
        (told,) = logged(caplog, "journal.unreadable")
        assert "'first': 2, 'last': 2, 'reason': 'it holds no event" in told
        past = await bus.subscribe("type = 't'", replay=Replay(all=True))
        await bus.publish(Event("t", {}, source="a", id="3"))
        found = [await past.get(10) for _ in range(3)]
        assert [n.event.id for n in found] == ["1", "2", "3"]
        assert [reason in n.gap.reason for n in found if n.gap is not None] == [True]
