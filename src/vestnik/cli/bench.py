"""`vestnik bench`"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

import click

from vestnik.cli.asking import connected
from vestnik.cli.inputs import Refused
from vestnik.cli.logs import address_in
from vestnik.cli.loops import run
from vestnik.cli.outputs import echo_json
from vestnik.client.bus import Bus
from vestnik.client.subscriptions import Subscription
from vestnik.model.events import Event

TOGETHER = 500
"""Events in one call."""
GENTLE = 500
"""Events a second while delays are measured."""
DELAYS = 500
"""Events whose delays are measured."""
PATIENCE = 60.0


class Load(NamedTuple):
    """What is measured."""

    events: int
    size: int
    subscribers: int
    durable: bool


@click.command("bench", epilog="Exit codes: 0 done; 2 there is no broker.")
@click.option("--url", metavar="URL", help="The broker.  [default: one that is started for this]")
@click.option("--events", type=click.IntRange(1), default=20_000, show_default=True, help="How many.")
@click.option("--size", type=click.IntRange(0), default=100, show_default=True, help="Characters of text in each.")
@click.option("--subscribers", type=click.IntRange(1), default=1, show_default=True, help="Who want all of them.")
@click.option("--durable", is_flag=True, help="Wait until the broker has stored them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(url: str | None, events: int, size: int, subscribers: int, durable: bool, as_json: bool) -> None:
    """Measure how fast a broker takes and delivers events, and how long each is on its way.

    A look at what there is, not a comparison: clients and broker share this machine.
    """
    load = Load(events, size, subscribers, durable)
    if url is not None:
        result = run(_measure(url, load))
    else:
        with _own_broker() as address:
            result = run(_measure(address, load))
    if as_json:
        echo_json(result)
        return
    if durable:
        click.echo(f"stored     {result['published_per_second']:>10,.0f} events/s")
    click.echo(f"delivered  {result['delivered_per_second']:>10,.0f} notifications/s, to {subscribers} in all")
    click.echo(
        f"on its way {result['p50_ms']:>10.2f} ms at the median, {result['p99_ms']:.2f} ms at the 99th percentile"
    )


@contextmanager
def _own_broker() -> Iterator[str]:
    """A broker on a free port, and where it is."""
    command = [sys.executable, "-c", "from vestnik.cli import main; main()", "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stderr is not None
        try:
            line = ""
            for line in process.stderr:
                if address := address_in(line):
                    yield address
                    return
            raise Refused(f"no broker could be started: {line.strip()}")
        finally:
            process.terminate()


async def _measure(url: str, load: Load) -> dict[str, Any]:
    kind = f"vestnik-bench.run{os.getpid()}"
    async with connected(url) as publisher:
        readers = [connected(url) for _ in range(load.subscribers)]
        buses = [await reader.__aenter__() for reader in readers]
        try:
            subscriptions = [await bus.subscribe(f"type = '{kind}'", queue=load.events + DELAYS) for bus in buses]
            rates = await _rates(publisher, subscriptions, kind, load)
            return {**load._asdict(), **rates, **await _delays(publisher, subscriptions[0], kind, load)}
        finally:
            for reader in readers:
                await reader.__aexit__(None, None, None)


async def _rates(publisher: Bus, subscriptions: list[Subscription], kind: str, load: Load) -> dict[str, float]:
    events = [Event(kind, {"n": number, "text": "x" * load.size}, source="bench") for number in range(load.events)]
    begun = time.perf_counter()
    async with _beside(*[_take(subscription, load.events) for subscription in subscriptions]) as taking:
        for start in range(0, load.events, TOGETHER):
            await publisher.publish_many(events[start : start + TOGETHER], durable=load.durable)
        published = time.perf_counter() - begun
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*taking)
    delivered = time.perf_counter() - begun
    return {
        "published_per_second": load.events / published,
        "delivered_per_second": load.events * len(subscriptions) / delivered,
    }


@asynccontextmanager
async def _beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Work that goes on meanwhile, and no longer."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _take(subscription: Subscription, count: int) -> None:
    for _ in range(count):
        await anext(subscription)


async def _delays(publisher: Bus, subscription: Subscription, kind: str, load: Load) -> dict[str, float]:
    """How long events are on their way while few are."""
    delays: list[float] = []

    async def take() -> None:
        while len(delays) < DELAYS:
            sent = (await anext(subscription)).event.data["sent"]
            delays.append((time.perf_counter() - sent) * 1000)

    async with _beside(take()) as taking:
        for number in range(DELAYS):
            event = Event(kind, {"n": number, "sent": time.perf_counter(), "text": "x" * load.size}, source="bench")
            await publisher.publish(event, durable=load.durable)
            await asyncio.sleep(1 / GENTLE)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*taking)
    return {"p50_ms": statistics.median(delays), "p99_ms": statistics.quantiles(delays, n=100)[-1]}
