"""`vestnik sub`"""

from __future__ import annotations

import time
from typing import Any

import click

from vestnik.cli.asking import PATIENCE, connected, url_option
from vestnik.cli.inputs import Refused, parsed
from vestnik.cli.loops import run
from vestnik.client.notifications import Notification
from vestnik.client.subscriptions import Subscription
from vestnik.errors import VestnikError
from vestnik.model.filters import Filter
from vestnik.wire.replays import Replay

TOO_FEW = 1
REPLAYS = "all", "last", "since", "latest_by"
FORMS = "all, last=N, since=TIME or latest_by=PATH"


def read_replay(text: str) -> Replay:
    """What is to be replayed, in the words of the command line; Refused where they say nothing of the kind."""
    given: dict[str, Any] = {}
    for word in text.split(","):
        name, _, value = word.partition("=")
        if name not in REPLAYS or (name == "all") == bool(value):
            raise Refused(f"--replay is {FORMS}, not {text}")
        given[name] = value or True
    try:
        if "last" in given:
            if not given["last"].isdecimal():
                raise Refused(f"--replay last=N is the last so many, a whole number, not {given['last']}")
            given["last"] = int(given["last"])
        return Replay(**given)
    except (TypeError, ValueError, VestnikError) as error:
        raise Refused(f"--replay is {FORMS}, not {text}: {error}") from None


@click.command(
    "sub",
    epilog="Exit codes: 0 as many came as were wanted; 1 fewer, or some may be lost; 2 wrong input, or no broker.",
)
@click.argument("filter", metavar="FILTER")
@url_option
@click.option("--name", metavar="NAME", help="What the broker knows this client by.  [default: at random]")
@click.option("--replay", metavar="WHAT", help="Past events first: all, last=N, since=TIME or latest_by=PATH.")
@click.option("-c", "--count", type=click.IntRange(1), help="End after so many events.")
@click.option(
    "-W",
    "--wait",
    type=click.FloatRange(0, min_open=True),
    help="End after so many seconds; also where there is no broker.",
)
@click.pass_context
def command(
    ctx: click.Context,
    filter: str,
    url: str | None,
    name: str | None,
    replay: str | None,
    count: int | None,
    wait: float | None,
) -> None:
    """Print the events that match FILTER, one a line, as JSON."""
    past = None if replay is None else read_replay(replay)
    wanted = parsed(filter)
    if not wanted.region:
        click.echo("vestnik: no event can match this filter; vestnik filter check says why", err=True)
    came, is_whole = run(_subscribe(wanted, url, name, past, count, wait))
    ctx.exit(TOO_FEW if (count is not None and came < count) or not is_whole else 0)


async def _subscribe(
    wanted: Filter, url: str | None, name: str | None, replay: Replay | None, count: int | None, wait: float | None
) -> tuple[int, bool]:
    """How many events came, and whether none is known to be lost."""
    end = None if wait is None else time.monotonic() + wait
    async with connected(url, name, PATIENCE if wait is None else min(wait, PATIENCE)) as bus:
        subscription = await bus.subscribe(wanted, replay=replay)
        came, is_whole = 0, True
        while count is None or came < count:
            notification = await _next(subscription, None if end is None else max(0.0, end - time.monotonic()))
            if notification is None:
                break
            if notification.gap is not None:
                is_whole = False
                gap = notification.gap
                lost = "notifications may be lost" if gap.lost is None else f"{gap.lost:,} notifications are lost"
                click.echo(f"vestnik: {lost}: {gap.reason}", err=True)
            click.echo(notification.event.to_json())
            came += 1
        return came, is_whole


async def _next(subscription: Subscription, timeout: float | None) -> Notification | None:
    """The next notification; None where none comes in time."""
    try:
        return await subscription.get(timeout)
    except TimeoutError:
        return None
