"""Messages that are made to cost much: they are refused with the limit, or others do not wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import vestnik
from attacks.gateways import MIB, PATIENCE, TOKEN, Victim, neighbour, victim, with_access
from attacks.protocol import (
    admitted,
    announced,
    batch_for_many_patterns,
    batch_for_many_subscriptions,
    batch_of_many_matches,
    connected,
    costly_filters,
    event_of_lists,
    events_hard_to_match,
    filters_hard_to_compare,
    filters_that_take_long,
    framed,
    publication,
    publishers_that_leave,
    subscription,
    tangled_filters,
)
from vestnik import Event, Filter
from vestnik.wire.frames import frame
from vestnik.wire.messages import Accepted, AdminS, Goodbye, Interest, Refused, Stored

MEMORY = 384 * MIB
"""The process uses some 60 MB before anybody says anything, and 100 MB more once it has compiled its kernels."""


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Victim]:
    with victim("--data", str(tmp_path / "data"), *with_access(tmp_path)) as one:
        yield one
        assert one.peak < MEMORY


async def goes_on(target: Victim) -> None:
    """Somebody innocent publishes, and somebody gets it."""
    async with asyncio.timeout(PATIENCE):
        async with vestnik.connect(target.broker, token=TOKEN) as bus:
            subscription = await bus.subscribe("type IS innocent")
            await bus.publish(Event("innocent"))
            await subscription.get()


async def test_a_stranger_is_not_understood_before_it_says_hello(target: Victim) -> None:
    wanted = [Filter.parse(text) for text, _ in zip(tangled_filters(), range(30), strict=False)]
    message = frame(AdminS(tuple(Interest(one) for one in wanted)))
    assert len(message) < 64 * 1024
    async with connected(target) as raw:
        await raw.say(message)
        assert await raw.hear(Goodbye) == Goodbye("hello", "the first message is Hello")
    await goes_on(target)


async def test_what_a_stranger_says_is_not_decoded(target: Victim) -> None:
    """A message that nobody could decode is refused by its kind, like one that takes seconds."""
    undecodable = frame(AdminS(()))[4:6] + bytes(1000)
    async with connected(target) as raw:
        await raw.say(framed(undecodable))
        assert await raw.hear(Goodbye) == Goodbye("hello", "the first message is Hello")


async def test_a_stranger_says_no_more_than_a_small_hello(target: Victim) -> None:
    async with connected(target) as raw:
        await raw.say((65 * 1024).to_bytes(4, "big"))
        goodbye = await raw.hear(Goodbye)
        assert isinstance(goodbye, Goodbye) and goodbye.code == "frame" and "65,536" in goodbye.reason
    await goes_on(target)


@pytest.mark.parametrize(("count", "limit"), [(15 * MIB, "limit values"), (10_001, "limit batch")])
async def test_a_publish_of_too_much_is_refused_with_the_limit(target: Victim, count: int, limit: str) -> None:
    async with admitted(target) as raw:
        await raw.say(publication(announced(count, b"\xc0"), 7))
        answer = await raw.hear(Stored, Refused, Goodbye)
        assert isinstance(answer, Refused) and answer.request == 7 and limit in answer.reason
        await raw.say(publication(b"\x90", 8))
        assert await raw.hear(Stored, Refused, Goodbye) == Stored(8)
    await goes_on(target)


async def test_what_is_too_much_and_asks_for_no_answer_ends_the_connection(target: Victim) -> None:
    async with admitted(target) as raw:
        await raw.say(publication(announced(10_001, b"\xc0"), 0))
        goodbye = await raw.hear(Goodbye)
        assert isinstance(goodbye, Goodbye) and "limit batch" in goodbye.reason
    await goes_on(target)


async def test_ten_refusals_and_a_count_answer_many_that_are_no_events(target: Victim) -> None:
    async with admitted(target) as raw:
        await raw.say(publication(announced(10_000, b"\xc0"), 7))
        answer = await raw.hear(Stored, Refused, Goodbye)
        assert isinstance(answer, Stored) and len(answer.refused) == 11
        assert answer.refused[-1].reason == "9,990 more are no events"
    await goes_on(target)


async def test_an_event_of_millions_of_values_is_refused(target: Victim) -> None:
    await event_of_lists(target)
    await goes_on(target)


async def test_filters_that_take_long_are_answered_each(target: Victim) -> None:
    async with admitted(target) as raw:
        for number, text in zip(range(6), costly_filters(), strict=False):
            await raw.say(subscription(f"s{number}", text, number + 1))
        for number in range(6):
            answer = await raw.hear(Accepted, Refused, Goodbye)
            assert isinstance(answer, Accepted | Refused) and answer.request == number + 1
    await goes_on(target)


FEWER = [  # and how often somebody else has to be served meanwhile, which is more often than there are costly parts
    (partial(filters_that_take_long, count=6), 20),
    (partial(events_hard_to_match, count=40, size=MIB // 2), 50),
    (partial(publishers_that_leave, filters=4), 3),
    (partial(batch_for_many_subscriptions, count=2_000, events=500), 3),
    (partial(batch_of_many_matches, events=3_000), 3),
    (partial(batch_for_many_patterns, events=3_000), 3),
]


@pytest.mark.parametrize(("attack", "least"), FEWER, ids=["parsed", "matched", "left", "many", "matches", "patterns"])
async def test_nobody_else_waits_for_what_takes_long(
    target: Victim, attack: Callable[..., Awaitable[None]], least: int
) -> None:
    await beside(target, attack, least)


async def test_nobody_else_waits_for_filters_that_are_hard_to_compare(tmp_path: Path) -> None:
    with victim("--data", str(tmp_path)) as target, neighbour(target):
        await beside(target, filters_hard_to_compare, 40)


async def beside(target: Victim, attack: Callable[..., Awaitable[None]], least: int) -> None:
    """Check that events of others arrive during the costly part of an attack, and not only after it."""
    async with vestnik.connect(target.broker, token=TOKEN) as bus:
        subscription = await bus.subscribe("type IS innocent")
        struck = asyncio.Event()
        attacking = asyncio.ensure_future(attack(target, struck=struck))
        arrived = 0
        while not attacking.done():
            was_struck = struck.is_set()
            await bus.publish(Event("innocent"))
            await subscription.get(timeout=PATIENCE)
            arrived += was_struck and not attacking.done()
            await asyncio.sleep(0)
        await attacking
        assert arrived >= least
    await goes_on(target)
