"""Commands that ask brokers about themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import click

from vestnik.cli.inputs import Refused
from vestnik.cli.loops import run
from vestnik.client.bus import Bus
from vestnik.client.connect import connect
from vestnik.errors import NotAccepted

PATIENCE = 10.0
"""Seconds in which a broker has to answer."""
SAY_AFTER = 0.5
"""Seconds without a connection after which it is said that there is none yet."""

LOOK_EVERY = 0.25
"""Seconds between looks whether there is a connection."""

url_option = click.option(
    "--url", metavar="URL", help="The broker.  [default: $VESTNIK_URL, or vestnik://127.0.0.1:8020]"
)


def broker_options(command: Callable[..., None]) -> Callable[..., None]:
    """The broker to ask, and maybe another that is asked through it."""
    to = click.option("--to", default="", metavar="NAME", help="Ask the broker of this name, through the other.")
    return url_option(to(command))


@asynccontextmanager
async def connected(url: str | None, name: str | None = None, timeout: float = PATIENCE) -> AsyncIterator[Bus]:
    """A client. While there is no connection, it is said; Unreachable where there is none for `timeout` seconds."""
    bus = connect(url, name=name, timeout=timeout)
    loop = asyncio.get_running_loop()
    text = f"vestnik: no broker at {bus.address} yet; trying for {timeout:g} seconds"
    waiting = loop.call_later(SAY_AFTER, lambda: click.echo(text, err=True))
    try:
        await bus.__aenter__()
    finally:
        waiting.cancel()
    watching = asyncio.create_task(_watch(bus))
    try:
        yield bus
    finally:
        watching.cancel()
        await bus.close()


async def _watch(bus: Bus) -> None:
    """Say when the connection is lost, and when there is one again."""
    there = True
    while True:
        await asyncio.sleep(LOOK_EVERY)
        if bus.is_connected != there:
            there = bus.is_connected
            state = "is back" if there else "is away; waiting for it"
            click.echo(f"vestnik: the broker at {bus.address} {state}", err=True)


def ask(url: str | None, kind: str, to: str = "", *, patience: float = PATIENCE, **about: Any) -> Any:
    """What a broker says; Refused where it will not, or says nothing for too long."""

    async def asking() -> Any:
        async with connected(url) as bus, asyncio.timeout(patience):
            return await bus.inspect(kind, to, **about)

    try:
        return run(asking())
    except NotAccepted as error:
        raise Refused(f"{to or 'the broker'} refuses: {error.reason}") from None
    except TimeoutError:
        raise Refused(f"{to or 'the broker'} has not answered for {patience:g} seconds") from None
