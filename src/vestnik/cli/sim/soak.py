"""`vestnik sim soak`"""

from __future__ import annotations

import time
from collections import Counter
from itertools import islice

import click

from vestnik.cli.progress import share_progress
from vestnik.sim.soak import Claim, Outcome, soak
from vestnik.verify.traces import check_trace
from vestnik.verify.violations import Violation

SHOWN = 3
"""Of what is wrong with one trace, so much is shown."""
WITNESSES = 8


@click.command("soak", epilog="Exit codes: 0 all traces are right; 1 some are not; 2 wrong usage.")
@click.option("--seeds", type=click.IntRange(1), default=100, show_default=True, help="How many scenarios.")
@click.option("--first", type=int, default=0, show_default=True, help="The seed of the first one.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="End after so long, if not done before.")
@click.pass_context
def command(ctx: click.Context, seeds: int, first: int, minutes: float | None) -> None:
    """Simulate many random scenarios with random faults, and check the trace of each.

    A scenario is made of its seed alone: --first SEED --seeds 1 repeats one.
    """
    end = time.monotonic() + minutes * 60 if minutes is not None else float("inf")
    totals: Counter[str] = Counter()
    with share_progress("soaking") as advance:
        for number, seed in enumerate(range(first, first + seeds), 1):
            if time.monotonic() >= end:
                break
            outcome = soak(seed, check)
            count(totals, outcome)
            if outcome.wrong:
                report(outcome)
            advance(number / seeds)
    for name, value in totals.items():
        click.echo(f"{name:<28}{value:,}")
    ctx.exit(1 if totals["failures"] else 0)


def check(claim: Claim) -> list[Violation]:
    """What is wrong, by all rules that the claim is held to."""
    found = check_trace(
        claim.records,
        settling=claim.settling,
        since=claim.since,
        advertisements=claim.advertisements,
        stored=claim.stored,
    )
    return [violation for violation in found if not (claim.lossy and violation.rule == "liveness")]


def count(totals: Counter[str], outcome: Outcome) -> None:
    summary = outcome.summary
    totals["scenarios"] += 1
    totals["failures"] += bool(outcome.wrong)
    totals["faults"] += len(outcome.scenario.faults)
    totals["messages"] += sum(summary.messages.values())
    totals["published"] += summary.published
    totals["notified"] += summary.notified


def report(outcome: Outcome) -> None:
    """Say what is wrong, with its counterexample."""
    routing = outcome.scenario.routing
    kind = f"{routing.strategy}{' with advertisements' if routing.advertisements else ''}"
    click.echo(f"seed {outcome.seed}: {kind}: {len(outcome.wrong)} wrong")
    for violation in outcome.wrong[:SHOWN]:
        click.echo(f"  {violation}")
        for record in islice(getattr(violation, "records", ()), WITNESSES):
            click.echo(f"    {record}")
