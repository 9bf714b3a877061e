"""What an attacker says to a broker in its own protocol, to make it cost more than it is worth."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import islice
from typing import Any, Final, TypeAlias

from msgspec import msgpack

from attacks.gateways import MIB, PATIENCE, TOKEN, Victim
from vestnik import Event, Filter
from vestnik.transport.addresses import read_address
from vestnik.wire.frames import VERSION, Reader, frame
from vestnik.wire.messages import (
    Accepted,
    AdminS,
    Goodbye,
    Hello,
    Interest,
    Message,
    Ping,
    Pong,
    Publish,
    Refused,
    Stored,
    Welcome,
)

PUBLISH: Final = 32
SUBSCRIBE: Final = 33
ANSWERS: Final = (Stored, Refused, Goodbye)
Attack: TypeAlias = Callable[[Victim], Awaitable[None]]
"""Some set `struck` when all is prepared, and the costly part begins."""


class Raw:
    """A connection on which anything can be said."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._read = Reader()
        self._heard: list[Message] = []

    async def say(self, *messages: Message | bytes) -> None:
        for message in messages:
            self._writer.write(message if isinstance(message, bytes) else frame(message))
        await self._writer.drain()

    async def hear(self, *kinds: type[Message]) -> Message | None:
        """The next message of one of these kinds; None when the connection is over."""
        while True:
            while self._heard:
                message = self._heard.pop(0)
                if isinstance(message, Ping):
                    await self.say(Pong())
                if isinstance(message, kinds):
                    return message
            data = await self._reader.read(MIB)
            if not data:
                return None
            self._heard += self._read.read(data)


@asynccontextmanager
async def connected(victim: Victim) -> Any:
    """Somebody who has not said who it is."""
    reader, writer = await asyncio.open_connection(*read_address(victim.broker))
    writer.transport.set_write_buffer_limits(0)  # what was said is out
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def admitted(victim: Victim, name: str = "mallory") -> Any:
    """A client that was let in."""
    async with connected(victim) as raw:
        await raw.say(Hello(VERSION, name, token=TOKEN))
        assert isinstance(await raw.hear(Welcome, Goodbye), Welcome)
        yield raw


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def publication(events: bytes, request: int = 1) -> bytes:
    """A Publish of what is packed as a list of events, whatever it is."""
    return framed(b"\x94" + bytes([PUBLISH]) + events + b"\x90" + msgpack.encode(request))


def announced(count: int, each: bytes) -> bytes:
    """A packed list of so many of the same."""
    return b"\xdd" + count.to_bytes(4, "big") + each * count


def subscription(name: str, wanted: str, request: int = 1) -> bytes:
    """A Subscribe with its filter as text: nobody here finds out what it costs to parse."""
    fields = [SUBSCRIBE, name, wanted, 60.0, 1000, 0, random.getrandbits(50), None, 0, [], False, False, 0, request]
    return framed(msgpack.encode(fields))


def costly_filters() -> Iterator[str]:
    """Filters of a kilobyte or less that take long to parse."""
    rng = random.Random(7)
    while True:
        letters = [rng.randrange(100) for _ in range(8)]
        yield "ANY x (" + " AND ".join(f"(a{n} LIKE '%{n}%' OR b{n} = {n})" for n in letters) + ")"
        yield " AND ".join(f"x{n} MATCHES '(a|b|{n}{rng.randrange(10**6)})*a(a|b|c){{9}}'" for n in range(24))
        yield (
            "NOT ANY q (ANY r ("
            + " AND ".join(f"(a{n} LIKE '%x{n}%' OR b MATCHES '.*y{n}.*')" for n in letters[:6])
            + "))"
        )


def tangled_filters() -> Iterator[str]:
    """Filters that take long to compare with each other."""
    rng = random.Random(8)
    while True:
        parts = [f"(x LIKE '%{rng.randrange(99)}%{rng.randrange(99)}_{n}%' AND y > {n})" for n in range(10)]
        yield " OR ".join(parts)


def nested_filters() -> Iterator[tuple[str, str]]:
    """The parts of an event that patterns and quantifiers have to walk through, and such filters."""
    number = 0
    while True:
        number += 1
        yield "text", f"text LIKE '%a%z{number}%'"
        yield "text", f"text MATCHES '.*(a|b)c.*{number}z'"
        yield "lists", f"ANY lists (ANY @ > {number + 10})"
        yield "numbers", f"ANY numbers > {10**6 + number}"


async def admin_before_hello(victim: Victim) -> None:
    """A stranger says what only neighbours may, 42 KB of it, and again."""
    wanted = [Filter.parse(text) for text, _ in zip(tangled_filters(), range(60), strict=False)]
    message = frame(AdminS(tuple(Interest(one) for one in wanted)))[: 64 * 1024]
    for _ in range(10):
        async with connected(victim) as raw:
            with suppress(ConnectionError):
                await raw.say(message)
                await raw.hear(Goodbye)


async def publish_of_nils(victim: Victim) -> None:
    """Sixteen megabytes of events that are none."""
    async with admitted(victim) as raw:
        with suppress(ConnectionError):
            await raw.say(publication(announced(15 * MIB, b"\xc0")))
            await raw.hear(*ANSWERS)


async def event_of_lists(victim: Victim) -> None:
    """One event with millions of empty lists."""
    envelope = b"\x95" + msgpack.encode("t") + msgpack.encode("s") + msgpack.encode("i")
    data = b"\x81" + msgpack.encode("x") + announced(15 * MIB, b"\x90")
    async with admitted(victim) as raw:
        with suppress(ConnectionError):
            await raw.say(publication(b"\x91" + envelope + data + b"\xc0"))
            await raw.hear(*ANSWERS)


async def filters_that_take_long(victim: Victim, count: int = 30, struck: asyncio.Event | None = None) -> None:
    """Subscriptions that cost a second each to parse."""
    await _subscribe(victim, islice(costly_filters(), count), struck)


async def filters_hard_to_compare(victim: Victim, count: int = 60, struck: asyncio.Event | None = None) -> None:
    """Subscriptions whose relations to each other take long to find."""
    await _subscribe(victim, islice(tangled_filters(), count), struck)


async def _subscribe(victim: Victim, filters: Iterable[str], struck: asyncio.Event | None) -> None:
    """Make subscriptions, and wait until the broker has handled all of them."""
    async with admitted(victim) as raw:
        _strike(struck)
        for number, text in enumerate(filters, start=2):
            await raw.say(subscription(f"s{number}", text, number))
        await raw.say(publication(b"\x90"))
        await raw.hear(Stored, Goodbye)


def _strike(struck: asyncio.Event | None) -> None:
    if struck is not None:
        struck.set()


async def events_hard_to_match(
    victim: Victim, count: int = 200, size: int = MIB, struck: asyncio.Event | None = None
) -> None:
    """Many patterns and quantifiers, and an event of a megabyte that each of them has to walk through."""
    async with admitted(victim) as raw:
        for number, (_, text) in zip(range(count), nested_filters(), strict=False):
            await raw.say(subscription(f"s{number}", text, number + 1))
            assert isinstance(await raw.hear(Accepted, Refused, Goodbye), Accepted)
        third = size // 3
        data = {
            "text": "abcdefghij" * (third // 10),
            "lists": [[1, 2, 3]] * (third // 4),
            "numbers": [100_000] * (third // 5),
        }
        _strike(struck)
        await raw.say(Publish((Event("t", data, id="large"),), request=count + 1))
        answer = await raw.hear(*ANSWERS)
        assert isinstance(answer, Stored) and not answer.refused, answer


async def publishers_that_leave(
    victim: Victim, count: int = 100, filters: int = 20, struck: asyncio.Event | None = None
) -> None:
    """Forty megabytes, which become three gigabytes of values, of clients that are gone before they are decoded."""
    async with admitted(victim, "trudy") as subscriber:
        for number in range(1, filters + 1):
            await subscriber.say(subscription(f"s{number}", f"ANY x > {number}", number))
            assert isinstance(await subscriber.hear(Accepted, Refused, Goodbye), Accepted)
        _strike(struck)
        await asyncio.gather(*[_publish_and_leave(victim, f"mallory{number}") for number in range(count)])
    while await asyncio.to_thread(victim.figure, "vestnik_broker_events_taken_total") < count:
        await asyncio.sleep(0.05)


async def _publish_and_leave(victim: Victim, name: str) -> None:
    envelope = b"\x95" + b"".join(map(msgpack.encode, ("t", "s", name)))
    maps = b"\x81" + msgpack.encode("x") + announced(400_000, b"\x80")
    async with admitted(victim, name) as raw:
        with suppress(ConnectionError):
            await raw.say(publication(b"\x91" + envelope + maps + b"\xc0"))


async def batch_for_many_subscriptions(
    victim: Victim, count: int = 5_000, events: int = 1_000, struck: asyncio.Event | None = None
) -> None:
    """A batch of which every event is wanted by thousands of subscriptions."""
    await _batch(victim, ["TRUE"] * count, events, {}, struck)


async def batch_of_many_matches(
    victim: Victim, count: int = 190, events: int = 10_000, struck: asyncio.Event | None = None
) -> None:
    """The largest batch, of events that each satisfy different filters."""
    await _batch(victim, [f"x > {number}" for number in range(count)], events, {"x": 1000.5}, struck)


async def batch_for_many_patterns(
    victim: Victim, count: int = 100, events: int = 10_000, struck: asyncio.Event | None = None
) -> None:
    """The largest batch, with a string in each event that many patterns are tried on."""
    await _batch(victim, [f"x LIKE '%q{number}%z'" for number in range(count)], events, {"x": "abc"}, struck)


async def _batch(
    victim: Victim, filters: Sequence[str], count: int, data: dict[str, Any], struck: asyncio.Event | None
) -> None:
    """Publish a batch for subscriptions of another connection, which takes what it is sent."""
    async with admitted(victim) as raw, admitted(victim, "trudy") as subscriber:
        for number, text in enumerate(filters, start=1):
            await subscriber.say(subscription(f"s{number}", text, number))
        for _ in filters:
            assert isinstance(await subscriber.hear(Accepted, Refused, Goodbye), Accepted)
        taking = asyncio.ensure_future(subscriber.hear(Goodbye))
        _strike(struck)
        await raw.say(Publish(tuple(Event("t", data, id=str(number)) for number in range(count)), request=1))
        assert await raw.hear(*ANSWERS) == Stored(1)
        taking.cancel()


ATTACKS: Final[list[Attack]] = [
    admin_before_hello,
    publish_of_nils,
    event_of_lists,
    filters_that_take_long,
    filters_hard_to_compare,
    events_hard_to_match,
    publishers_that_leave,
    batch_for_many_subscriptions,
    batch_of_many_matches,
    batch_for_many_patterns,
]
__all__ = ["ATTACKS", "PATIENCE"]
