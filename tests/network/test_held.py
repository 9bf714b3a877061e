"""What waits for its time outlives any crash, and does not keep the journal from being dropped."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from journal.journals import crashed, files
from journal.journals import put as contents
from network.appends import append_at
from network.worlds import broker, client, logged, until
from vestnik import Event
from vestnik.errors import JournalFailed
from vestnik.journal import Entry, Journal, Settings
from vestnik.server import store as stores
from vestnik.server.process import Broker
from vestnik.server.store import JournalStore

LATER = "2999-01-01T00:00:00Z"
SMALL = Settings(segment_size=1_000, retain_size=4_000, fsync=False)
AGED = Settings(segment_size=1_000, retain_size=4_000, retain_age=1, fsync=False)


def held(id: str) -> Event:
    return Event("t", {}, source="a", id=id, not_before=LATER)


def passing(number: int) -> Event:
    return Event("t", {}, source="x", id=str(number)).stamped("b", number)


async def put(store: JournalStore, *events: Event) -> None:
    """Store, and wait for it."""
    answers: list[str] = []
    store.append(append_at(store.log.next, *events), lambda what, failure, *_: answers.append(failure))
    await until(lambda: bool(answers))
    assert answers == [""]


def waiting(stored: Iterable[Event]) -> list[str]:
    """What a broker that begins with this holds."""
    found: dict[str, Event] = {}
    for event in stored:
        if event.seq is None:
            found[event.id] = event
        else:
            found.pop(event.id, None)
    return sorted(found)


async def reopened(folder: Path, settings: Settings = SMALL) -> list[Event]:
    """What the next life is given."""
    store = JournalStore(folder / "journal", settings)
    try:
        return [event for one in store.stored() if (event := one.event) is not None]
    finally:
        await store.close()


async def test_what_waits_for_ages_keeps_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "RECENT", 10)
    store = JournalStore(tmp_path / "journal", SMALL)
    await put(store, held("ages"))
    for number in range(1, 400, 10):
        await put(store, *map(passing, range(number, number + 10)))
    assert store._journal.first > 300, "it is dropped as if nothing was held"
    await store.close()
    stored = await reopened(tmp_path)
    assert len(stored) == 1 + 10, "a broker that begins anew reads no more for it"
    assert waiting(stored) == ["ages"]


async def test_a_crash_while_a_broker_begins_loses_nothing_that_waits(tmp_path: Path) -> None:
    folder = tmp_path / "now"
    store = JournalStore(folder / "journal", SMALL)
    await put(store, held("first"))
    await put(store, held("first").stamped("b", 1))
    await put(store, held("second"))
    await store.close()
    begins = JournalStore(folder / "journal", SMALL)
    crashes = [shutil.copytree(folder, tmp_path / f"crash {step}") for step, _ in enumerate(begins.stored())]
    await begins.close()
    assert len(crashes) >= 3
    for crash in crashes:
        assert waiting(await reopened(crash, AGED)) == ["second"], crash.name


class Moment(NamedTuple):
    """What a crash leaves, what was acknowledged and must be held then, what must not, and what may."""

    folder: Path
    held: frozenset[str]
    released: frozenset[str]
    releasing: frozenset[str]


@pytest.mark.parametrize(
    ("forgets", "recent"),
    [((), 3), (("journal",), 30), (("held",), 30), (("journal", "held"), 30)],
    ids=["process", "journal", "held", "both"],
)
async def test_a_crash_between_any_two_writes_loses_nothing_and_holds_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgets: tuple[str, ...], recent: int
) -> None:
    """The process crashes; or the machine, and its disk `forgets` all of a folder that was not synced."""
    monkeypatch.setattr(stores, "RECENT", recent)
    moments: list[Moment] = []
    known: set[str] = set()
    released: set[str] = set()
    releasing: set[str] = set()
    durable: dict[str, dict[str, bytes]] = {"journal": {}, "held": {}}
    folder, write, sync_all = tmp_path / "now", Journal.append, Journal.sync

    def sync(journal: Journal) -> int:
        before = files(journal._directory)
        position = sync_all(journal)
        durable[journal._directory.name] = before
        return position

    def append(journal: Journal, entries: list[Entry], at: int | None = None) -> int:
        position = write(journal, entries, at)
        crash = shutil.copytree(folder, tmp_path / f"crash {len(moments)}")
        for name in forgets:
            left = crashed(files(crash / name), durable[name], 0.0)
            contents(crash / name, {file: data for file, data in left.items() if any(data)})
        sets = known - released - releasing, released, releasing
        moments.append(Moment(crash, *map(frozenset, sets)))
        return position

    monkeypatch.setattr(Journal, "append", append)
    monkeypatch.setattr(Journal, "sync", sync)
    store = JournalStore(folder / "journal", SMALL)
    for number in range(1, 13):
        await put(store, held(str(number)))
        known.add(str(number))
        if number % 3 == 0:
            releasing = {str(number - 1)}
            await put(store, held(str(number - 1)).stamped("b", number))
            released, releasing = released | releasing, set()
        await put(store, *map(passing, range(10 * number, 10 * number + 10)))
    await store.close()
    monkeypatch.setattr(Journal, "append", write)
    monkeypatch.setattr(Journal, "sync", sync_all)
    assert len(moments) > 40 and any(moment.releasing for moment in moments)
    for moment in moments:
        first = await reopened(moment.folder, AGED)
        found, numbered = set(waiting(first)), {event.id for event in first if event.seq is not None}
        assert moment.held <= found, f"{moment.folder.name}: acknowledged, and lost"
        assert not moment.released & found, f"{moment.folder.name}: released, and held again"
        assert moment.releasing <= found ^ numbered, f"{moment.folder.name}: held or numbered, not both"
        assert set(waiting(await reopened(moment.folder))) == found, "the next life knows the same"


async def test_what_could_not_be_stored_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = JournalStore(tmp_path / "journal", SMALL)
    write, answers = Journal.append, list[str]()

    def append(journal: Journal, entries: list[Entry], at: int | None = None) -> int:
        if journal is store._journal:
            raise JournalFailed(tmp_path, "write", "the disk is full")
        return write(journal, entries, at)

    monkeypatch.setattr(Journal, "append", append)
    store.append(append_at(1, held("refused")), lambda what, failure, *_: answers.append(failure))
    await store.close()
    assert "the disk is full" in answers[0]
    assert await reopened(tmp_path) == []


async def test_that_something_held_was_damaged_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with broker(data=tmp_path) as b, client(b) as c:
        for id in ("1", "2"):
            await c.publish(held(id))
    (segment,) = (tmp_path / "held").glob("*.segment")
    data = segment.read_bytes()
    segment.write_bytes(data.replace(b"not_before", b"not_BEFORE", 1))
    async with Broker(b.settings):
        pass
    (told,) = logged(caplog, "journal.recovered")
    assert str(tmp_path / "held") in told and "'records': 1, 'last': 2, 'lost': 1" in told
    assert "position 1 cannot be read" in told
