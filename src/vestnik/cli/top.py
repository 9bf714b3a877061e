"""`vestnik top`"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click

from vestnik.cli.asking import connected, url_option
from vestnik.cli.loops import run
from vestnik.cli.outputs import echo_json
from vestnik.client.bus import Bus
from vestnik.errors import NotAccepted

if TYPE_CHECKING:
    from rich.table import Table

RATES = ("taken", "passed", "notified")
COLUMNS = {
    "broker": "broker",
    "links": "links",
    "clients": "clients",
    "away": "away",
    "full": "full",
    "subscriptions": "subs",
    "lagging": "lag",
    "gaps": "gaps",
    "entries": "entries",
    "taken/s": "taken/s",
    "passed/s": "passed/s",
    "notified/s": "notified/s",
}
"""The columns of the table, with their heads. JSON has more."""


@click.command("top", epilog="Exit codes: 0 done; 2 there is no broker; 130 ended by Ctrl-C.")
@url_option
@click.option("--interval", type=click.FloatRange(0.1), default=2.0, show_default=True, help="Seconds between looks.")
@click.option("--once", is_flag=True, help="Look once, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line, for each broker and look.")
def command(url: str | None, interval: float, once: bool, as_json: bool) -> None:
    """Show all brokers within reach: who is there, and how many events a second they take, pass on and deliver."""
    run(_watch(url, interval, once, as_json))


async def _watch(url: str | None, interval: float, once: bool, as_json: bool) -> None:
    async with connected(url) as bus:
        before, at = await _look(bus), time.monotonic()
        if as_json or once:
            while True:
                await asyncio.sleep(interval if not once else min(interval, 1.0))
                now, seconds = await _look(bus), time.monotonic() - at
                rows = _rows(before, now, seconds)
                _print(rows, as_json)
                if once:
                    return
                before, at = now, time.monotonic()
        await _live(bus, before, at, interval)


async def _live(bus: Bus, before: dict[str, dict[str, Any]], at: float, interval: float) -> None:
    from rich.live import Live

    with Live(_table(_rows(before, before, 1.0)), auto_refresh=False) as live:
        while True:
            await asyncio.sleep(interval)
            now, seconds = await _look(bus), time.monotonic() - at
            live.update(_table(_rows(before, now, seconds)), refresh=True)
            before, at = now, time.monotonic()


async def _look(bus: Bus) -> dict[str, dict[str, Any]]:
    """What each broker says of itself; one that does not answer says nothing."""
    own = await bus.inspect("status")
    others = [name for name in own["brokers"] if name != own["broker"]]
    answers = await asyncio.gather(*(_status(bus, name) for name in others))
    return {own["broker"]: own} | dict(zip(others, answers, strict=True))


async def _status(bus: Bus, name: str) -> dict[str, Any]:
    try:
        async with asyncio.timeout(2.0):
            found: dict[str, Any] = await bus.inspect("status", name)
            return found
    except (TimeoutError, NotAccepted):
        return {}


def _rows(before: dict[str, Any], now: dict[str, Any], seconds: float) -> list[dict[str, Any]]:
    return [_row(name, before.get(name) or {}, status, seconds) for name, status in now.items()]


def _row(name: str, before: dict[str, Any], now: dict[str, Any], seconds: float) -> dict[str, Any]:
    """A line of the table; of a broker that did not answer only its name."""
    if not now:
        return {"broker": name}
    rates = {
        f"{rate}/s": round((now[rate] - before[rate]) / seconds, 1) if before.get("begun") == now["begun"] else None
        for rate in RATES
    }
    return {
        "broker": name,
        "links": len(now["neighbours"]),
        "clients": now["clients"],
        "away": now["clients"] - now["connected"],
        "full": now["full"],
        "subscriptions": now["subscriptions"],
        "lagging": now["lagging"],
        "gaps": now["gaps"],
        "entries": now["entries"],
        **rates,
        **{name: now[name] for name in ("lag", "refused", "requests_refused", "queues", "loop_lag", "fsync")},
    }


def _print(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        for row in rows:
            echo_json(row)
        return
    from rich.console import Console

    Console().print(_table(rows))


def _table(rows: list[dict[str, Any]]) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, padding=0, collapse_padding=True)
    for column, head in COLUMNS.items():
        table.add_column(head, justify="left" if column == "broker" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in COLUMNS))
    return table


def _cell(value: Any) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:,.1f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)
