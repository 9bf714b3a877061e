"""`vestnik check`"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from vestnik.cli.inputs import opened, shown_name
from vestnik.cli.outputs import echo_json
from vestnik.model.cloudevents import to_cloudevent
from vestnik.services.views import clock
from vestnik.trace.files import to_plain
from vestnik.trace.lives import Life, read_lives, together
from vestnik.trace.records import AnyRecord, Notified, Published, Settled
from vestnik.verify.outages import longest_outage
from vestnik.verify.safety import ALWAYS
from vestnik.verify.traces import check_trace
from vestnik.verify.violations import Violation

CENTURY = 946_684_800.0
"""The beginning of the year 2000, in seconds since 1970."""


@click.command("check", epilog="Exit codes: 0 nothing is wrong; 1 something is; 2 the trace cannot be read.")
@click.argument("traces", nargs=-1, required=True, metavar="TRACE.jsonl...")
@click.option(
    "--settling",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="The time after which what was done has taken effect; without it, only the trace itself tells.",
)
@click.option(
    "--since", type=float, default=ALWAYS, metavar="SECONDS", help="The time from which on all is to be right."
)
@click.option("--advertisements", is_flag=True, help="Clients may publish only what they advertised.")
@click.option("--stored", is_flag=True, help="Brokers store and links lose nothing: in the end, all is to arrive.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line, for each violation.")
@click.pass_context
def command(
    ctx: click.Context,
    traces: tuple[str, ...],
    settling: float | None,
    since: float,
    advertisements: bool,
    stored: bool,
    as_json: bool,
) -> None:
    """Check what happened in a network: the trace in TRACE.jsonl, or - for standard input.

    The traces of all brokers of one run are checked as one, by their times.

    Every notification must be of an event that was published, once, and for an active subscription that matches it;
    what is wanted must arrive; events come in their order and in time, and nothing is lost without a reason. Each
    violation is printed with its rule and the records that show it.
    """
    files = [_lives(trace) for trace in traces]
    records = together([life for lives in files for life in lives])
    found = check_trace(records, settling=settling, since=since, advertisements=advertisements, stored=stored)
    for violation in found:
        if as_json:
            echo_json(facts(violation))
        else:
            click.echo(counterexample(violation))
    if not as_json:
        click.echo(summary(records, found, is_whole=not any(map(_without_end, files))))
    if settling is None and not any(isinstance(record, Settled) for record in records):
        click.echo("vestnik: the trace never settles; with --settling it is checked that what is due arrives", err=True)
    if settling is not None and any(violation.rule == "liveness" for violation in found):
        _doubt(records, settling)
    ctx.exit(1 if found else 0)


def _doubt(records: Sequence[AnyRecord], settling: float) -> None:
    """Say so where what is missing may come later, since something was away for longer than things settle in."""
    outage = longest_outage(records)
    if outage is not None and outage.seconds > settling:
        away = f"--settling {settling:g} is shorter than {outage.what} was away, {outage.seconds:g} seconds"
        said = f"{away} from {_time(outage.begin)} on; what was late for that is not wrong: settle in longer than that"
        click.echo(f"vestnik: {said}", err=True)


def _lives(trace: str) -> list[Life]:
    """The lives in a file; where some are cut off, it is said."""
    with opened(trace) as file:
        lives = list(read_lives(file, shown_name(trace)))
    without_end = _without_end(lives)
    cut = Counter(life.node for life in lives if not life.is_whole)
    cut.subtract(life.node for life in without_end)
    for node, times in (+cut).items():
        often = "" if times == 1 else f" {times} times"
        said = f"{node} was killed{often}, and went on; what it did and had not written is not checked"
        click.echo(f"vestnik: {shown_name(trace)}: {said}", err=True)
    for life in without_end:
        of = f"{life.node} was killed, or still runs" if life.node else "it was cut off"
        click.echo(f"vestnik: {shown_name(trace)} has no end: {of}; what came later is not checked", err=True)
    return lives


def _without_end(lives: Sequence[Life]) -> list[Life]:
    """Those that are cut off, and whose broker has no later one."""
    last = {life.node or place: life for place, life in enumerate(lives)}
    return [life for life in last.values() if not life.is_whole]


def facts(violation: Violation) -> dict[str, object]:
    return {
        "rule": violation.rule,
        "said": violation.said,
        "client": violation.client or None,
        "subscription": violation.subscription or None,
        "event": None if violation.event is None else to_cloudevent(violation.event),
        "records": [to_plain(record) for record in violation.records],
    }


def counterexample(violation: Violation) -> str:
    """The violation, and below it what happened, each with its time."""
    return "\n".join([_printable(str(violation)), *(f"  {record_text(record)}" for record in violation.records)])


def record_text(record: AnyRecord) -> str:
    """A record on one line, without what it has not got."""
    given = {name: getattr(record, name) for name in record.__struct_fields__ if name != "at"}
    fields = [f"{name}={_shown(value)}" for name, value in given.items() if value is not None and value is not False]
    return _printable(" ".join([_time(record.at), type(record).__name__, *fields]))


def _time(at: float) -> str:
    """A time of this century as people write it, and one of a simulation in seconds."""
    return clock(at) if at >= CENTURY else f"{at:g}"


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def _printable(text: str) -> str:
    """`text` on one line, without what a terminal would obey."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def summary(records: Sequence[AnyRecord], found: Sequence[Violation], *, is_whole: bool) -> str:
    published = sum(isinstance(record, Published) for record in records)
    notified = sum(isinstance(record, Notified) for record in records)
    nothing = "nothing is wrong" if is_whole else "nothing is wrong so far"
    verdict = nothing if not found else f"{len(found)} violations" if len(found) > 1 else "1 violation"
    return f"{verdict}: {len(records):,} records, {published:,} published, {notified:,} notified"
