"""Events of those who publish much are routed in turns with those of others; nothing is lost or reordered by it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from attacks.protocol import Raw
from network.worlds import PATIENCE, broker, client, quote, taken, until
from vestnik import Event, Replay
from vestnik.broker.effects import Append, Appended
from vestnik.journal import Journal
from vestnik.model.times import MICROS
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.server import credit, dispatch, preparing
from vestnik.server.backlog import OWN, Backlog, events_of
from vestnik.server.credit import Credit
from vestnik.server.dispatch import Dispatch
from vestnik.server.limits import Limits
from vestnik.server.parts import Batches
from vestnik.server.process import Broker
from vestnik.transport.addresses import read_address
from vestnik.transport.ends import End
from vestnik.wire.frames import VERSION
from vestnik.wire.messages import Hello, Message, Publish, Refusal, Refused, Stored, Welcome
from vestnik.wire.origins import Frontiers, Origin, Routed

FAR = Origin("far", 1)


def events(source: str, count: int, **terms: Any) -> tuple[Event, ...]:
    return tuple(Event("t", source=source, id=str(number), **terms) for number in range(count))


def appended(client: str, source: str, count: int, **terms: Any) -> Appended:
    return Appended(Append(client, events(source, count), first=terms.pop("first", 1), packed=(b"",) * count, **terms))


def turns(backlog: Backlog, most: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the sender that has its turn, and the events that are routed then."""
    while (lane := backlog.turn()) is not None:
        message, sender = backlog.take(lane, most)
        yield sender, [event.id for event in events_of(message)]


def test_lanes_take_turns_and_each_keeps_its_order() -> None:
    backlog = Backlog()
    backlog.put(OWN, appended("a", "x", 3), "a")
    backlog.put("n", Routed(FAR, events("y", 1)), "n")
    backlog.put(OWN, appended("b", "z", 1), "b")
    assert list(turns(backlog, 2)) == [("a", ["0", "1"]), ("n", ["0"]), ("a", ["2"]), ("b", ["0"])]
    assert not backlog.has(OWN) and not backlog.has("n") and not backlog


def test_no_frontier_overtakes_the_events_before_it() -> None:
    backlog = Backlog()
    frontiers = Frontiers(((FAR, 5),))
    backlog.put("n", Routed(FAR, events("x", 3)), "n")
    backlog.put("n", frontiers, "n")
    said = [backlog.take("n", 2)[0] for _ in range(3)]
    assert [len(events_of(message)) for message in said] == [2, 1, 0]
    assert said[-1] is frontiers


def test_who_publishes_is_answered_with_the_last_part() -> None:
    backlog = Backlog()
    refusal = Refusal("r", "no")
    backlog.put(OWN, appended("a", "x", 3, request=7, refused=(refusal,)), "a")
    parts = [backlog.take(OWN, 2)[0] for _ in range(2)]
    answers = [(part.what.request, part.what.refused) for part in parts if isinstance(part, Appended)]
    assert answers == [(0, ()), (7, (refusal,))]


def test_parts_keep_the_offsets_of_their_events() -> None:
    backlog = Backlog()
    backlog.put(OWN, appended("a", "x", 5, first=11), "a")
    parts = [backlog.take(OWN, 2)[0] for _ in range(3)]
    offsets = [(part.what.first, part.what.end, len(part.what.packed)) for part in parts if isinstance(part, Appended)]
    assert offsets == [(11, 13, 2), (13, 15, 2), (15, 16, 1)]


def test_a_link_that_is_down_takes_its_messages_with_it_and_no_others() -> None:
    backlog = Backlog()
    backlog.put("n", Routed(FAR, events("x", 2)), "n")
    backlog.put(OWN, appended("a", "x", 1), "a")
    backlog.drop("n")
    assert [sender for sender, _ in turns(backlog, 9)] == ["a"]
    backlog.drop("n")
    assert not backlog


def test_who_publishes_what_costs_much_has_less_on_its_way() -> None:
    cheap, dear = Credit(), Credit()
    for one, seconds in ((cheap, 1e-6), (dear, 1e-2)):
        one.took(100)
        one.routed(100, 100 * seconds)
    assert cheap.room(0) == credit.MOST and dear.room(0) == credit.FEWEST
    cheap.took(credit.MOST)
    assert cheap.room(0) == 0
    cheap.dropped(5)
    assert cheap.room(0) == 5
    assert Credit().room(10**9) == credit.FEWEST, "nothing is known of it, and there are many subscriptions"


class Nowhere(End):
    def send(self, message: Any) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


def test_a_batch_is_answered_once_with_the_refusals_of_all_its_parts() -> None:
    batches, end = Batches(), Nowhere()
    first, second = Refusal("0", "no"), Refusal("4", "no")
    batches.begin("a", end, Publish(events("x", 5), refused=(first,), request=7))
    parts = [batches.take(end, 3), batches.take(end, 3)]
    assert [(len(part.events), part.refused) for part in parts] == [(3, (first,)), (2, ())]
    assert not batches.is_open(end)
    assert batches.answered("a", Stored(parts[0].request, (first,))) is None
    assert batches.answered("a", Stored(8)) == Stored(8), "another request"
    assert batches.answered("a", Stored(parts[1].request, (second,))) == Stored(7, (first, second))


def test_a_part_that_may_be_stored_makes_the_batch_so() -> None:
    batches, end = Batches(), Nowhere()
    batches.begin("a", end, Publish(events("x", 2), request=7))
    parts = [batches.take(end, 1), batches.take(end, 1)]
    assert batches.answered("a", Refused(parts[0].request, "who knows", unknown=True)) is None
    assert batches.answered("a", Stored(parts[1].request)) == Refused(7, "who knows", unknown=True)


def test_the_answer_to_a_part_is_nothing_to_a_client_that_has_come_again() -> None:
    batches, end = Batches(), Nowhere()
    batches.begin("a", end, Publish(events("x", 2), request=7))
    part = batches.take(end, 1)
    batches.left(end)
    assert batches.answered("a", Stored(part.request)) is None and not batches.is_open(end)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns of one event, and room for three."""
    for name, value in {"MOST": 3, "LEAST": 2, "FEWEST": 1, "UNKNOWN": 1, "KNOWN": 1}.items():
        monkeypatch.setattr(credit, name, value)
    for name, few in {"TURN": 0.0, "PART": 1, "FEWEST": 1}.items():
        monkeypatch.setattr(dispatch, name, few)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_batch_arrives_whole_and_in_order_however_small_its_parts(tmp_path: Path, is_stored: bool) -> None:
    async with (
        asyncio.timeout(PATIENCE),
        broker("b1", data=tmp_path if is_stored else None) as b1,
        broker("b2", join=(b1,)) as b2,
        client(b1) as near,
        client(b2) as far,
    ):
        here = await near.subscribe("type IS market.quote")
        there = await far.subscribe("type IS market.quote", settled=True)
        reader, writer = await asyncio.open_connection(*read_address(b1.address))
        raw = Raw(reader, writer)
        await raw.say(Hello(VERSION, "p"))
        await raw.hear(Welcome)
        batch = tuple(quote(number, id=str(number)) for number in range(50))
        await raw.say(Publish(batch, request=1), Publish((quote(50), quote(99, id="7")), request=2), Publish(batch[:1]))
        assert await raw.hear(Stored) == Stored(1)
        second = await raw.hear(Stored)
        assert isinstance(second, Stored) and [one.id for one in second.refused] == ["7"]
        writer.close()
        for subscription in (here, there):
            assert await taken(subscription, 51) == list(range(51))


@pytest.mark.usefixtures("tiny")
async def test_a_replay_joins_events_that_wait_without_a_gap_or_a_repeat(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), broker(data=tmp_path) as b, client(b) as p, client(b) as c:
        publishing = asyncio.gather(*[p.publish(quote(number)) for number in range(200)])
        subscriptions = []
        while not publishing.done():
            subscriptions.append(await c.subscribe("type IS market.quote", replay=Replay(all=True)))
            await asyncio.sleep(0)
        for subscription in subscriptions:
            assert await taken(subscription, 200) == list(range(200))


@pytest.mark.usefixtures("tiny")
async def test_what_a_client_publishes_before_it_leaves_is_routed() -> None:
    async with asyncio.timeout(PATIENCE), broker() as b, client(b) as c:
        subscription = await c.subscribe("type IS market.quote")
        async with client(b) as p:
            for number in range(100):
                await p.publish(quote(number), durable=False)
        assert await taken(subscription, 100) == list(range(100))
        await until(lambda: list(b.host.engine.dispatch._senders) in ([], [c.name]))


class NoLoad(Router):
    def load(self, client: str) -> int:
        return 0


class Handling:
    """A dispatch in which all events wait for their turn, and what it has done."""

    def __init__(self) -> None:
        self.handled: list[tuple[str, int]] = []
        self.went_on: list[str] = []
        self.flushed: list[int] = []  # how many messages were handled by then
        self.is_pressed = False
        self.fails = False
        router = NoLoad(make_strategy("simple"))
        self.dispatch = Dispatch(router, self._handle, self._flush, self.went_on.append, lambda client: self.is_pressed)

    def _handle(self, message: Message, sender: str) -> None:
        self.handled.append((sender, len(events_of(message))))
        if self.fails:
            raise AssertionError("it cannot be routed")

    def _flush(self) -> None:
        self.flushed.append(len(self.handled))


@pytest.fixture
async def waiting(monkeypatch: pytest.MonkeyPatch) -> Handling:
    monkeypatch.setattr(Dispatch, "_has_time", lambda self: False)
    return Handling()


async def test_messages_of_a_neighbour_wait_for_its_events_and_not_for_those_of_others(waiting: Handling) -> None:
    dispatch = waiting.dispatch
    dispatch.take(Routed(FAR, events("s", 2)), "n")
    dispatch.take(Frontiers(()), "n")
    dispatch.take(Frontiers(()), "m")
    assert waiting.handled == [("m", 0)] and dispatch.is_behind("n") and not dispatch.is_behind("m")
    await asyncio.sleep(0.01)
    assert waiting.handled == [("m", 0), ("n", 2), ("n", 0)]
    assert waiting.went_on == ["n"] and not dispatch.is_behind("n")


async def test_what_waits_is_dropped_with_its_link_and_what_comes_over_the_next_is_handled(waiting: Handling) -> None:
    dispatch = waiting.dispatch
    dispatch.take(Routed(FAR, events("s", 2)), "n")
    dispatch.take(Frontiers(()), "n")
    dispatch.link_down("n")
    assert dispatch.is_idle("n") and not dispatch.is_behind("n")
    dispatch.take(Routed(FAR, events("s", 3)), "n")
    await asyncio.sleep(0.01)
    assert waiting.handled == [("n", 3)] and dispatch.is_idle("n")


async def test_what_follows_from_events_that_waited_is_flushed_together_and_in_time(waiting: Handling) -> None:
    dispatch = waiting.dispatch
    for number in range(3):
        dispatch.take(Routed(FAR, events("s", 1)), f"n{number}")
    await until(lambda: len(waiting.handled) == 3)
    assert waiting.flushed[:1] == [1], "nothing was flushed lately"
    await until(lambda: waiting.flushed[-1] == 3)


async def test_a_message_that_fails_is_flushed_as_far_as_it_was_handled(
    waiting: Handling, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failed.append(str(context["exception"])))
    dispatch, waiting.fails = waiting.dispatch, True
    for number in range(2):
        dispatch.take(Routed(FAR, events("s", 1)), f"n{number}")
    await until(lambda: len(waiting.handled) == 2 and bool(waiting.flushed) and waiting.flushed[-1] == 2)
    assert failed == ["it cannot be routed"] * 2


async def test_nothing_is_flushed_after_the_end(waiting: Handling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "FLUSH_EVERY", 0.1)
    for number in range(2):
        waiting.dispatch.take(Routed(FAR, events("s", 1)), f"n{number}")
    await until(lambda: len(waiting.handled) == 2)
    waiting.dispatch.close()
    flushed = len(waiting.flushed)
    await asyncio.sleep(0.2)
    assert len(waiting.flushed) == flushed


async def test_publishers_wait_while_a_reader_would_lose_events_and_then_go_on(waiting: Handling) -> None:
    dispatch, waiting.is_pressed = waiting.dispatch, True
    assert dispatch.room("p") == 0 == dispatch.room("q")
    await until(lambda: len(waiting.went_on) == 2)
    assert set(waiting.went_on) == {"p", "q"}, "each looks again, once"
    assert dispatch.room("p") == 0
    waiting.is_pressed = False
    await until(lambda: waiting.went_on[2:] == ["p"])
    assert dispatch.room("p") > 0


@pytest.mark.parametrize(
    ("where", "weight"),
    [("near", preparing.WEIGHT), ("near", 0), ("far", preparing.WEIGHT), ("itself", preparing.WEIGHT), ("itself", 0)],
)
async def test_a_slow_reader_of_a_log_in_memory_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, where: str, weight: int
) -> None:
    """Publishers wait for it; one that is slow itself is heard meanwhile, or it could not say what it has taken."""
    monkeypatch.setattr(preparing, "WEIGHT", weight)
    async with (
        asyncio.timeout(PATIENCE),
        broker("b1", limits=Limits(stalled=3600)) as b1,
        broker("b2", join=(b1,)) as b2,
        client(b1, "p") as p,
        client(b2 if where == "far" else b1) as other,
    ):
        slow = p if where == "itself" else other
        subscription = await slow.subscribe("note LIKE '%a_a%'", queue=10, settled=True)
        tail = b1.host.core.recovery.tail
        tail.room = 200_000
        all_of_it = [Event("market.quote", {"price": price, "note": "abac"}) for price in range(1200)]

        async def publish() -> None:
            for first in range(0, 1200, 50):
                await p.publish_many(all_of_it[first : first + 50])

        publishing = asyncio.create_task(publish())
        for price in range(1200):
            notification = await subscription.get()
            assert notification.gap is None and notification.event.data["price"] == price
            await asyncio.sleep(0.001)
        await publishing
        assert tail.start > tail.begin, "the log was full"


async def test_events_have_one_turn_at_a_time_however_often_a_link_goes_down(
    waiting: Handling, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []
    dispatch = waiting.dispatch
    route_on = dispatch._route_on

    def counted() -> None:
        turns.append(1)
        route_on()

    monkeypatch.setattr(dispatch, "_route_on", counted)
    for _ in range(5):
        dispatch.take(Routed(FAR, events("s", 2)), "n")
        dispatch.link_down("n")
    dispatch.take(Routed(FAR, events("s", 1)), "n")
    await asyncio.sleep(0)
    assert len(turns) == 1


@asynccontextmanager
async def raw(b: Broker, name: str) -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_connection(*read_address(b.address))
    connection = Raw(reader, writer)
    await connection.say(Hello(VERSION, name))
    await connection.hear(Welcome)
    yield connection
    writer.close()


@pytest.mark.usefixtures("tiny")
async def test_no_client_takes_the_answer_to_another(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), broker(data=tmp_path) as b, raw(b, "good") as good, raw(b, "evil") as evil:
        await good.say(Publish(tuple(quote(number, id=str(number)) for number in range(200)), request=1))
        for number in range(400):
            await evil.say(Publish((), request=-number), Publish((), request=(1 << 64) - 1 - number))
        assert await good.hear(Stored) == Stored(1)


async def test_a_request_with_a_negative_number_is_answered() -> None:
    async with asyncio.timeout(PATIENCE), broker() as b, raw(b, "one") as one:
        await one.say(Publish((quote(1),), request=-5))
        assert await one.hear(Stored) == Stored(-5)


async def test_nothing_is_remembered_of_a_client_that_left_before_its_event_was_due() -> None:
    async with asyncio.timeout(PATIENCE), broker() as b:
        async with client(b, "early") as c:
            await c.publish(Event("t", not_before=int((time.time() + 0.3) * MICROS)))
        dispatch = b.host.engine.dispatch
        await until(lambda: b.host.counts.taken == 1)
        await until(lambda: not dispatch._senders)


async def test_room_is_given_back_though_a_client_that_has_come_again_goes_on_publishing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sync = Journal.sync

    def slow(journal: Journal) -> int:
        time.sleep(0.03)
        return sync(journal)

    monkeypatch.setattr(preparing, "WEIGHT", 2_000)
    monkeypatch.setattr(Journal, "sync", slow)
    async with asyncio.timeout(PATIENCE), broker(data=tmp_path) as b, client(b) as subscriber:
        await subscriber.subscribe("text LIKE '%b_b%'")
        host, large = b.host, Event("t", {"text": "ab" * 500, "items": list(range(2_000))}, id="large")
        room = host._preparations._room
        async with raw(b, "p") as first:
            await first.say(Publish((large,), request=1))
            await until(lambda: room._used > 0 and not host.engine.dispatch.is_idle("p"))
            async with raw(b, "p") as second:
                number = 0
                while room._used:  # which would not end if all that the client publishes were waited for
                    number += 1
                    await second.say(Publish((Event("t", id=str(number)),), request=number))
                    await asyncio.sleep(0.001)
