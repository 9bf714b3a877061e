"""Prints example events, the last ten of the past first: `python examples/on_demand/consumer.py`."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from producer import EXAMPLES

import vestnik


async def main() -> None:
    async with vestnik.connect() as bus:
        async for n in await bus.subscribe(EXAMPLES, replay=vestnik.Replay(last=10)):
            print("past" if n.replayed else "live", n.event.data["number"], flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
