"""`vestnik history`"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import click

from vestnik.cli.asking import ask, broker_options
from vestnik.cli.inputs import Refused
from vestnik.cli.loops import run
from vestnik.cli.outputs import echo_json
from vestnik.errors import JournalLocked
from vestnik.model.times import format_rfc3339
from vestnik.server.desk import history
from vestnik.server.store import JournalStore

PATIENCE = 600.0
"""Seconds: all that is stored is read."""
TYPES = 20
"""That are printed for people."""


@click.command("history", epilog="Exit codes: 0 done; 2 there is no broker, or the folder cannot be read.")
@broker_options
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="FOLDER", help="Look into the folder of a broker that is down."
)
@click.option(
    "--lake",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Run, until SIGTERM or Ctrl-C: answer, beside the broker, from a lake when the past is replayed.",
)
@click.option("--routing", help="With --lake: run only if the broker routes so.  [default: as the broker does]")
@click.option("--advertisements", is_flag=True, help="With --lake: run only if the broker routes by advertisements.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    url: str | None,
    to: str,
    data: Path | None,
    lake: Path | None,
    routing: str | None,
    advertisements: bool,
    as_json: bool,
) -> None:
    """Say what a broker has stored: how many events, from when to when, of which types.

    With --lake, be a history: what the lake has is part of every replay, also where brokers have forgotten it.
    """
    if lake is not None:
        run(_serve(lake, url, routing, advertisements or None))
        return
    found = ask(url, "history", to, patience=PATIENCE) if data is None else run(_offline(data))
    if as_json:
        echo_json(found)
    else:
        _print(found)


async def _serve(lake: Path, url: str | None, routing: str | None, advertisements: bool | None) -> None:
    from vestnik.services.deep import LakeHistory

    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with LakeHistory(lake, join=url, routing=routing, advertisements=advertisements) as history:
        click.echo(f"{history.name} answers from {lake}", err=True)
        await ended.wait()


async def _offline(data: Path) -> dict[str, Any]:
    folder = data / "journal"
    if not folder.is_dir():
        raise Refused(f"{data} is not the data folder of a broker: it has no journal")
    try:
        store = JournalStore(folder)
    except JournalLocked as error:
        raise Refused(f"{data} is in use by {error.holder}: ask that broker, with --url") from None
    try:
        return history(store.taken)
    finally:
        await store.close()


def _print(found: dict[str, Any]) -> None:
    for lost in found.get("lost", ()):
        click.echo(f"vestnik: {lost}", err=True)
    if not found["events"]:
        click.echo("nothing is stored")
        return
    times = f"from {format_rfc3339(found['first'])} to {format_rfc3339(found['last'])}"
    click.echo(f"{_count(found['events'], 'event')} of {_count(found['sources'], 'source')}, {times}")
    types = list(found["types"].items())
    width = max(len(f"{count:,}") for _, count in types)
    for name, count in types[:TYPES]:
        click.echo(f"  {count:{width},}  {name}")
    if len(types) > TYPES:
        click.echo("  ... and other types")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
