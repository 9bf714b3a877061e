"""What clients do, against a broker behind a socket."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable
from contextlib import suppress

import pytest

import vestnik
from network.worlds import broker, client, quote, taken, until
from vestnik import Event
from vestnik.client.batches import batches_of
from vestnik.client.notifications import Gap, Notification
from vestnik.errors import Disconnected, InvalidAddress, NotAccepted, TurnedAway, Unreachable
from vestnik.transport.addresses import read_address
from vestnik.wire.frames import VERSION, frame
from vestnik.wire.messages import Welcome


async def test_a_subscriber_is_notified_of_what_it_wants_and_of_nothing_else() -> None:
    async with broker() as b, client(b, "p") as p, client(b, "c") as c:
        dear = await c.subscribe("type IS market AND price > 10", handback="dear")
        cheap = await c.subscribe("price < 13", name="cheap")
        await p.publish_many([quote(price, source="feed") for price in (5, 12, 20)])
        notifications = [await dear.get(10) for _ in range(2)]
        assert [n.event.data["price"] for n in notifications] == [12, 20]
        assert [n.number for n in notifications] == [1, 2]
        assert sorted(notifications[0].subscriptions) == ["cheap", dear.name]
        assert (notifications[0].handback, notifications[0].gap, notifications[0].replayed) == ("dear", None, False)
        assert {n.event.stream for n in notifications} == {("b", "feed")}
        assert (notifications[1].event.seq or 0) - (notifications[0].event.seq or 0) == 1
        assert await taken(cheap, 2) == [5, 12]
        assert dear.try_get() is None
        with pytest.raises(TimeoutError):
            await dear.get(0.05)


async def test_unacknowledged_events_come_too() -> None:
    async with broker() as b, client(b) as p, client(b) as c:
        subscription = await c.subscribe("price > 0")
        for price in range(1, 500):
            await p.publish(quote(price), durable=False)
        assert await taken(subscription, 499) == list(range(1, 500))


async def test_events_come_in_the_order_in_which_they_were_published_acknowledged_or_not() -> None:
    async with broker() as b, client(b) as p, client(b) as c:
        subscription = await c.subscribe("price > 0")
        for price in range(1, 40, 4):
            await p.publish(quote(price, source="s"), durable=False)
            await p.publish(quote(price + 1, source="s"))
            await p.publish_many([quote(price + 2, source="s"), quote(price + 3, source="s")], durable=False)
        assert await taken(subscription, 40) == list(range(1, 41))


async def test_what_was_posted_is_sent_before_a_client_leaves() -> None:
    async with broker() as b, client(b) as c:
        subscription = await c.subscribe("price > 0")
        async with client(b) as p:
            await p.publish(quote(1), durable=False)
        assert await taken(subscription, 1) == [1]


async def test_who_publishes_faster_than_the_broker_takes_has_to_wait() -> None:
    """A broker that does not read: publishing goes on when the connection is over, and says so."""
    loop = asyncio.get_running_loop()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)

    async def welcomed() -> socket.socket:
        """Return the broker's end of a connection: a bare socket, because every transport reads by itself."""
        connection, _ = await loop.sock_accept(listening)
        await loop.sock_sendall(connection, frame(Welcome(VERSION, "deaf")))
        return connection

    host, port = listening.getsockname()
    welcoming = asyncio.create_task(welcomed())
    with listening:
        async with vestnik.connect(f"{host}:{port}") as bus:
            large = Event("t", {"text": "x" * 60_000})
            posted = 0

            async def publish() -> None:
                nonlocal posted
                while True:
                    await bus.publish(large, durable=False)
                    posted += 1

            publishing = asyncio.create_task(publish())
            await until(lambda: bus._line._is_full)
            before = posted
            for _ in range(50):
                await asyncio.sleep(0)
            assert posted <= before + 1
            (await welcoming).close()
            with pytest.raises(Disconnected, match="not connected"):
                await publishing


async def test_iteration_ends_when_the_subscription_does() -> None:
    async with broker() as b, client(b) as c:
        subscription = await c.subscribe("price > 0")
        await c.publish_many([quote(1), quote(2)])
        await until(lambda: subscription.waiting == 2)
        await subscription.unsubscribe()
        await subscription.unsubscribe()
        await c.publish(quote(3))
        assert [n.event.data["price"] async for n in subscription] == [1, 2]
        with pytest.raises(Disconnected, match="is over"):
            await subscription.get(1)


async def test_a_filter_is_changed_in_place() -> None:
    async with broker() as b, client(b) as c:
        subscription = await c.subscribe("price > 10")
        await c.publish(quote(20))
        await subscription.change("price < 10")
        await c.publish_many([quote(30), quote(3)])
        assert await taken(subscription, 2) == [20, 3]
        assert str(subscription.filter) == "price < 10"


async def test_callbacks_are_called_one_after_another() -> None:
    async with broker() as b, client(b) as c:
        seen: list[Notification] = []

        async def slowly(notification: Notification) -> None:
            await asyncio.sleep(0.001)
            seen.append(notification)

        await c.subscribe("price > 0", slowly)
        at_once: list[Notification] = []
        await c.subscribe("price > 0", at_once.append)
        await c.publish_many([quote(1), quote(2), quote(3)])
        await until(lambda: len(seen) == 3)
        assert [n.number for n in seen] == [n.number for n in at_once] == [1, 2, 3]


async def test_a_callback_that_awaits_now_and_then_keeps_the_order(caplog: pytest.LogCaptureFixture) -> None:
    async with broker() as b, client(b, "p") as p, client(b, "c") as c:
        await p.publish_many([quote(1), quote(2)])
        seen: list[tuple[int, int]] = []

        async def later(notification: Notification) -> None:
            await asyncio.sleep(0.001)
            seen.append((notification.number, subscription.left))
            raise ValueError("boom")

        def callback(notification: Notification) -> Awaitable[None] | None:
            if notification.number % 3:
                return later(notification)
            seen.append((notification.number, subscription.left))
            return None

        subscription = await c.subscribe("price > 0", callback, replay=vestnik.Replay(all=True), queue=4)
        assert seen == [], "whoever subscribes has the subscription before it is called"
        await p.publish_many([quote(price) for price in range(3, 21)])
        await until(lambda: len(seen) == 20)
        assert [number for number, _ in seen] == list(range(1, 21))
        assert all(left >= 1 for _, left in seen), "what is called with is not done with"
        await until(lambda: subscription.left == 0)
        assert caplog.text.count("ValueError: boom") == 14


@pytest.mark.parametrize("name", [None, "c"])
async def test_numbers_go_on_behind_what_is_replayed(name: str | None) -> None:
    async with broker() as b, client(b, "p") as p, client(b, name) as c:
        await p.publish_many([quote(1), quote(2)])
        subscription = await c.subscribe("price > 0", replay=vestnik.Replay(all=True))
        await p.publish_many([quote(3), quote(4)])
        notifications = [await subscription.get(10) for _ in range(4)]
        assert [(n.number, n.event.data["price"]) for n in notifications] == [(1, 1), (2, 2), (3, 3), (4, 4)]


async def test_what_is_not_taken_is_kept_by_the_broker_and_fetched_later() -> None:
    async with broker() as b, client(b) as p, client(b) as c:
        subscription = await c.subscribe("price > 0", queue=10)
        other = await c.subscribe("price > 0")
        await p.publish_many([quote(price) for price in range(1, 301)])
        assert await taken(other, 300) == list(range(1, 301)), "the slow one holds up nobody"
        assert subscription.waiting == 10
        assert await taken(subscription, 300) == list(range(1, 301))


async def test_the_oldest_are_dropped_where_that_is_wanted_and_it_is_said() -> None:
    async with broker() as b, client(b) as c:
        subscription = await c.subscribe("price > 0", queue=3, overflow="drop-oldest")
        await c.publish_many([quote(price) for price in range(1, 11)])
        await until(lambda: subscription.dropped == 7)
        first, *rest = subscription.fetch()
        assert (first.event.data["price"], first.gap) == (8, Gap(7, "they were not taken: at most 3 wait"))
        assert [(n.event.data["price"], n.gap) for n in rest] == [(9, None), (10, None)]


async def test_a_subscription_ends_where_that_is_wanted() -> None:
    async with broker() as b, client(b) as c:
        subscription = await c.subscribe("price > 0", queue=3, overflow="disconnect")
        await c.publish_many([quote(price) for price in range(1, 11)])
        assert await taken(subscription, 3) == [1, 2, 3]
        with pytest.raises(Disconnected, match="more than 3 were not taken"):
            await subscription.get(10)
        await until(lambda: not b.host.core.clients[c.name].subscriptions)


async def test_publications_outside_of_what_was_advertised_are_refused() -> None:
    async with broker(advertisements=True) as b, client(b) as p:
        with pytest.raises(NotAccepted, match="outside of what this client advertised"):
            await p.publish(quote(5, id="e1"))
        name = await p.advertise("type IS market.quote")
        await p.publish(quote(5))
        await p.unadvertise(name)
        with pytest.raises(NotAccepted, match=r"1 event was refused: e2 of source local:"):
            await p.publish(quote(5, id="e2"))


async def test_who_publishes_at_once_with_others_is_answered_for_its_own_event() -> None:
    async with broker(advertisements=True) as b, client(b) as p:
        await p.advertise("price > 10")
        published = [p.publish(quote(price, id=f"e{price}")) for price in (20, 5, 30)]
        one, two, three = await asyncio.gather(*published, return_exceptions=True)
        assert one is None and three is None
        assert isinstance(two, NotAccepted) and [one[:2] for one in two.refused] == [("local", "e5")]


async def test_two_events_of_one_source_and_id_are_not_one(caplog: pytest.LogCaptureFixture) -> None:
    async with broker() as b, client(b) as p, client(b) as c:
        subscription = await c.subscribe("TRUE")
        first, second = quote(1, id="e", source="s"), quote(2, id="e", source="s")
        outcomes = await asyncio.gather(p.publish(first), p.publish(second), return_exceptions=True)
        assert outcomes[0] is None and isinstance(outcomes[1], NotAccepted)
        assert outcomes[1].refused[0][:2] == ("s", "e") and "an id of its own" in str(outcomes[1])
        with pytest.raises(NotAccepted, match="1 of 2 events was refused: e of source s: another event"):
            await p.publish_many([quote(3), second])
        await p.publish(first)
        await p.publish(second, durable=False)
        await p.publish(quote(4))
        assert await taken(subscription, 3) == [1, 3, 4]
        await until(lambda: "1 of the events was refused: e of source s: another event" in caplog.text)


async def test_what_is_no_longer_waited_for_is_published_once() -> None:
    async with broker() as b:
        listen = read_address(b.address)
        p = await client(b)
        event = quote(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await p.publish(event)
    async with broker(listen=listen) as b, client(b) as c:
        subscription = await c.subscribe("TRUE", replay=vestnik.Replay(all=True))
        await p.publish(event)
        await p.publish(quote(2))
        assert await taken(subscription, 2) == [1, 2]
        await p.close()


async def test_without_async_it_is_waited_for_so_long() -> None:
    def use(address: str, closed: threading.Event, away: threading.Event) -> None:
        with vestnik.connect_sync(address) as bus:
            closed.set()
            away.wait(20)
            with pytest.raises(TimeoutError):
                bus.publish(quote(1), timeout=0.05)

    closed, away = threading.Event(), threading.Event()
    async with broker() as b:
        using = asyncio.create_task(asyncio.to_thread(use, b.address, closed, away))
        await until(closed.is_set)
    away.set()
    await using


async def test_whoever_waits_when_a_client_leaves_is_told() -> None:
    async with broker() as b:
        async with client(b) as p:
            publishing = asyncio.create_task(p.publish(quote(1)))
            await asyncio.sleep(0)
            p._over(Disconnected("left"))
        with pytest.raises(Disconnected, match="left"):
            await publishing


async def test_events_are_requested_in_batches_that_are_neither_long_nor_large() -> None:
    small, large = [Event("t", {"n": n}) for n in range(1_200)], [Event("t", {"x": "x" * 40_000}) for _ in range(3)]
    assert [len(batch.events) for batch in batches_of(small)] == [512, 512, 176]
    assert [len(batch.events) for batch in batches_of(large)] == [1, 1, 1]
    found = batches_of([*small[:3], *large, Event("t", {"x": "x" * 100_000}), *small[3:5]])
    assert [len(batch.events) for batch in found] == [4, 1, 1, 1, 2]
    assert batches_of([]) == []


async def test_wrong_use_is_refused_with_the_reason() -> None:
    async with broker() as b, client(b) as c:
        with pytest.raises(vestnik.FilterSyntaxError):
            await c.subscribe("price >")
        with pytest.raises(ValueError, match="overflow"):
            await c.subscribe("price > 1", overflow="never")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="queue"):
            await c.subscribe("price > 1", queue=0)
        for wrong in ("adaptive", vestnik.Adaptive):
            with pytest.raises(TypeError, match="is a strategy"):
                await c.subscribe("price > 1", checking=wrong)  # type: ignore[arg-type]
        await c.subscribe("price > 1", name="s")
        with pytest.raises(ValueError, match="a name of its own, not 's'"):
            await c.subscribe("price > 1", name="s")
    with pytest.raises(Disconnected, match="async with"):
        await c.publish(quote(1))
    with pytest.raises(Disconnected, match="async with"):
        await vestnik.connect(b.address).subscribe("price > 1")


async def test_where_there_is_no_broker() -> None:
    async with broker() as b:
        address = b.address
    with pytest.raises(Unreachable, match="vestnik serve starts one"):
        async with vestnik.connect(address, timeout=0.3):
            pass


async def test_a_second_connection_takes_the_name_over() -> None:
    async with broker() as b, client(b, "c") as old:
        subscription = await old.subscribe("price > 0")
        async with client(b, "c"):
            with pytest.raises(TurnedAway, match="taken-over"):
                await subscription.get(10)
            with pytest.raises(TurnedAway, match="taken-over"):
                await old.publish(quote(1))


async def test_a_broker_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.client.line.SILENCE", 0.3)
    connections = over = 0

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections, over
        connections += 1
        writer.write(frame(Welcome(VERSION, "mute")))
        while await reader.read(1000):
            pass
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        over += 1

    async with await asyncio.start_server(mute, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        async with vestnik.connect(f"{host}:{port}"):
            await until(lambda: connections >= 2)
        await until(lambda: over == connections)


async def test_the_environment_says_where_the_broker_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async with broker() as b:
        monkeypatch.setenv("VESTNIK_URL", f"vestnik://{b.address}")
        monkeypatch.setenv("VESTNIK_NAME", "from-the-environment")
        async with vestnik.connect() as c:
            assert c.name == "from-the-environment" and c.is_connected


@pytest.mark.parametrize("text", ["", "http://x:1", "vestnik://", "h:port", "h:99999", "vestnik://h/path", "u@h"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(InvalidAddress, match="expected vestnik://HOST:PORT"):
        read_address(text)


def test_addresses() -> None:
    assert read_address("h") == read_address("vestnik://h:8020/") == ("h", 8020)
    assert str(read_address("[::1]:5")) == "[::1]:5" and read_address("[::1]:5") == ("::1", 5)


async def test_many_events_with_an_urgent_one_all_come() -> None:
    async with broker() as b, client(b) as p, client(b) as c:
        subscription = await c.subscribe("price > 0", queue=10_000)
        events = [quote(price, source="feed") for price in range(1, 3001)]
        await p.publish_many([*events, quote(3001, source="feed", priority=9)])
        assert sorted(await taken(subscription, 3001)) == list(range(1, 3002))


async def test_a_client_cannot_say_which_number_its_events_have() -> None:
    async with broker() as b, client(b) as c:
        subscription = await c.subscribe("price > 0")
        forged = quote(1, source="feed").replace(stream=("b", "feed"), seq=2**53 - 1)
        await c.publish(forged)
        await c.publish(quote(2, source="feed"))
        found = [await subscription.get(10) for _ in range(2)]
        assert [n.event.data["price"] for n in found] == [1, 2]
        assert (found[0].event.seq or 0) < 2**53 - 1


async def test_a_subscription_that_is_given_up_while_it_is_made_leaves_nothing() -> None:
    async with broker() as b, client(b) as c:
        making = asyncio.create_task(c.subscribe("price > 0", name="s"))
        await asyncio.sleep(0)
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)
        await c.subscribe("price > 0", name="s")


async def test_several_may_wait_for_one_subscription() -> None:
    async with broker() as b, client(b) as c:
        subscription = await c.subscribe("price > 0")
        waiting = [asyncio.create_task(subscription.get(10)) for _ in range(3)]
        await asyncio.sleep(0)
        await c.publish_many([quote(1), quote(2), quote(3)])
        assert sorted([n.number for n in await asyncio.gather(*waiting)]) == [1, 2, 3]


async def test_a_client_without_a_name_leaves_nothing_behind() -> None:
    async with broker() as b:
        async with client(b) as c:
            await c.subscribe("price > 0")
        await until(lambda: b.host.core.clients == {} and len(b.host.core.router.subscriptions) == 0)


async def test_a_callback_that_fails_is_logged_and_called_with_the_next(caplog: pytest.LogCaptureFixture) -> None:
    async with broker() as b, client(b) as c:
        seen: list[int] = []

        def callback(notification: Notification) -> None:
            seen.append(notification.number)
            raise ValueError("boom")

        await c.subscribe("price > 0", callback)
        await c.publish_many([quote(1), quote(2)])
        await until(lambda: seen == [1, 2])
        assert caplog.text.count("ValueError: boom") == 2


async def test_a_subscription_of_a_client_that_has_left_is_left_in_silence() -> None:
    async with broker() as b:
        c = client(b)
        await c.__aenter__()
        async with await c.subscribe("price > 0") as subscription:
            await c.close()
        await subscription.unsubscribe()
