"""The application has a turn between notifications that came together."""

from __future__ import annotations

import asyncio

import pytest

from network.worlds import broker, client, quote
from vestnik.client import turns
from vestnik.client.turns import Turns
from vestnik.transport.ends import End
from vestnik.wire.messages import Delivery, Message, Notify, Ping, Pong


class Recorded(End):
    """An end at which nothing is but notes of what happens."""

    peer = "nobody"

    def __init__(self) -> None:
        self.notes: list[str] = []

    def send(self, message: Message) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...

    async def over(self) -> None: ...

    def pause(self) -> None:
        self.notes.append("pause")

    def resume(self) -> None:
        self.notes.append("resume")


def notify(*numbers: int) -> Notify:
    return Notify(tuple([Delivery((quote(number, id="1"),), ((1, number),)) for number in numbers]))


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    monkeypatch.setattr(turns, "TURN", 2)
    return []


async def test_what_is_too_much_for_a_turn_waits_for_the_next_and_no_more_is_read(handled: list[Message]) -> None:
    end = Recorded()
    taking = Turns(lambda _, message: handled.append(message))
    taking.take(end, [notify(1, 2, 3), Ping(), notify(4, 5)])
    assert (handled, end.notes) == ([notify(1, 2)], ["pause"])
    taking.take(end, [Pong()])
    assert handled == [notify(1, 2)]
    await asyncio.sleep(0)
    assert handled == [notify(1, 2), notify(3), Ping(), notify(4)] and end.notes == ["pause"]
    await asyncio.sleep(0)
    assert handled[4:] == [notify(5), Pong()] and end.notes == ["pause", "resume"]


async def test_at_the_end_all_is_handled(handled: list[Message]) -> None:
    end = Recorded()
    taking = Turns(lambda _, message: handled.append(message))
    taking.take(end, [notify(1, 2, 3), notify(4), Ping()])
    taking.finish(end)
    assert handled == [notify(1, 2), notify(3), notify(4), Ping()]
    await asyncio.sleep(0)
    assert len(handled) == 4


async def test_what_fails_does_not_stop_what_comes_after_it(handled: list[Message]) -> None:
    end = Recorded()

    def handle(_: End, message: Message) -> None:
        if isinstance(message, Ping):
            raise RuntimeError("once")
        handled.append(message)

    taking = Turns(handle)
    with pytest.raises(RuntimeError, match="once"):
        taking.take(end, [Ping(), notify(1)])
    await asyncio.sleep(0)
    assert handled == [notify(1)] and end.notes == ["pause", "resume"]


async def test_a_subscriber_that_takes_all_at_once_never_has_to_ask_again() -> None:
    async with broker() as b, client(b) as p, client(b) as c:
        seen: list[int] = []
        subscription = await c.subscribe("price > 0", lambda n: seen.append(n.number), queue=300)
        await p.publish_many([quote(price) for price in range(1, 5_001)], durable=False)
        async with asyncio.timeout(20):
            while len(seen) < 5_000:
                assert subscription.waiting < 300
                await asyncio.sleep(0)
        assert seen == list(range(1, 5_001))
