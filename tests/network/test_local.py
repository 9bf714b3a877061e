"""Brokers inside a program, and the synchronous client."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import vestnik
from network.worlds import broker, client, quote, taken, until
from vestnik import Event, LocalBus
from vestnik.client.bus import Bus
from vestnik.client.notifications import Notification
from vestnik.client.sync_services import SyncProducer
from vestnik.errors import Disconnected, NotAccepted, Unreachable


async def test_one_process_needs_no_sockets() -> None:
    async with LocalBus() as bus, bus.client("other") as other:
        subscription = await other.subscribe("price > 10")
        await bus.publish_many([quote(5), quote(50)])
        await bus.publish(quote(60), durable=False)
        assert await taken(subscription, 2) == [50, 60]
        await subscription.unsubscribe()


async def test_local_clients_are_held_to_what_they_advertise() -> None:
    async with LocalBus(advertisements=True) as bus:
        with pytest.raises(NotAccepted, match="advertised"):
            await bus.publish(quote(5))


async def test_a_broker_inside_a_program_has_an_uplink() -> None:
    async with broker() as b, client(b) as far, LocalBus(join=b.address) as near:
        here, there = await near.subscribe("price > 10"), await far.subscribe("price < 10")
        await until(lambda: len(b.host.core.router.subscriptions) == 2)
        await until(lambda: len(near._embedded.broker.host.core.router.subscriptions) == 2)
        await far.publish(quote(50))
        await near.publish(quote(5))
        assert await taken(here, 1) == [50] and await taken(there, 1) == [5]


class Served:
    """A broker on a thread of its own."""

    def __enter__(self) -> str:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._broker = broker()
        asyncio.run_coroutine_threadsafe(self._broker.__aenter__(), self._loop).result()
        return self._broker.address

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._broker.__aexit__(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def test_the_synchronous_client() -> None:
    with Served() as address, vestnik.connect_sync(address, name="sync") as bus:
        assert bus.name == "sync"
        with bus.subscribe("price > 10", handback=7) as subscription:
            bus.publish_many([quote(5), quote(50)])
            bus.publish(quote(60), durable=False)
            first = subscription.get(10)
            assert (first.event.data["price"], first.number, first.handback) == (50, 1, 7)
            assert next(subscription).number == 2
            assert subscription.try_get() is None and subscription.fetch() == []
            subscription.change("price < 10")
            assert str(subscription.filter) == "price < 10"
            with pytest.raises(TimeoutError):
                subscription.get(0.01)
        assert list(subscription) == []
        called = threading.Event()
        seen: list[Notification] = []

        def callback(notification: Notification) -> None:
            seen.append(notification)
            called.set()

        bus.subscribe("price > 10", callback)
        bus.publish(quote(70))
        assert called.wait(10) and seen[0].event.data["price"] == 70
        name = bus.advertise("price > 0")
        bus.unadvertise(name)
    with pytest.raises(Disconnected, match="`with`"):
        bus.publish(quote(1))


def test_services_of_the_synchronous_client() -> None:
    with Served() as address, vestnik.connect_sync(address) as bus, vestnik.connect_sync(address) as other:
        with bus.wanted("type IS market") as wanted:
            assert not wanted

            @bus.factory("type IS market", linger=0)
            def produce(producer: SyncProducer) -> None:
                price = 0
                while producer.goes_on(0.01):
                    price += 1
                    producer.publish(quote(price, subject="A"))

            with other.view("type IS market", key="subject") as view:
                wanted.wait(timeout=10)
                assert next(view.changes()).key == "A" and view["A"].data["price"] > 0
                assert list(view) == ["A"] and len(view) == 1
            wanted.wait(False, timeout=10)
            produce.close()

        def answer(notification: Notification) -> None:
            replier.submit(other.reply, notification, {"price": 3})

        with ThreadPoolExecutor(1) as replier:
            other.subscribe("type = 'price'", answer)
            assert bus.request(Event("price")).data["price"] == 3
            assert len(bus.request_all(Event("price"), timeout=10, limit=1)) == 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("producer")]


def test_the_synchronous_client_without_a_broker() -> None:
    with Served() as address:
        pass
    before = threading.active_count()
    with pytest.raises(Unreachable), vestnik.connect_sync(address, timeout=0.2):
        pass
    assert threading.active_count() == before


async def test_who_is_cancelled_as_its_client_leaves_is_cancelled() -> None:
    """And does not end with the error that it could not unsubscribe any more."""

    async def watch(bus: Bus) -> None:
        async with await bus.subscribe("TRUE") as everything:
            await anext(everything)

    async with LocalBus() as bus, bus.client("watcher") as watcher:
        watching = asyncio.create_task(watch(watcher))
        async with await bus.wanted("TRUE") as wanted:
            await wanted.wait(timeout=5)
        watching.cancel()
    await asyncio.wait([watching])
    assert watching.cancelled()
