"""Prints example events, the last ten of the past first: `python -m examples.on_demand.consumer`."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import vestnik
from examples.on_demand.producer import EXAMPLES


async def main() -> None:
    async with vestnik.connect() as bus:
        async for n in await bus.subscribe(EXAMPLES, replay=vestnik.Replay(last=10)):
            print("past" if n.replayed else "live", n.event.data["number"], flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
