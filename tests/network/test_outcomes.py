"""A disk that fails: what is refused is not stored, and of what may be stored nobody says that it was refused."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.webs import cloudevent, world
from journal.journals import failing_to_sync
from network.appends import append_at
from network.processes import serving
from network.test_durable import VESTNIK, stored
from network.worlds import broker, client, quote
from vestnik.broker.effects import Append
from vestnik.errors import NotAccepted, OutcomeUnknown
from vestnik.server.store import JournalStore

Answer = tuple[str, str, bool]
BATCH = {"content-type": "application/cloudevents-batch+json"}


def refuse(*_: object) -> int:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def half(file: int, data: bytes, at: int, write: Callable[[int, bytes, int], int] = os.pwrite) -> int:
    """The disk takes one byte less than it is given, and then nothing."""
    if len(data) < 10:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return write(file, bytes(data)[:-1], at)


async def answers(folder: Path, patch: pytest.MonkeyPatch, fault: Callable[[], None], *appends: Append) -> list[Answer]:
    """Return the answers of a store to appends; the fault comes just before the last of them."""
    store = JournalStore(folder / "journal")
    found: list[Answer] = []

    def done(what: Append, failure: str, unknown: bool = False, /) -> None:
        found.append((what.events[0].id, failure.partition(";")[0], unknown))

    for what in appends[:-1]:
        store.append(what, done)
    fault()
    store.append(appends[-1], done)
    async with asyncio.timeout(10):
        while len(found) < len(appends):
            await asyncio.sleep(0.01)
    patch.undo()
    await store.close()
    return found


def appended(id: str, request: int = 1) -> Append:
    return append_at(int(id), quote(1, source="s", id=id).stamped("b", int(id)), request=request)


async def test_a_sync_that_fails_leaves_all_unknown_that_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await answers(
        tmp_path, monkeypatch, lambda: monkeypatch.setattr(os, "fdatasync", refuse), appended("1"), appended("2")
    )
    assert [(id, unknown) for id, _, unknown in found] == [("1", True), ("2", True)]
    assert all("could not sync" in reason for _, reason, _ in found)


async def test_a_write_that_is_undone_is_refused_and_what_is_on_its_way_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await answers(
        tmp_path, monkeypatch, lambda: monkeypatch.setattr(os, "pwrite", half), appended("1"), appended("2")
    )
    assert sorted((id, unknown) for id, _, unknown in found) == [("1", True), ("2", False)]
    assert await stored(tmp_path) == [1], "the one that was unknown, and not the one that was refused"


async def test_a_write_that_cannot_be_undone_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault() -> None:
        monkeypatch.setattr(os, "pwrite", half)
        monkeypatch.setattr(os, "ftruncate", refuse)

    found = await answers(tmp_path, monkeypatch, fault, appended("1"))
    assert [(id, unknown) for id, _, unknown in found] == [("1", True)]


async def test_what_waits_for_its_time_is_unknown_where_its_register_may_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = append_at(1, quote(1, source="s", id="1", not_before=2**50))
    found = await answers(tmp_path, monkeypatch, lambda: monkeypatch.setattr(os, "pwrite", half), held)
    assert [unknown for _, _, unknown in found] == [True]


async def test_publishers_are_told_what_is_unknown_and_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with broker(data=tmp_path) as b, client(b) as bus, client(b) as other:
        await bus.publish(quote(1, source="s", id="1"))
        monkeypatch.setattr(os, "fdatasync", refuse)
        with pytest.raises(
            OutcomeUnknown, match=r"nobody knows whether 2 of 2 events were stored.*same source and id"
        ) as caught:
            await bus.publish_many([quote(n, source="s", id=str(n)) for n in (2, 3)])
        assert [(one.source, one.id) for one in caught.value.unknown] == [("s", "2"), ("s", "3")]
        assert "Input/output error" in caught.value.reason and caught.value.refused == ()
        assert pickle.loads(pickle.dumps(caught.value)).unknown == caught.value.unknown
        monkeypatch.undo()
        with pytest.raises(NotAccepted) as refused:
            await bus.publish(quote(4, source="s", id="4"))
        assert [one.id for one in refused.value.refused] == ["4"], "nothing of it was written"
        for again in ([2], [2, 4]):
            with pytest.raises(OutcomeUnknown):
                await other.publish_many([quote(n, source="s", id=str(n)) for n in again])
        for number in range(2_000):
            with pytest.raises(NotAccepted):
                await bus.publish(quote(number, source="many", id=str(number)))
    async with broker(data=tmp_path) as b, client(b) as bus:
        await bus.publish_many([quote(n, source="s", id=str(n)) for n in (1, 2, 3, 4)])
    assert sorted(await stored(tmp_path)) == [1, 2, 3, 4], "each once, whatever was stored before"


async def test_many_requests_whose_outcome_is_unknown_hold_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with broker(data=tmp_path) as b, client(b) as bus:
        monkeypatch.setattr(os, "fdatasync", refuse)
        with pytest.raises(OutcomeUnknown):
            await bus.publish(quote(1, source="s", id="1"))
        for _ in range(1_100):
            with pytest.raises(OutcomeUnknown):
                await asyncio.wait_for(bus.publish(quote(1, source="s", id="1")), 20)
        monkeypatch.undo()


async def test_the_gateway_says_500_and_which_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(data=tmp_path) as w:
        monkeypatch.setattr(os, "fdatasync", refuse)
        batch = json.dumps([cloudevent("e1"), {"specversion": "1.0"}, cloudevent("e2")])
        answer = await w.http.post("/events", content=batch, headers=BATCH)
        said = answer.json()
        assert (answer.status_code, said["published"]) == (500, 0) and "retry-after" not in answer.headers
        assert [(one["index"], one.get("unknown", False)) for one in said["refused"]] == [
            (0, True),
            (2, True),
            (1, False),
        ]
        monkeypatch.undo()
        refused = await w.http.post("/events", content=json.dumps([cloudevent("e3")]), headers=BATCH)
        assert refused.status_code == 503 and "unknown" not in refused.json()["refused"][0]


def test_a_real_broker_whose_disk_fails_does_not_refuse_what_it_has(tmp_path: Path) -> None:
    with serving("--data", str(tmp_path), patch=failing_to_sync(20)) as (_, address):
        codes: list[int] = []
        printed = ""
        while not printed:
            command = [
                str(VESTNIK),
                "pub",
                "quote",
                f"price={len(codes)}",
                "--url",
                address,
                "--source",
                "s",
                "--id",
                str(len(codes)),
            ]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            codes.append(done.returncode)
            printed = done.stderr
        assert codes[-1] == 3 and not any(codes[:-1]), printed
        assert "nobody knows whether 1 event was stored" in printed and "Input/output error" in printed
    found = asyncio.run(stored(tmp_path))
    assert found[: len(codes) - 1] == list(range(len(codes) - 1))
    assert found[len(codes) - 1 :] in ([], [len(codes) - 1]), "it may be there, and nobody said that it is not"
