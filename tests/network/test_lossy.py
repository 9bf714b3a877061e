"""Notifications that are lost between a broker and a client, and brokers that shed load."""

from __future__ import annotations

import pytest

import vestnik
from network.proxies import LossyProxy
from network.worlds import broker, client, quote, until
from vestnik import Adaptive, Constant, Event, MultiplicativeDecrease, RandomInterval
from vestnik.client.subscriptions import Subscription
from vestnik.session.checking import Checking

STRATEGIES: dict[str, Checking] = {
    "adaptive": Adaptive(delta=0.1, alpha=0.5, first=0.1),
    "multiplicative decrease": MultiplicativeDecrease(0.5, first=0.1),
    "random": RandomInterval(0.05, 0.15, first=0.1),
    "constant": Constant(0.1),
}
each = pytest.mark.parametrize("checking", STRATEGIES.values(), ids=STRATEGIES)


async def arrived(subscription: Subscription, count: int) -> list[tuple[int, int]]:
    """The number and the price of the next notifications; none is said to be lost."""
    found = [await subscription.get(20) for _ in range(count)]
    assert [n.gap for n in found] == [None] * count
    return [(n.number, n.event.data["price"]) for n in found]


@each
async def test_all_arrives_in_order_and_once_where_some_notifications_are_lost(checking: Checking) -> None:
    async with broker() as b, LossyProxy(b, 0.3, seed=1) as link, client(b) as p, vestnik.connect(link.address) as c:
        subscription = await c.subscribe("price > 0", checking=checking)
        for price in range(1, 151):
            await p.publish(quote(price))
        before = link.asked
        link.loss = 1.0
        for price in range(151, 161):
            await p.publish(quote(price))
        assert await arrived(subscription, 160) == [(price, price) for price in range(1, 161)]
        assert subscription.try_get() is None
        assert link.lost > 20 and link.asked > before, "after the last that came nothing shows a gap: checks found it"


@each
async def test_all_arrives_where_every_notification_is_lost(checking: Checking) -> None:
    async with broker() as b, LossyProxy(b, 1.0, seed=2) as link, client(b) as p, vestnik.connect(link.address) as c:
        subscription = await c.subscribe("price > 0", checking=checking)
        for first in (1, 11, 21):
            await p.publish_many([quote(price) for price in range(first, first + 10)])
            assert await arrived(subscription, 10) == [(price, price) for price in range(first, first + 10)]
        assert link.lost >= 3 and link.asked >= 3


async def test_without_checking_the_next_that_comes_shows_what_was_lost() -> None:
    async with broker() as b, LossyProxy(b, 1.0, seed=3) as link, client(b) as p, vestnik.connect(link.address) as c:
        subscription = await c.subscribe("price > 0")
        await p.publish_many([quote(1), quote(2)])
        await until(lambda: link.lost > 0)
        link.loss = 0.0
        assert link.asked == 0
        await p.publish(quote(3))
        assert await arrived(subscription, 3) == [(1, 1), (2, 2), (3, 3)]
        assert link.asked == 1


async def test_what_a_link_does_not_carry_waits_in_the_log_and_arrives_when_it_carries_again() -> None:
    async with (
        broker() as b,
        LossyProxy(b, 0.0, seed=4) as link,
        client(b) as p,
        vestnik.connect(link.address, name="slow") as c,
    ):
        subscription = await c.subscribe("price > 0", checking=Constant(60))
        reader = b.host.core.clients["slow"].subscriptions[subscription.name].reader
        link.hold()
        big = [Event("quote", {"price": price, "text": "x" * 10_000}) for price in range(1, 1501)]
        for start in range(0, 1500, 100):
            await p.publish_many(big[start : start + 100])
        assert reader.room == 0 and reader.in_flight < 150, "a megabyte is in flight"
        link.release()
        assert await arrived(subscription, 1500) == [(price, price) for price in range(1, 1501)]
        assert link.asked == 0 == link.lost, "nothing has to be asked for"
