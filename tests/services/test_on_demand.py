"""The programs of examples/on_demand, each a process: under every routing, and with a consumer that is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

import pytest

import vestnik
from network.programs import World, in_order
from network.worlds import until
from services.routings import ROUTINGS, flags
from vestnik import Event
from vestnik.client.factories import Producer
from vestnik.client.notifications import Notification

EXAMPLES = "type = 'example'"


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack)


@pytest.mark.parametrize("routing", ROUTINGS)
def test_the_example_runs_whatever_the_routing_of_its_broker_is(world: World, routing: str) -> None:
    """The broker is started again in the end, and has forgotten all: what is fetched comes from the history."""
    broker, where = world.broker("b1", *flags(routing))
    history, factory, consumer = (world.program(name, where) for name in ("history", "factory", "consumer"))
    assert factory.line() == "starting the service"
    assert history.line() == "keeping the last ten"
    past, live = consumer.numbers(12)
    assert in_order(past + live)
    for running in (factory, consumer, broker):
        running.kill()
    again, _ = world.broker("b2", *flags(routing), listen=where)
    again.until("linked with")
    found = asyncio.run(_past(where, brokers=2))
    assert len(found) == 10 and in_order(found)


async def _past(where: str, brokers: int) -> list[int]:
    """Fetch when so many brokers are within reach: a link is there a moment before the log beyond it is known."""
    async with vestnik.connect(where) as bus:
        while len((await bus.inspect("status"))["brokers"]) < brokers:
            await asyncio.sleep(0.01)
        return [event.data["number"] for event in await bus.fetch(EXAMPLES)]


async def test_the_producer_of_a_consumer_that_is_killed_ends_after_its_lease(world: World) -> None:
    """First the lease of its subscription ends, then its producer. Consumers that live keep theirs."""
    timing = "--lease", "3", "--heartbeat", "1.5", "--sweep", "0.4"  # a busy machine may be silent for a second
    _, one = world.broker("b1", *timing)
    linked, two = world.broker("b2", "--join", one, *timing)
    linked.until("linked with")
    order: list[str] = []

    def note(n: Notification) -> None:
        order.append(n.event.type.removeprefix("vestnik.subscription."))

    async with vestnik.connect(one) as bus:
        await bus.subscribe("type IS vestnik.subscription AND OVERLAPS(filter, 'type = ''example''')", note)

        @bus.factory(EXAMPLES, linger=0.1)
        async def example(producer: Producer) -> None:
            order.append("starts")
            try:
                for number in count(1):
                    await producer.publish(Event("example", {"number": number}))
                    await asyncio.sleep(0.05)
            finally:
                order.append("stops")

        first = world.program("consumer", two)
        await asyncio.to_thread(first.numbers, 3)
        second = world.program("consumer", two)
        await asyncio.to_thread(second.numbers, 3)
        for consumer in (first, second):
            order.append("killed")
            await asyncio.to_thread(consumer.kill)
            await until(lambda: order[-1] != "killed")
            if consumer is first:
                _, live = await asyncio.to_thread(second.numbers, 10)
                assert in_order(live)
        await until(lambda: not example.producers)
    assert order == ["made", "starts", "made", "killed", "ended", "killed", "ended", "stops"]
