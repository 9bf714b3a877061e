"""Linked brokers have the same lease: what one tells would expire at the other before it is renewed."""

from __future__ import annotations

import asyncio
import logging

import pytest

from network.worlds import broker, client, logged, quote, taken, until
from vestnik import LocalBus
from vestnik.errors import NotAccepted
from vestnik.transport.addresses import read_address


def refused(name: str, own: float, other: float) -> str:
    both = f"this broker has a lease of {own:g} seconds, {name} one of {other:g}"
    return f"'code': 'lease', 'reason': '{both}; give all linked brokers the same --lease'"


@pytest.mark.parametrize(("first", "second"), [(2.0, 60.0), (60.0, 2.0)])
async def test_brokers_of_different_leases_are_not_linked(
    first: float, second: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise an event is lost that is published after the shorter lease and before the next renewal."""
    caplog.set_level(logging.INFO, "vestnik")
    async with broker("b1", lease=first, sweep=0.2) as b1, broker("b2", (b1,), lease=second, sweep=0.2) as b2:
        async with client(b1) as consumer, client(b2) as bus:
            subscription = await consumer.subscribe("price > 0")
            await until(lambda: bool(logged(caplog, "link.failed") or logged(caplog, "link.up")))
            if logged(caplog, "link.up"):
                await asyncio.sleep(2.5)
                await bus.publish(quote(1))
                assert await taken(subscription, 1) == [1]
        for what in ("link.failed", "connection.refused"):
            assert refused("b2", first, second) in logged(caplog, what)[0]
        with pytest.raises(NotAccepted, match="give all linked brokers the same --lease"):
            await b1.link(read_address(b2.address))
        assert not logged(caplog, "link.up")


async def test_brokers_of_the_same_lease_are_linked_and_events_come_after_it() -> None:
    async with (
        broker("b1", lease=1.0, sweep=0.1) as b1,
        broker("b2", (b1,), lease=1.0, sweep=0.1) as b2,
        client(b1) as consumer,
        client(b2) as bus,
    ):
        await until(lambda: len(b1.host.core.topology.brokers()) == 2)
        subscription = await consumer.subscribe("price > 0", settled=True)
        await asyncio.sleep(1.5)
        await bus.publish(quote(1))
        assert await taken(subscription, 1) == [1]


async def test_a_client_that_vanishes_costs_no_link(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        broker("b1", lease=1.0, sweep=0.3) as b1,
        broker("b2", (b1,), lease=1.0, sweep=0.02) as b2,
        broker("b3", (b2,), lease=1.0, sweep=0.3) as b3,
    ):
        await until(lambda: len(b1.host.core.topology.brokers()) == 3 == len(b3.host.core.topology.brokers()))
        async with client(b1, name="c") as vanishing:
            await vanishing.subscribe("price > 0", settled=True)
        links = [b2.host._ends["b1"], b3.host._ends["b2"]]
        await until(lambda: not any(len(b.host.core.router.subscriptions) for b in (b1, b2, b3)))
        assert [b2.host._ends["b1"], b3.host._ends["b2"]] == links and not logged(caplog, "link.failed")


async def test_a_broker_inside_a_program_follows_one_that_comes_back_with_another_lease() -> None:
    async with broker("b1", lease=60.0) as before:
        at = before.address
        async with LocalBus(join=at) as bus:
            await before.__aexit__()
            async with broker("b1", listen=read_address(at), lease=2.0, sweep=0.5) as after, client(after) as publisher:
                await until(lambda: len(after.host.core.topology.brokers()) == 2)
                subscription = await bus.subscribe("price > 0", settled=True)
                await asyncio.sleep(2.5)
                await publisher.publish(quote(1))
                assert await taken(subscription, 1) == [1]
