"""The queue of a subscription is the window of the broker: the client acknowledges what the application has taken."""

from __future__ import annotations

import asyncio

import pytest

from session.scripted import ScriptedBroker, quote, scripted
from vestnik.client import bus as client
from vestnik.client.notifications import Gap, Notification, Overflow
from vestnik.client.subscriptions import QUEUE
from vestnik.client.turns import TURN
from vestnik.errors import Disconnected
from vestnik.wire.messages import Gap as LogGap
from vestnik.wire.messages import Subscribe, Took

AT_ONCE, LATER = 0.02, 0.15


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TAKEN_EVERY", 0.1)


def acknowledged(broker: ScriptedBroker) -> list[int]:
    return [position.after for took in broker.of(Took) for position in took.positions]


async def test_a_quarter_of_the_window_is_acknowledged_at_once_and_the_rest_soon() -> None:
    async with scripted() as (bus, broker):
        subscription = await bus.subscribe("TRUE", queue=8)
        assert [message.window for message in broker.of(Subscribe)] == [8]
        broker.notify(map(quote, range(1, 9)))
        await asyncio.sleep(LATER)
        assert acknowledged(broker) == [], "nothing was taken"
        for _ in range(5):
            await subscription.get()
        assert acknowledged(broker) == [2, 4], "the fifth is in hand"
        subscription.try_get()
        assert acknowledged(broker) == [2, 4]
        await asyncio.sleep(LATER)
        assert acknowledged(broker) == [2, 4, 5]
        await asyncio.sleep(LATER)
        assert acknowledged(broker) == [2, 4, 5], "there is nothing to tell"


async def test_a_window_of_one_is_never_waited_for() -> None:
    async with scripted() as (bus, broker):
        subscription = await bus.subscribe("TRUE", queue=1)
        for number in range(1, 4):
            broker.notify([quote(number)])
            assert (await subscription.get(1)).number == number
            assert subscription.try_get() is None
            assert acknowledged(broker)[-1] == number


async def test_a_callback_has_taken_a_notification_when_it_is_done() -> None:
    async with scripted() as (bus, broker):
        finish = asyncio.Event()
        called: list[int] = []

        async def slowly(notification: Notification) -> None:
            called.append(notification.number)
            await finish.wait()

        await bus.subscribe("TRUE", slowly, queue=4)
        await asyncio.sleep(0)
        broker.notify(map(quote, range(1, 4)))
        await asyncio.sleep(AT_ONCE)
        assert called == [1] and acknowledged(broker) == []
        finish.set()
        await asyncio.sleep(AT_ONCE)
        assert called == [1, 2, 3] and acknowledged(broker) == [1, 2, 3]


async def test_a_callback_that_returns_at_once_acknowledges_no_more_than_it_was_called_with() -> None:
    async with scripted() as (bus, broker):
        called: list[tuple[int, list[int]]] = []
        await bus.subscribe("TRUE", lambda n: called.append((n.number, acknowledged(broker)[-1:])), queue=8)
        await asyncio.sleep(0)
        broker.notify(map(quote, range(1, 8)))
        assert called == [(1, []), (2, []), (3, [2]), (4, [2]), (5, [4]), (6, [4]), (7, [6])]


@pytest.mark.parametrize("overflow", ["drop-oldest", "disconnect"])
async def test_what_may_be_dropped_here_is_acknowledged_when_it_comes(overflow: Overflow) -> None:
    async with scripted() as (bus, broker):
        subscription = await bus.subscribe("TRUE", queue=600, overflow=overflow)
        assert [message.window for message in broker.of(Subscribe)] == [QUEUE]
        broker.notify(map(quote, range(1, 252)))
        assert acknowledged(broker) == [250] and subscription.waiting == 250
        await asyncio.sleep(LATER)
        assert acknowledged(broker) == [250, 251]


async def test_a_subscription_that_disconnects_ends_when_its_queue_is_full() -> None:
    async with scripted() as (bus, broker):
        subscription = await bus.subscribe("TRUE", queue=2, overflow="disconnect")
        broker.notify(map(quote, (1, 2, 3)))
        assert [(await subscription.get(1)).number for _ in range(2)] == [1, 2]
        with pytest.raises(Disconnected, match="more than 2 were not taken"):
            await subscription.get(1)


async def test_what_is_dropped_is_told_as_a_gap() -> None:
    async with scripted() as (bus, broker):
        subscription = await bus.subscribe("TRUE", queue=2, overflow="drop-oldest")
        broker.notify(map(quote, range(1, 6)))
        first = await subscription.get(1)
        assert (first.number, first.gap) == (4, Gap(3, "they were not taken: at most 2 wait"))
        assert (await subscription.get(1)).gap is None and subscription.dropped == 3


async def test_a_gap_of_a_log_is_told_in_words_and_does_not_fill_the_window() -> None:
    async with scripted() as (bus, broker):
        subscription = await bus.subscribe("TRUE", queue=1)
        broker.notify([LogGap("b/1", 1, 7, "retention dropped them")])
        assert acknowledged(broker) == [1]
        broker.notify([quote(7)])
        gap = (await subscription.get(1)).gap
        assert gap == Gap(None, "retention dropped them (log b/1, offsets 1 to 6)")


async def test_what_was_taken_is_told_when_the_client_leaves() -> None:
    async with scripted("me") as (bus, broker):
        subscription = await bus.subscribe("TRUE", queue=100)
        broker.notify(map(quote, range(1, 4)))
        assert [n.number for n in subscription.fetch()] == [1, 2, 3]
    assert acknowledged(broker) == [3]


async def test_what_an_urgent_event_overtook_is_not_acknowledged_with_it() -> None:
    async with scripted("me") as (bus, broker):
        subscription = await bus.subscribe("TRUE", queue=100)
        broker.notify([quote(1), quote(2), quote(3, priority=9)])
        assert (await subscription.get(1)).number == 3
        assert (await subscription.get(1)).number == 1
        await asyncio.sleep(LATER)
        assert acknowledged(broker) == []
        assert (await subscription.get(1)).number == 2
        await asyncio.sleep(LATER)
        assert acknowledged(broker) == [1]


async def test_after_a_reconnect_the_window_is_what_it_was() -> None:
    async with scripted() as (bus, broker):
        subscription = await bus.subscribe("TRUE", queue=8)
        broker.notify(map(quote, range(1, 6)))
        for _ in range(3):
            await subscription.get(1)
        broker.cut()
        await asyncio.sleep(LATER)
        again = broker.of(Subscribe)[-1]
        assert (again.window, again.last, dict(again.seen)) == (8, 2, {"b/1": 6})
        broker.notify(map(quote, range(6, 8)))
        assert [n.number for n in subscription.fetch()] == [4, 5, 6, 7]


async def test_what_was_seen_is_what_was_taken() -> None:
    async with scripted() as (bus, broker):
        subscription = await bus.subscribe("TRUE")
        assert subscription.seen == {"b/1": 1}
        broker.notify(map(quote, (1, 2)))
        assert subscription.seen == {"b/1": 1}, "two wait"
        await subscription.get(1)
        assert subscription.seen == {"b/1": 1}, "one waits"
        await subscription.get(1)
        assert subscription.seen == {"b/1": 3}
        broker.notify([quote(3)])
        assert subscription.seen == {"b/1": 3}
        await subscription.unsubscribe()
        assert subscription.seen == {"b/1": 3}


async def test_more_than_fits_in_a_turn_moves_the_cursor_too() -> None:
    async with scripted() as (bus, broker):
        subscription = await bus.subscribe("TRUE")
        broker.notify(map(quote, range(1, TURN + 6)))
        for _ in range(TURN + 5):
            await subscription.get(1)
        assert subscription.seen == {"b/1": TURN + 6}
