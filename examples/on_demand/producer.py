"""Publishes an example event every so many seconds: `python examples/on_demand/producer.py [SECONDS]`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from itertools import count

import vestnik
from vestnik import Event
from vestnik.client.bus import Bus
from vestnik.client.factories import Producer

EXAMPLES = "type = 'example'"


def seconds() -> float:
    return float(sys.argv[1]) if len(sys.argv) > 1 else 3.0


async def produce(to: Bus | Producer, first: int = 1) -> None:
    for number in count(first):
        await to.publish(Event("example", {"number": number}, source="producer"))
        await asyncio.sleep(seconds())


async def main() -> None:
    async with vestnik.connect() as bus:
        await bus.advertise(EXAMPLES)
        await produce(bus)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
