"""Keeps the last ten example events: `python examples/on_demand/history.py`."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from producer import EXAMPLES

from vestnik import History


async def main() -> None:
    async with History(EXAMPLES, last=10):
        print("keeping the last ten", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
