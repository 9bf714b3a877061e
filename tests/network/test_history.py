"""Histories: what they keep, and that they answer for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from network.worlds import PATIENCE, broker, client, quote, taken, until
from vestnik import Event, Filter, History, LocalBus, Replay
from vestnik.client.services import ServiceBus
from vestnik.errors import InvalidSetting, Unreachable
from vestnik.journal import Journal
from vestnik.server.history import KEPT, SPARE, Bounds, HistoryStore, Shelf, entry_of
from vestnik.server.process import Broker
from vestnik.transport.addresses import read_address
from vestnik.wire.messages import Taken
from vestnik.wire.origins import ENDLESS, Cover, Origin, ReadTerms, Slice, Span


def prices(history: History) -> list[float]:
    return [event.data["price"] for event in history.events]


async def linked(b: Broker) -> None:
    await until(lambda: len(b.host.core.topology.brokers()) == 2)


async def test_a_history_answers_for_what_its_broker_has_forgotten() -> None:
    async with broker("first") as b:
        where = b.address
        history = History("price > 10", join=where, last=10)
        async with client(b) as p, history:
            await linked(b)
            await p.publish_many([quote(price) for price in range(1, 31)])
            await until(lambda: prices(history) == list(range(21, 31)))
            late = await p.subscribe("price > 0", replay=Replay(last=15))
            assert await taken(late, 15) == list(range(16, 31)), "what both have comes once"
            await b.__aexit__()
            async with broker("second", listen=read_address(where)) as again, client(again) as c:
                await linked(again)
                subscription = await c.subscribe("price > 22", replay=Replay(last=5))
                await c.publish(quote(40))
                assert await taken(subscription, 6) == [26, 27, 28, 29, 30, 40]
                assert [event.data["price"] for event in await c.fetch("price < 24")] == [22, 23], "40 is one of ten"


async def test_a_history_on_disk_goes_on_where_it_was(tmp_path: Path) -> None:
    def history(b: Broker) -> History:
        return History("price > 0", join=b.address, latest_by="subject", data=tmp_path)

    async with broker("first") as b, client(b) as p, history(b) as one:
        await p.publish_many([quote(price, subject=f"s{price % 3}") for price in range(1, 9)])
        await until(lambda: sorted(prices(one)) == [6, 7, 8])
    async with broker("second") as b, history(b) as two:
        assert sorted(prices(two)) == [6, 7, 8]


async def test_a_history_and_a_broker_refuse_the_folder_of_the_other(tmp_path: Path) -> None:
    data, kept = tmp_path / "b1", tmp_path / "kept"
    async with broker("b1", data=data) as b, client(b) as bus:
        await bus.publish(quote(1))
        before = sorted(data.rglob("*"))
        for folder in (data, data / "journal", data / "held"):
            with pytest.raises(InvalidSetting, match=r"b1.* is a folder of .*; choose another folder for the history"):
                await History("price > 0", join=b.address, data=folder).__aenter__()
        async with History("price > 0", join=b.address, data=kept):
            with pytest.raises(InvalidSetting, match=r"kept is the folder of a history: .* choose another folder"):
                await broker("b2", data=kept).__aenter__()
    assert sorted(data.rglob("*")) == before
    for part in ("journal", "held"):
        with pytest.raises(InvalidSetting, match=r"name .*b1, or choose another folder"):
            await broker("b1", data=data / part).__aenter__()
    with pytest.raises(InvalidSetting, match="is a folder of the broker b1; choose another"):
        HistoryStore(Bounds(), data)
    with pytest.raises(InvalidSetting, match="is the folder of a history"):
        await broker("b2", data=kept).__aenter__()


async def test_folders_of_earlier_releases_go_on(tmp_path: Path) -> None:
    """A broker had no name in its folder and no identity in its journal once."""
    async with broker("b1", data=tmp_path) as b, client(b) as bus:
        await bus.publish(quote(1))
    (tmp_path / "name").unlink()
    (tmp_path / "journal" / "identity").unlink()
    with pytest.raises(InvalidSetting, match="is a folder of a broker; choose another"):
        HistoryStore(Bounds(), tmp_path)
    async with broker("b1", data=tmp_path) as b, client(b) as bus:
        assert [event.data["price"] for event in await bus.fetch("price > 0")] == [1]


async def test_a_history_begins_with_what_others_have_and_is_purged_by_an_event() -> None:
    async with broker() as b, client(b) as p:
        await p.publish_many([quote(1), quote(2)])
        async with History("price > 0", join=b.address, purge="type = 'closed'") as history:
            await until(lambda: prices(history) == [1, 2])
            await p.publish_many([quote(3), Event("closed"), quote(4)])
            await until(lambda: prices(history) == [4])


async def test_what_brokers_announce_is_fetched_only_by_who_asks_for_it() -> None:
    async with broker() as b, client(b) as c, History("type IS vestnik.subscription", join=b.address) as history:
        subscription = await c.subscribe("price > 3")
        await subscription.unsubscribe()
        await until(lambda: len(history.events) == 2)
        assert await c.fetch("TRUE") == []
        assert [event.type for event in await c.fetch("type IS vestnik.subscription.ended")] == [history.events[1].type]
        await c.subscribe("price > 4")
        await until(lambda: len(history.events) == 3)
        for limit in (10, None):
            found = await c.fetch("type IS vestnik.subscription", limit=limit)
            assert [event.type.rpartition(".")[2] for event in found] == ["made", "ended", "made"], "each comes once"


async def test_a_history_is_no_reason_to_produce() -> None:
    async with broker() as b, client(b) as p, History("TRUE", join=b.address) as history:
        wanted = await p.wanted("price > 0")
        other = await p.subscribe("type IS vestnik")
        await p.publish(quote(1))
        await until(lambda: prices(history) == [1])
        assert not wanted and other.try_get() is None


async def test_a_history_without_sockets() -> None:
    async with LocalBus() as bus, History("price > 0", join=bus, last=2) as history:
        await bus.publish_many([quote(price) for price in range(1, 5)])
        await until(lambda: prices(history) == [3, 4])
        assert len(await bus.fetch("price > 0")) == 4


async def test_a_history_without_a_broker() -> None:
    async with broker() as b:
        where = b.address
    with pytest.raises(Unreachable):
        async with History("TRUE", join=where, timeout=0.1):
            pass


async def test_nobody_publishes_at_a_history() -> None:
    async with broker() as b, History("TRUE", join=b.address) as history:
        with pytest.raises(Exception, match="takes no publications"):
            await _client_of(history).publish(quote(1))


def _client_of(history: History) -> ServiceBus:
    return history._client


# --- what is kept ---


def kept(bounds: Bounds, *events: Event, now: float = 0.0) -> list[Any]:
    shelf = Shelf(bounds)
    for position, event in enumerate(events, start=1):
        shelf.put(Taken(position, position * 1_000_000, event))
    return [taken.event.data.get("price") for taken in shelf.kept(now)]


def test_bounds_of_what_is_kept() -> None:
    events = [quote(price, subject=f"s{price % 2}") for price in range(1, 7)]
    assert kept(Bounds(), *events) == [1, 2, 3, 4, 5, 6]
    assert kept(Bounds(last=2), *events) == [5, 6]
    assert kept(Bounds(age=2.5), *events, now=6.0) == [4, 5, 6]
    assert kept(Bounds(latest_by="subject"), *events) == [5, 6]
    assert kept(Bounds(purge=Filter.parse("price = 4")), *events) == [5, 6]
    assert kept(Bounds(), events[0], events[1], events[0]) == [1, 2], "it is kept once"


@pytest.mark.parametrize("wrong", [{"last": 0}, {"age": 0}])
def test_bounds_that_are_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(wrong))):
        Bounds(**wrong)


async def test_the_journal_of_a_history_does_not_grow_for_ever(tmp_path: Path) -> None:
    bounds = Bounds(last=3)
    store = HistoryStore(bounds, tmp_path)
    for price in range(2 * SPARE):
        store.keep(quote(price))
    assert store._journal is not None and store._journal.last - store._journal.first < 2 * SPARE
    await store.close()
    again = HistoryStore(bounds, tmp_path)
    assert [event.data["price"] for _, event in again.taken([])] == [2 * SPARE - 3, 2 * SPARE - 2, 2 * SPARE - 1]
    assert _prices(_read(again, ReadTerms(0, (Filter.all(),), 10))) == [1997, 1998, 1999]
    assert _prices(_read(again, ReadTerms(ENDLESS, (Filter.all(),), 10, pick=Replay(last=2)))) == [1998, 1999]
    await again.close()


async def test_a_history_is_read_page_by_page_at_its_own_offsets() -> None:
    """The copies have the seq of other logs."""
    store = HistoryStore(Bounds())
    for price in range(5):
        store.keep(quote(price, id=str(price)).stamped("elsewhere", 1000 - price))
    first = _read(store, ReadTerms(0, (Filter.all(),), 3))
    rest = _read(store, ReadTerms(first.upto, (Filter.all(),), 3))
    assert (_prices(first), _prices(rest)) == ([0, 1, 2], [3, 4])
    assert (first.offsets, rest.offsets) == ((1, 2, 3), (4, 5))
    over = _read(store, ReadTerms(rest.upto, (Filter.all(),), 3))
    assert over.events == () and over.upto == rest.upto and over.gap is None
    await store.close()


X1, X2 = Origin("x", 1), Origin("x", 2)


def _keep(store: HistoryStore, *offsets: int, origin: Origin | None = X1, since: int = ENDLESS) -> None:
    for offset in offsets:
        store.keep(quote(offset, id=f"{origin}:{offset}").stamped("x", offset), origin, since)


def _covers(store: HistoryStore, wanted: str = "TRUE") -> list[Cover]:
    return list(_read(store, ReadTerms(0, (Filter.parse(wanted),), 10)).covers)


def test_a_history_says_which_parts_of_logs_it_has() -> None:
    store = HistoryStore(Bounds(last=3), wanted=Filter.parse("price > 0"))
    _keep(store, 5, 7, since=2)
    assert _covers(store, "price > 3") == [Cover(X1, Span(2, 8))], "from where live events started"
    assert _covers(store) == [], "it keeps less than that"
    _keep(store, 8, 9)
    assert _covers(store, "price > 3") == [Cover(X1, Span(7, 10))], "it has dropped the first"
    _keep(store, 4, origin=X2)
    assert _covers(store, "price > 3") == [Cover(X2, Span(4, 5))]
    store.missed()
    assert _covers(store, "price > 3") == []
    _keep(store, 6, origin=X2)
    assert _covers(store, "price > 3") == [Cover(X2, Span(6, 7))]


def test_a_history_does_not_claim_what_it_cannot_know() -> None:
    latest = HistoryStore(Bounds(latest_by="price"), wanted=Filter.all())
    _keep(latest, 1, 2)
    store = HistoryStore(Bounds(purge=Filter.parse("price = 9")), wanted=Filter.all())
    _keep(store, 1, origin=None)
    assert _covers(latest) == [] == _covers(store)
    _keep(store, 2, 3)
    assert _covers(store) == [Cover(X1, Span(2, 4))]
    _keep(store, 2)
    assert _covers(store) == [], "what came twice may be dropped earlier than the rest"
    _keep(store, 8, 9)
    assert _covers(store) == [], "it was purged"
    _keep(store, 11)
    assert _covers(store) == [Cover(X1, Span(11, 12))]


async def test_a_gap_is_told_of_what_neither_a_broker_nor_a_history_has(tmp_path: Path) -> None:
    async def gaps(c: ServiceBus, wanted: str) -> list[str]:
        """Return the gaps in a replay of all events, up to one that is published now."""
        subscription = await c.subscribe(wanted, replay=Replay(all=True))
        end = quote(10_000)
        await c.publish(end)
        found = [await subscription.get(PATIENCE)]
        while found[-1].event.id != end.id:
            found.append(await subscription.get(PATIENCE))
        await subscription.unsubscribe()
        return [one.gap.reason for one in found if one.gap is not None]

    async with broker("b", data=tmp_path) as b, client(b) as p:
        await p.publish_many([quote(n, subject="x" * 2_000) for n in range(100)])
        async with History("price > 50", join=b.address) as history:
            await until(lambda: len(history.events) == 49)
            for first in range(100, 1_000, 100):
                await p.publish_many([quote(n, subject="x" * 2_000) for n in range(first, first + 100)])
            await until(lambda: len(history.events) == 949)
            at = read_address(b.address)
            await b.__aexit__()
            async with broker("b", data=tmp_path, listen=at, retain_count=100) as again, client(again) as c:
                await linked(again)
                (told,) = await gaps(c, "price > 60")
                assert "offsets 1 to 100)" in told, "these were replayed to the history, not live"
                assert len(await gaps(c, "price > 40")) == 1, "the history does not want all of it"


def _read(store: HistoryStore, terms: ReadTerms) -> Slice:
    pages: list[Slice] = []
    store.read(terms, ENDLESS, pages.append)
    (page,) = pages
    return page


def _prices(page: Slice) -> list[float]:
    return [event.data["price"] for event in page.events]


async def test_what_is_no_event_in_the_journal_of_a_history_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Journal.open(tmp_path) as journal:
        journal.append([entry_of(1, quote(1)), (KEPT, 2, b"no event"), entry_of(3, quote(3))])
        journal.sync()
    store = HistoryStore(Bounds(), tmp_path)
    assert [event.data["price"] for _, event in store.taken([])] == [1, 3]
    assert "position 2 cannot be read: it holds no event" in caplog.text
    await store.close()
