"""`vestnik sim run`"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click

from vestnik.cli.inputs import Refused, opened, shown_name
from vestnik.cli.outputs import echo_json
from vestnik.cli.progress import share_progress
from vestnik.errors import VestnikError
from vestnik.sim.runs import Run
from vestnik.sim.scenarios import Scenario, read_scenario
from vestnik.sim.summaries import Entries, Summary
from vestnik.trace.files import to_lines
from vestnik.trace.records import AnyRecord


@click.command("run", epilog="Exit codes: 0 simulated; 2 the scenario is wrong, nothing was simulated.")
@click.argument("scenario", metavar="SCENARIO.toml")
@click.option("--trace", metavar="TRACE.jsonl", help="Write all that happens to this file.")
@click.option("--messages", is_flag=True, help="With --trace: every message that is sent, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(scenario: str, trace: str | None, messages: bool, as_json: bool) -> None:
    """Simulate the scenario in SCENARIO.toml and print what it comes to.

    The same file gives the same trace, byte for byte.
    """
    summary = simulate(read_file(scenario), trace, messages=messages)
    if as_json:
        echo_json(summary.as_dict())
    else:
        click.echo("\n".join(lines(summary)))


def read_file(name: str) -> Scenario:
    """The scenario in a file; Refused where it has none."""
    with opened(name) as file:
        content = file.read()
    try:
        return read_scenario(content.decode())
    except UnicodeDecodeError:
        raise Refused(f"{shown_name(name)} is no text in UTF-8") from None
    except VestnikError as error:
        raise Refused(f"{shown_name(name)} cannot be simulated: {error}") from None


def simulate(scenario: Scenario, trace: str | None, *, messages: bool = False) -> Summary:
    """Simulate, and write the trace to a file if one is named."""
    happened: list[AnyRecord] = []
    run = Run(scenario, happened.append if trace is not None else _forget, all_sent=messages)
    with ExitStack() as stack:
        advance = stack.enter_context(share_progress("simulating"))

        def records() -> Iterator[AnyRecord]:
            for share in run.steps():
                yield from happened
                happened.clear()
                advance(share)
            yield from happened

        if trace is None:
            for _ in records():
                pass
        else:
            stack.enter_context(Path(trace).open("wb")).writelines(to_lines(records()))
    return run.summary()


def _forget(record: AnyRecord) -> None:
    """Nobody asked for a trace."""


def lines(summary: Summary) -> Iterator[str]:
    """A summary as a table of two columns."""
    yield _line("simulated time", f"{summary.seconds:,.1f} s")
    yield _line("published", f"{summary.published:,}" + _more(summary.rejected, "refused"))
    yield _line("notified", f"{summary.notified:,}" + _more(summary.lost, "lost"))
    for reason, count in summary.drops.items():
        yield _line(f"dropped: {reason}", f"{count:,}")
    yield _line("messages", f"{sum(summary.messages.values()):,}")
    for kind, count in summary.messages.items():
        yield _line(f"  {kind}", f"{count:,}")
    yield _line("subscription entries", _entries(summary.subscriptions))
    if any(summary.advertisements):
        yield _line("advertisement entries", _entries(summary.advertisements))


def _line(name: str, value: str) -> str:
    return f"{name:<28}{value}"


def _more(count: int, what: str) -> str:
    return f", {count:,} {what}" if count else ""


def _entries(entries: Entries) -> str:
    return f"{entries.remote:,} of neighbours, {entries.local:,} of clients"
