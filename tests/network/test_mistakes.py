"""What programs get wrong is said at once, and in their own process."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

import vestnik
from network.worlds import broker, client, quote, until
from vestnik.client.notifications import Notification
from vestnik.errors import Disconnected


async def test_arguments_of_the_wrong_kind() -> None:
    async with broker() as b, client(b) as c:
        for durable in (True, False):
            with pytest.raises(TypeError, match="an Event is published, not dict"):
                await c.publish(cast(Any, {"price": 1}), durable=durable)
        with pytest.raises(TypeError, match=r"replay is a Replay, such as Replay\(last=10\), not 'all'"):
            await c.subscribe("TRUE", replay=cast(Any, "all"))
        with pytest.raises(TypeError, match="a filter is a Filter or its text, not int"):
            await c.subscribe(cast(Any, 3))


async def test_what_objects_look_like() -> None:
    async with broker() as b, client(b, "desk") as c:
        subscription = await c.subscribe("price > 1", name="s")
        assert repr(subscription) == "<Subscription s of desk: price > 1; 0 waiting>"
        assert repr(c).endswith(f"desk, connected to {b.address}, 1 subscriptions>")
    assert "not connected" in repr(c)


async def test_a_callback_may_close_its_client() -> None:
    async with broker() as b, client(b) as p:
        c = await client(b).__aenter__()
        closed = threading.Event()

        async def leave(_: Notification) -> None:
            await c.close()
            closed.set()

        await c.subscribe("TRUE", leave)
        await p.publish(quote(1))
        await until(closed.is_set)
        await until(lambda: len(b.host.guests) == 1)


def test_a_synchronous_client_that_is_not_open() -> None:
    bus = vestnik.connect_sync("127.0.0.1:1")
    for use in (lambda: bus.publish(quote(1)), lambda: bus.subscribe("TRUE"), lambda: bus.name):
        with pytest.raises(Disconnected, match="use the client in `with`"):
            use()
    assert repr(bus) == "<SyncBus, not open>"


async def test_a_synchronous_client_called_from_its_callback() -> None:
    said: list[Exception] = []
    done = threading.Event()

    def use(address: str) -> None:
        with vestnik.connect_sync(address) as bus:

            def again(notification: Notification) -> None:
                try:
                    bus.publish(quote(2))
                except RuntimeError as error:
                    said.append(error)
                done.set()

            subscription = bus.subscribe("price = 1", again)
            assert repr(subscription).startswith("<SyncSubscription s1 of ")
            bus.publish(quote(1))
            done.wait(20)

    async with broker() as b:
        thread = threading.Thread(target=use, args=(b.address,))
        thread.start()
        await until(lambda: not thread.is_alive())
    assert "queue.Queue" in str(said[0])
