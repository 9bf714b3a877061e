"""What programs get wrong is said at once, and in their own process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from inspect import isawaitable
from typing import Any, cast

import pytest

import vestnik
from network.worlds import broker, client, quote, until
from vestnik import Event, LocalBus, Replay
from vestnik.client.notifications import Notification
from vestnik.errors import Disconnected, VestnikError, WrongType


async def _waits(producer: Any) -> None: ...


def _plain(producer: Any) -> None: ...


ARGUMENTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "publish a dict": (lambda bus: bus.publish({"price": 1}), "an Event is published, not dict"),
    "post a dict": (lambda bus: bus.publish({"price": 1}, durable=False), "an Event is published, not dict"),
    "publish a class": (lambda bus: bus.publish(Event), "an Event is published, not the class Event"),
    "publish many of one": (lambda bus: bus.publish_many(quote(1)), "several events, .* not Event; publish takes one"),
    "publish many of none": (lambda bus: bus.publish_many(5, durable=False), "several events, such as a list, not 5"),
    "subscribe to a number": (lambda bus: bus.subscribe(3), "a filter is a Filter or its text, .* not 3"),
    "a callback that is none": (lambda bus: bus.subscribe("TRUE", 5), "a callback is a function, not 5"),
    "a name that is none": (lambda bus: bus.subscribe("TRUE", name=5), "the name of a subscription is text, not 5"),
    "a queue of text": (lambda bus: bus.subscribe("TRUE", queue="5"), "a whole number, not '5'"),
    "a replay of a number": (lambda bus: bus.subscribe("TRUE", replay=10), r"such as Replay\(last=10\), not 10"),
    "a strategy that is a class": (lambda bus: bus.subscribe("TRUE", checking=vestnik.Constant), "the class Constant"),
    "cursors that are none": (
        lambda bus: bus.subscribe("TRUE", seen=5),
        "seen is a mapping of logs to offsets, .* not 5",
    ),
    "a cursor of text": (lambda bus: bus.subscribe("TRUE", seen={"b/1": "5"}), "b/1 in seen .* not '5'"),
    "fetch a number": (lambda bus: bus.fetch(3), "a filter is a Filter or its text"),
    "fetch so many": (lambda bus: bus.fetch("TRUE", limit="all"), "the limit of a fetch is a whole number, not 'all'"),
    "advertise a number": (lambda bus: bus.advertise(3), "a filter is a Filter or its text"),
    "a view by a number": (lambda bus: bus.view("TRUE", key=5), "the key of a view is text, not 5"),
    "request a number": (lambda bus: bus.request(5), "a request is an Event, not 5"),
    "request for text": (lambda bus: bus.request(quote(1), timeout="1"), "is a number of seconds, not '1'"),
    "reply to a number": (lambda bus: bus.reply(5), "an Event, or the notification of one, not 5"),
    "reply with a number": (lambda bus: bus.reply(quote(1), 5), "a reply is an Event, or the data of one as a dict"),
    "settled by a word": (lambda bus: bus.subscribe("TRUE", settled="yes"), "settled is True or False, not 'yes'"),
    "advertised by a number": (lambda bus: bus.advertise("TRUE", settled=1), "settled is True or False, not 1"),
    "a factory of nothing": (lambda bus: bus.factory(_waits), "a filter is a Filter or its text, .* not function"),
}
VALUES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no cursors": (
        lambda bus: bus.subscribe("TRUE", seen={}),
        "seen has 1 cursor or more, not 0; subscribe without it",
    ),
    "a cursor in no log": (lambda bus: bus.subscribe("TRUE", seen={"b": 5}), "a log in seen is broker/log, .* not 'b'"),
    "a cursor before the log": (lambda bus: bus.subscribe("TRUE", seen={"b/1": -1}), "b/1 in seen .* not -1"),
    "a queue of none": (lambda bus: bus.subscribe("TRUE", queue=0), "the queue of a subscription is 1 or more, not 0"),
    "a queue that is too long": (lambda bus: bus.subscribe("TRUE", queue=2**64), "the queue .* or less, not 18446"),
    "a limit that is too large": (lambda bus: bus.fetch("TRUE", limit=2**64), "the limit of a fetch .* or less"),
    "a review of too many": (lambda bus: bus.review(most=2**64), "most of a review .* or less"),
    "seen and a replay": (
        lambda bus: bus.subscribe("TRUE", seen={"b/1": 1}, replay=Replay(last=1)),
        "seen is given without replay, not Replay; a subscription goes on, or begins with the past",
    ),
    "a name that cannot be sent": (lambda bus: bus.subscribe("TRUE", name="a\ud800"), "without lone surrogates"),
    "another overflow": (lambda bus: bus.subscribe("TRUE", overflow="x"), "overflow is one of block, .* not 'x'"),
    "a name that is taken": (lambda bus: bus.subscribe("TRUE", name="taken"), "not 'taken'; .* choose another"),
    "a key that is none": (lambda bus: bus.view("TRUE", key="a b"), "such as symbol or order.id, not 'a b'"),
    "since no time": (lambda bus: bus.fetch("TRUE", since="today"), "since is a time, not 'today'; .* RFC 3339"),
    "reply to no request": (lambda bus: bus.reply(quote(1, id="q"), {}), "replyto, not 'q'; bus.request publishes"),
    "linger for less than nothing": (lambda bus: bus.factory("TRUE", linger=-1), "0 seconds or more, not -1"),
}


async def _do(work: Any) -> None:
    if isawaitable(work):
        await work


@pytest.mark.parametrize("use", ARGUMENTS)
async def test_arguments_of_the_wrong_kind(use: str) -> None:
    act, said = ARGUMENTS[use]
    async with LocalBus() as bus:
        with pytest.raises(VestnikError, match=said) as raised:
            await _do(act(bus))
    assert isinstance(raised.value, TypeError)


@pytest.mark.parametrize("use", VALUES)
async def test_arguments_that_cannot_be_meant(use: str) -> None:
    act, said = VALUES[use]
    async with LocalBus() as bus:
        await bus.subscribe("TRUE", name="taken")
        with pytest.raises(VestnikError, match=said) as raised:
            await _do(act(bus))
    assert isinstance(raised.value, ValueError)


async def test_arguments_of_the_wrong_kind_without_async() -> None:
    def use(address: str) -> None:
        with vestnik.connect_sync(address) as bus:
            bus.subscribe("TRUE", name="taken")
            for acts in (ARGUMENTS, VALUES):
                for act, said in acts.values():
                    with pytest.raises(VestnikError, match=said):
                        act(bus)
            with pytest.raises(WrongType, match="runs a plain function"):
                bus.factory("TRUE")(cast(Any, _waits))

    async with broker() as b:
        await asyncio.to_thread(use, b.address)


MAKERS: list[Callable[..., object]] = [vestnik.connect, lambda at: vestnik.connect_sync(at).__enter__()]


@pytest.mark.parametrize("connect", MAKERS, ids=["async", "sync"])
def test_an_address_of_the_wrong_kind(connect: Callable[..., object]) -> None:
    with pytest.raises(WrongType, match=r"is text, such as '127.0.0.1:8020', not 8020"):
        connect(8020)


def test_what_a_local_bus_and_a_history_are_made_of() -> None:
    for make, said in (
        (lambda: LocalBus(name=cast(Any, 5)), "the name of a client is text, not 5"),
        (lambda: LocalBus(join=cast(Any, 5)), "the address of a broker is text"),
        (lambda: LocalBus(broker=cast(Any, 5)), "the name of a broker is text, not 5"),
        (lambda: LocalBus(routing=cast(Any, 5)), "the strategy of routing is text, not 5"),
        (lambda: vestnik.History(cast(Any, 5)), "a filter is a Filter or its text"),
        (lambda: vestnik.History("TRUE", last=cast(Any, "x")), "a whole number, not 'x'"),
        (lambda: vestnik.connect(timeout=cast(Any, "x")), "is a number of seconds, not 'x'"),
        (lambda: vestnik.Constant(first=cast(Any, "x")), "is a number of seconds, not 'x'"),
        (lambda: vestnik.Replay(last=cast(Any, "x")), "a whole number, not 'x'"),
    ):
        with pytest.raises(WrongType, match=said):
            make()


async def test_a_factory_of_a_function_that_is_not_async() -> None:
    async with LocalBus() as bus:
        with pytest.raises(WrongType, match=r"an async function: async def produce\(producer\): ..., not function"):
            bus.factory("TRUE")(cast(Any, _plain))


async def test_change_what_is_over() -> None:
    async with LocalBus() as bus:
        subscription = await bus.subscribe("price > 1")
        await subscription.unsubscribe()
        with pytest.raises(Disconnected, match="subscription s1 is over and cannot be changed; subscribe again"):
            await subscription.change("price > 2")


async def test_a_client_that_is_awaited() -> None:
    async with broker() as b:
        bus = await client(b)
        async with bus as same:
            assert same is bus
            await bus.publish(quote(1))
        assert not bus.is_connected


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
