"""`vestnik sim explore`"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import click

from vestnik.cli.outputs import echo_json
from vestnik.cli.progress import step_progress
from vestnik.routing.registry import known_strategies
from vestnik.sim.explore.search import Outcome, Search
from vestnik.sim.explore.settings import Kind, Settings
from vestnik.sim.explore.world import World

KINDS: Final = tuple(kind.value for kind in Kind)
SAID_EVERY: Final = 10_000
"""States after which progress is shown."""


@click.command("explore", epilog="Exit codes: 0 nothing is wrong; 1 something is; 2 wrong usage.")
@click.option("--brokers", type=click.IntRange(1, 5), default=2, show_default=True, help="Brokers in a line.")
@click.option("--clients", type=click.IntRange(1, 5), default=2, show_default=True, help="Clients, at brokers in turn.")
@click.option("--operations", type=click.IntRange(0), default=3, show_default=True, help="How many, faults included.")
@click.option("--faults", type=click.IntRange(0), default=2, show_default=True, help="How many of them, at most.")
@click.option("--subscriptions", type=click.IntRange(1, 2), default=2, show_default=True, help="Of a client, at most.")
@click.option("--only", metavar="KINDS", help=f"Which operations, with commas between: {', '.join(KINDS)}.")
@click.option("--strategy", type=click.Choice(known_strategies()), default="covering", show_default=True)
@click.option("--advertisements", is_flag=True, help="Route by advertisements; clients advertise before they publish.")
@click.option("--subscribed", is_flag=True, help="Begin with a settled subscription of each client.")
@click.option("--deep", is_flag=True, help="Depth first: finds mistakes sooner, by longer ways, in less memory.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="End after so long, if not done before.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def command(
    ctx: click.Context,
    brokers: int,
    clients: int,
    operations: int,
    faults: int,
    subscriptions: int,
    only: str | None,
    strategy: str,
    advertisements: bool,
    subscribed: bool,
    deep: bool,
    minutes: float | None,
    as_json: bool,
) -> None:
    """Try all that can happen in a small world, in every order, and check each state.

    Brokers and clients are the real ones. All messages and timeouts come in every order that is possible. The search
    ends at the first thing that is wrong, and prints the shortest way to it that it found.
    """
    kinds = frozenset(Kind) if only is None else kinds_of(only)
    settings = Settings(
        brokers, clients, operations, faults, subscriptions, strategy, advertisements, subscribed, kinds
    )
    with step_progress() as say:
        outcome = Search(World(settings), is_deep=deep).run(watched(say, minutes))
    if as_json:
        echo_json(outcome._asdict())
    else:
        click.echo("\n".join(lines(outcome)))
    ctx.exit(1 if outcome.wrong else 0)


def kinds_of(text: str) -> frozenset[Kind]:
    names = text.split(",")
    for name in names:
        if name not in KINDS:
            raise click.BadParameter(
                f"there is no operation {name!r}; use some of {', '.join(KINDS)}", param_hint="--only"
            )
    return frozenset(map(Kind, names))


def watched(say: Callable[[str], None], minutes: float | None) -> Callable[[Search], bool]:
    """Return a function that shows how far a search is, and says whether it may go on."""
    end = time.monotonic() + minutes * 60 if minutes is not None else float("inf")

    said_at = 0

    def goes_on(search: Search) -> bool:
        nonlocal said_at
        if search.states >= said_at:
            said_at += SAID_EVERY
            say(f"{search.states:,} states, {search.waiting:,} of them to go on from, {search.longest:,} moves deep")
        return time.monotonic() < end

    return goes_on


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield an outcome as a table of two columns, and what is wrong."""
    yield _line("states", outcome.states)
    yield _line("quiescent", outcome.quiescent)
    yield _line("moves", outcome.moves)
    yield _line("states of single nodes", outcome.nodes)
    yield _line("moves of the longest run", outcome.longest)
    yield f"{'complete':<28}{'yes' if outcome.is_complete else 'no'}"
    if outcome.wrong:
        yield f"wrong: {outcome.wrong}"
        yield from [f"  {number}. {move}" for number, move in enumerate(outcome.path, 1)]


def _line(name: str, value: int) -> str:
    return f"{name:<28}{value:,}"
