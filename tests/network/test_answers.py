"""Applications that answer replays: with real brokers, in one process and over sockets, and with answers that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vestnik
from network.security import access_file
from network.worlds import PATIENCE, broker, client, quote, taken, until
from vestnik import Event, LocalBus, Replay, ReplayRequest
from vestnik.client.replays import Answering
from vestnik.client.services import ServiceBus
from vestnik.client.subscriptions import Subscription
from vestnik.errors import NotAccepted, WrongType, WrongValue
from vestnik.server.process import Broker
from vestnik.wire.messages import Recall, Recalled

ALL = Replay(all=True)
LONG_AGO = 10**15


def old(*prices: int) -> list[Event]:
    """Return events of long ago, whose times are in the order of their prices."""
    return [quote(price, id=f"old-{price}", source="archive", time=LONG_AGO + price) for price in prices]


def prices(events: Iterable[Event]) -> list[Any]:
    return [event.data["price"] for event in events]


async def known(at: Broker, count: int = 1) -> None:
    """Wait until a broker knows of histories of clients."""
    await until(lambda: len(at.host.core.topology.histories) == count)


async def first_gap(bus: ServiceBus, subscription: Subscription) -> str:
    """Return what is told of a gap before the next event, which is published here."""
    await until(lambda: subscription._gap is not None)
    await bus.publish(quote(1000))
    found = await subscription.get(PATIENCE)
    assert found.gap is not None and found.gap.lost is None
    return found.gap.reason


# --- what is answered ---


async def of_list(asked: ReplayRequest) -> list[Event]:
    return old(1, 2, 3)


async def of_async_generator(asked: ReplayRequest) -> AsyncIterator[Event]:
    for event in old(1, 2, 3):
        yield event


def of_generator(asked: ReplayRequest) -> Iterator[Event]:
    yield from old(1, 2, 3)


@pytest.mark.parametrize("answer", [of_list, of_async_generator, of_generator, lambda asked: tuple(old(1, 2, 3))])
async def test_an_answer_may_be_given_in_several_ways(answer: Any) -> None:
    async with LocalBus() as bus, bus.client("desk") as desk:
        await bus.publish(quote(4))
        async with await desk.replays("price > 0", answer):
            subscription = await bus.subscribe("price > 1", replay=ALL)
            await bus.publish(quote(5))
            found = [await subscription.get(PATIENCE) for _ in range(4)]
            assert [(n.event.data["price"], n.replayed, n.gap) for n in found] == [
                (2, True, None), (3, True, None), (4, True, None), (5, False, None),
            ]  # fmt: skip
            assert prices(await bus.fetch("price < 4")) == [1, 2, 3]
        assert await bus.fetch("price < 4") == []


async def test_replays_of_all_kinds_are_answered_and_the_application_sees_what_is_asked_for() -> None:
    asks: list[ReplayRequest] = []

    def answer(asked: ReplayRequest) -> list[Event]:
        asks.append(asked)
        return old(*range(1, 1201))

    async with LocalBus() as bus, bus.client("desk") as desk:
        await desk.replays("price < 1100", answer)
        assert prices(await bus.fetch("price > 100", limit=None)) == list(range(101, 1100))
        assert prices(await bus.fetch("price > 0", limit=2)) == [1098, 1099]
        assert prices(await bus.fetch("price > 0", limit=None, since=LONG_AGO + 1000)) == list(range(1000, 1100))
        assert prices(await bus.fetch("price > 0", limit=None, latest_by="type")) == [1099]
        assert await bus.fetch("price > 5000") == []
    assert [(str(one.filter), one.replay) for one in asks] == [
        ("price > 100 AND price < 1100", ALL),
        ("price > 0 AND price < 1100", Replay(last=2)),
        ("price > 0 AND price < 1100", Replay(since=LONG_AGO + 1000)),
        ("price > 0 AND price < 1100", Replay(latest_by="type", all=True)),
    ], "each is called once, however many pages there are, and not for what it does not offer"


async def test_answers_cross_brokers_and_what_a_broker_has_too_comes_once(tmp_path: Path) -> None:
    async with (
        broker("b1", data=tmp_path) as b1,
        broker("b2", (b1,)) as b2,
        broker("b3", (b2,)) as b3,
        client(b1, "desk") as desk,
        client(b3) as c,
    ):
        kept: list[Event] = old(1, 2)
        recent = await desk.subscribe("price > 2", lambda n: kept.append(n.event))
        await desk.replays("price > 0", lambda asked: kept)
        await known(b3)
        await desk.publish_many([quote(price) for price in (3, 4)])
        await until(lambda: len(kept) == 4)
        subscription = await c.subscribe("price > 1", replay=ALL)
        await desk.publish(quote(5))
        assert await taken(subscription, 4) == [2, 3, 4, 5]
        assert prices(await c.fetch("price > 0", limit=4)) == [2, 3, 4, 5]
        assert b3.host.core.topology.brokers() == {"b1", "b2", "b3"}
        await recent.unsubscribe()


async def test_several_clients_answer_and_an_answer_goes_to_who_asked_and_nobody_else() -> None:
    async with broker() as b, client(b, "one") as one, client(b, "two") as two, client(b) as c:
        other = await c.subscribe("price > 0")
        await one.replays("price > 0", lambda asked: old(1, 3))
        await two.replays("price > 0", lambda asked: old(2, 3, 4))
        assert prices(await c.fetch("price > 0", limit=None)) == [1, 2, 3, 4]
        assert other.try_get() is None


async def test_only_what_is_asked_for_is_sent_to_the_broker() -> None:
    said: list[Recalled] = []
    tasks: set[asyncio.Task[None]] = set()
    answering = Answering(said.append, tasks)
    answering.add("r", lambda asked: old(*range(1, 11)))
    for number, replay in enumerate(
        [ALL, Replay(last=2), Replay(last=2, since=LONG_AGO + 6), Replay(since=LONG_AGO + 3)]
    ):
        answering.take(Recall(number, "r", vestnik.Filter.parse("price < 7"), replay))
    answering.take(Recall(9, "withdrawn", vestnik.Filter.all(), ALL))
    await asyncio.gather(*tasks)
    assert [prices(one.events) for one in said] == [[1, 2, 3, 4, 5, 6], [5, 6], [6], [3, 4, 5, 6]]
    await answering.end()


async def test_a_slow_reader_reads_on_in_the_answer() -> None:
    async with LocalBus() as bus, bus.client("desk") as desk:
        calls = 0

        def answer(asked: ReplayRequest) -> list[Event]:
            nonlocal calls
            calls += 1
            return old(*range(1, 2001))

        await desk.replays("price > 0", answer)
        subscription = await bus.subscribe("price > 0", replay=ALL, queue=10)
        assert await taken(subscription, 2000) == list(range(1, 2001))
        assert calls == 1


async def test_an_answer_that_was_closed_meanwhile_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.client.replays.IDLE", 0.01)
    closed = 0
    calls = 0

    async def answer(asked: ReplayRequest) -> AsyncIterator[Event]:
        nonlocal calls, closed
        calls += 1
        try:
            for event in old(*range(1, 2001)):
                yield event
        finally:
            closed += 1

    async with LocalBus() as bus, bus.client("desk") as desk:
        await desk.replays("price > 0", answer)
        subscription = await bus.subscribe("price > 0", replay=ALL, queue=10)
        await until(lambda: closed == 1)
        assert await taken(subscription, 2000) == list(range(1, 2001))
        assert calls > 1


async def test_a_generator_that_fails_when_it_is_closed_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(asked: ReplayRequest) -> AsyncIterator[Event]:
        try:
            for event in old(*range(1, 2001)):
                yield event
        finally:
            raise ValueError("closing")

    async with LocalBus() as bus, bus.client("desk") as desk:
        await desk.replays("price > 0", answer)
        subscription = await bus.subscribe("price > 0", replay=ALL, queue=10)
        assert await taken(subscription, 20) == list(range(1, 21))
    assert "failed when it was closed" in caplog.text


async def test_few_answers_are_kept_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.client.replays.MOST_OPEN", 1)
    async with LocalBus() as bus, bus.client("desk") as desk:
        await desk.replays("price > 0", lambda asked: old(*range(1, 1001)))
        many = [await bus.subscribe("price > 0", replay=ALL, queue=10) for _ in range(3)]
        for subscription in many:
            assert await taken(subscription, 1000) == list(range(1, 1001))


def test_the_synchronous_client_answers_on_threads() -> None:
    async def serve(ready: asyncio.Future[str], over: asyncio.Event) -> None:
        async with broker() as b:
            ready.set_result(b.address)
            await over.wait()

    async def main() -> list[Any]:
        ready, over = asyncio.get_running_loop().create_future(), asyncio.Event()
        serving = asyncio.create_task(serve(ready, over))
        found = await asyncio.to_thread(use, await ready)
        over.set()
        await serving
        return found

    def use(address: str) -> list[Any]:
        with vestnik.connect_sync(address, name="desk") as desk, vestnik.connect_sync(address) as bus:

            def answer(asked: ReplayRequest) -> Iterator[Event]:
                desk.publish(quote(-1))  # it may use its client
                yield from old(1, 2)
                if asked.replay.last == 7:
                    raise ValueError("seven")

            with desk.replays("price > 0", answer) as replays:
                found = [prices(bus.fetch("price > 0")), prices(bus.fetch("price > 0", limit=None))]
                assert replays.name == "r1"
                with pytest.raises(WrongType, match="a plain function"):
                    desk.replays("price > 0", of_list)  # type: ignore[arg-type]
            return [*found, prices(bus.fetch("price > 0"))]

    assert asyncio.run(main()) == [[1, 2], [1, 2], []]


# --- answers that fail ---


def raises(asked: ReplayRequest) -> list[Event]:
    raise ValueError("no such table")


async def breaks_off(asked: ReplayRequest) -> AsyncIterator[Event]:
    for event in old(1, 2):
        yield event
    raise OSError("disk")


async def hangs(asked: ReplayRequest) -> list[Event]:
    await asyncio.Event().wait()
    return []


LARGE = Event("market.quote", {"price": 2, "text": "x" * (1 << 24)}, source="archive", id="large")


@pytest.mark.parametrize(
    ("answer", "found", "reason"),
    [
        (raises, [], "the answer failed: ValueError: no such table"),
        (breaks_off, [1, 2], "the answer failed: OSError: disk"),
        (lambda asked: None, [], "return a list or a generator of them"),
        (lambda asked: [*old(1), "rubbish"], [1], "is of Events"),
        (lambda asked: [*old(1), LARGE], [1], "bytes; at most"),
        (hangs, [], "the answer failed: TimeoutError"),
    ],
)
async def test_an_answer_that_fails_is_a_gap_and_holds_up_nobody(
    answer: Any, found: list[int], reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("vestnik.client.replays.PAGE_WITHIN", 0.2)
    async with LocalBus(broker="b1") as bus, bus.client("desk") as desk:
        await desk.replays("price > 0", answer)
        subscription = await bus.subscribe("price > 0", replay=ALL)
        got = await taken(subscription, len(found))
        told = await first_gap(bus, subscription)
        assert got == found and told.startswith("the history r1 of client desk at b1: ") and reason in told
        assert prices(await bus.fetch("price > 0", limit=None)) == [*found, 1000]
        assert any(reason in record.getMessage() for record in caplog.records if "not all" in record.getMessage())
        picked = await bus.subscribe("price > 0", replay=Replay(last=5))
        first = await picked.get(PATIENCE)
        assert first.gap is not None and reason in first.gap.reason


async def test_a_client_that_dies_in_the_middle_of_an_answer_is_a_gap() -> None:
    async with broker("b1") as b1, broker("b2", (b1,)) as b2, client(b1) as p, client(b2) as c:
        desk = client(b1, "desk")
        await desk.__aenter__()
        reached = asyncio.Event()

        async def answer(asked: ReplayRequest) -> AsyncIterator[Event]:
            for event in old(*range(1, 501)):
                yield event
            yield old(501)[0]
            reached.set()
            await asyncio.Event().wait()

        await desk.replays("price > 0", answer)
        await known(b2)
        subscription = await c.subscribe("price > 0", replay=ALL)
        await asyncio.wait_for(reached.wait(), PATIENCE)
        await desk.close()
        assert await taken(subscription, 500) == list(range(1, 501))
        assert await first_gap(p, subscription) == "the history r1 of client desk at b1 cannot be reached"
        await until(lambda: not b2.host.core.topology.histories)


async def test_a_link_that_is_lost_in_the_middle_of_an_answer_is_a_gap() -> None:
    async with broker("b2") as b2, client(b2) as c:
        b1 = broker("b1", (b2,))
        await b1.__aenter__()
        async with client(b1, "desk") as desk:
            asked = asyncio.Event()

            async def answer(request: ReplayRequest) -> list[Event]:
                asked.set()
                return await hangs(request)

            await desk.replays("price > 0", answer)
            await known(b2)
            subscription = await c.subscribe("price > 0", replay=ALL)
            await asyncio.wait_for(asked.wait(), PATIENCE)
            await b1.__aexit__()
            assert await first_gap(c, subscription) == "the history r1 of client desk at b1 cannot be reached"


async def test_a_client_that_comes_back_answers_again() -> None:
    async with broker("b1") as b1, client(b1) as c, client(b1, "desk") as desk:
        await desk.replays("price > 0", lambda asked: old(1))
        core = b1.host.core
        b1.host._refuse(b1.host._ends["desk"], "busy", "the test says so")
        assert not core.topology.histories
        await known(b1)
        assert prices(await c.fetch("price > 0")) == [1]


async def test_an_answer_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.client.replays.AT_ONCE", 2)
    async with LocalBus() as bus, bus.client("desk") as desk:
        running = most = 0

        async def answer(asked: ReplayRequest) -> list[Event]:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return old(1)

        await desk.replays("price > 0", answer)
        found = await asyncio.gather(*[bus.fetch("price > 0") for _ in range(10)])
        assert [prices(events) for events in found] == [[1]] * 10 and most == 2


async def test_replays_are_checked_and_end_once() -> None:
    async with LocalBus() as bus:
        replays = await bus.replays("price > 0", of_list, name="past")
        for offered, answer, error in (
            ("price >", of_list, None),
            ("price > 0", 5, WrongType),
            (5, of_list, WrongType),
        ):
            with pytest.raises(error or vestnik.FilterError):
                await bus.replays(offered, answer)  # type: ignore[arg-type]
        with pytest.raises(WrongValue, match="that one is taken"):
            await bus.replays("price > 0", of_list, name="past")
        await replays.close()
        await replays.close()
        await bus.replays("price > 0", of_list, name="past")


# --- rights ---

ACCESS = """
[desk]
tokens = ["{desk}"]
publish = "price < 3"

[reader]
tokens = ["{reader}"]
subscribe = true
replay = "price > 1"
"""


async def test_who_answers_needs_the_right_to_publish_and_who_asks_the_right_to_replay(tmp_path: Path) -> None:
    tokens = {"desk": "d" * 40, "reader": "r" * 40}
    async with (
        broker(access=access_file(tmp_path, ACCESS, **tokens)) as b,
        client(b, "d", token=tokens["desk"]) as desk,
        client(b, "r", token=tokens["reader"]) as reader,
    ):
        asks: list[str] = []

        def answer(asked: ReplayRequest) -> list[Event]:
            asks.append(str(asked.filter))
            return old(1, 2, 3, 4)

        with pytest.raises(NotAccepted, match="no right to publish"):
            await reader.replays("price > 0", answer)
        with pytest.raises(NotAccepted, match="no right to publish"):
            await desk.replays("price > 5", answer)
        await desk.replays("price > 0", answer)
        assert prices(await reader.fetch("price > 0")) == [2]
        assert asks == ["price > 1 AND price < 3"]
        with pytest.raises(NotAccepted, match="no right to replay"):
            await reader.subscribe("price > 0", replay=ALL)
