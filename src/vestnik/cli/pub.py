"""`vestnik pub`"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from datetime import UTC, datetime
from io import BufferedIOBase
from typing import Any

import click

from vestnik.cli.asking import connected, url_option
from vestnik.cli.events import Faults, read_events
from vestnik.cli.inputs import Refused, opened, parsed
from vestnik.cli.lines import Batch, batches
from vestnik.cli.loops import run
from vestnik.client.bus import Bus
from vestnik.errors import InvalidEvent, NotAccepted, OutcomeUnknown
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.strict_json import read_json
from vestnik.model.times import MICROS
from vestnik.wire.pages import packed_to_publish

SOME_NOT = 1
UNKNOWN = 3
LIKE_FILES = (".json", ".jsonl", ".ndjson")
LINES_AHEAD = 4
"""Batches of lines that are read before they are published."""


@click.command(
    "pub",
    epilog="Exit codes: 0 all events are stored; 1 some lines hold none, or some were refused; 2 wrong input; "
    "3 the broker cannot tell whether some are stored.",
)
@click.argument("type", required=False)
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@url_option
@click.option("--name", metavar="NAME", help="What the broker knows this client by.  [default: at random]")
@click.option("--source", metavar="SOURCE", help="The source of an event that is given by its type.  [default: NAME]")
@click.option("--id", metavar="ID", help="Its id.  [default: at random]")
@click.option("--subject", metavar="SUBJECT", help="What it is about.")
@click.option("--time", metavar="TIME", help="When it happened, as 2026-05-01T12:30:00Z, or now.")
@click.option("--priority", type=click.IntRange(0, 9), help="How urgent it is, from 0 to 9.  [default: 4]")
@click.option("--not-before", metavar="TIME", help="Deliver it from then on.")
@click.option("--expires", metavar="TIME", help="Deliver it until then.")
@click.option("--advertise", metavar="FILTER", help="Advertise this first.")
def command(
    type: str | None,
    values: tuple[str, ...],
    url: str | None,
    name: str | None,
    source: str | None,
    advertise: str | None,
    **envelope: Any,
) -> None:
    """Publish one event of TYPE with these values, or without TYPE those on standard input, one a line, as JSON.

    A VALUE that is no JSON is a string. A KEY such as a.b is a value within a value.
    """
    envelope = {key: value for key, value in envelope.items() if value is not None}
    if type is None and (source is not None or envelope):
        options = ", ".join(f"--{key.replace('_', '-')}" for key in [*(["source"] if source else []), *envelope])
        raise Refused(f"{options}: that is for an event that is given by its type; events on standard input say it")
    offered = None if advertise is None else parsed(advertise, "filter of --advertise")
    given = None if type is None else [_event(type, values, source=source or name or "vestnik-pub", **envelope)]
    click.get_current_context().exit(run(_publish(given, url, name, offered)))


def _event(type: str, values: tuple[str, ...], **envelope: Any) -> Event:
    if "=" in type:
        raise Refused(f"the first word is the type of the event, not {type!r}: vestnik pub TYPE {type}")
    if not values and type.endswith(LIKE_FILES):
        raise Refused(f"{type} looks like a file, and TYPE is the type of one event: vestnik pub < {type}")
    if envelope.get("time") == "now":
        envelope["time"] = datetime.now(UTC)
    data: dict[str, Any] = {}
    for pair in values:
        key, equals, text = pair.partition("=")
        if not equals or not all(key.split(".")):
            raise Refused(f"expected KEY=VALUE, not {pair!r}")
        _put(data, key, _value(text))
    event = Event(type, data, **envelope)
    if event.expires is not None and event.expires <= time.time() * MICROS:
        raise Refused(f"--expires {envelope['expires']} is past: nobody would be given the event")
    return event


def _put(data: dict[str, Any], key: str, value: Any) -> None:
    """Put a value where its key says; Refused where there is one."""
    *outer, last = key.split(".")
    for part in outer:
        data = data.setdefault(part, {})
        if not isinstance(data, dict):
            raise Refused(f"{key} is within {part}, which has a value of its own")
    if last in data:
        raise Refused(f"{key} is given twice")
    data[last] = value


def _value(text: str) -> Any:
    try:
        return read_json(text)
    except InvalidEvent:
        return text


async def _publish(given: list[Event] | None, url: str | None, name: str | None, offered: Filter | None) -> int:
    """The exit code."""
    async with connected(url, name) as bus:
        if offered is not None:
            await bus.advertise(offered)
        if given is not None:
            return await _send(bus, given)
        with opened("-"):
            file = open(0, "rb", closefd=False)  # noqa: SIM115  # a read that waits holds its lock
            return await _publish_lines(bus, file)


async def _publish_lines(bus: Bus, file: BufferedIOBase) -> int:
    faults, code, published = Faults("-"), 0, 0
    arrived: asyncio.Queue[Batch | None] = asyncio.Queue(LINES_AHEAD)
    reading = threading.Thread(target=_read, args=(file, arrived, asyncio.get_running_loop()), daemon=True)
    reading.start()
    while (batch := await arrived.get()) is not None:
        events = _fitting(*read_events(batch.lines, faults), faults)
        if events:
            code = max(code, await _send(bus, events))
            published += len(events)
    if faults.count:
        others = "the others were published" if published else "there are no others"
        click.echo(f"vestnik: {faults.summary()}; {others}", err=True)
    return max(code, SOME_NOT) if faults.count else code


def _fitting(numbers: list[int], events: list[Event], faults: Faults) -> list[Event]:
    """Those that are not too large; the others go to `faults`."""
    found: list[Event] = []
    for number, event in zip(numbers, events, strict=True):
        try:
            packed_to_publish(event)
            found.append(event)
        except InvalidEvent as error:
            faults.add(number, str(error))
    return found


def _read(file: BufferedIOBase, arrived: asyncio.Queue[Batch | None], loop: asyncio.AbstractEventLoop) -> None:
    """Read on a thread that may be left behind: nobody can interrupt a read."""
    with suppress(RuntimeError, CancelledError):  # nobody waits for it any more
        for batch in batches(file):
            asyncio.run_coroutine_threadsafe(arrived.put(batch), loop).result()
        asyncio.run_coroutine_threadsafe(arrived.put(None), loop).result()


async def _send(bus: Bus, events: list[Event]) -> int:
    """The exit code of what was published."""
    try:
        await bus.publish_many(events)
    except (NotAccepted, OutcomeUnknown) as error:
        click.echo(f"vestnik: {error}", err=True)
        return UNKNOWN if isinstance(error, OutcomeUnknown) else SOME_NOT
    return 0
