"""Runs the producer while somebody wants its events: `python examples/on_demand/factory.py [SECONDS]`."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from producer import EXAMPLES, produce

import vestnik
from vestnik.client.factories import Producer

bus = vestnik.connect()


@bus.factory(EXAMPLES, linger=0.5, warm=1)
async def example(producer: Producer) -> None:
    print("starting the service", flush=True)
    last = producer.past[-1].data["number"] if producer.past else 0
    try:
        await produce(producer, last + 1)
    finally:
        print("stopping the service", flush=True)


async def main() -> None:
    async with bus:
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
