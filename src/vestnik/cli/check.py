"""`vestnik check`"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from msgspec import structs

from vestnik.cli.inputs import Refused, opened, shown_name
from vestnik.cli.outputs import echo_json
from vestnik.model.cloudevents import to_cloudevent
from vestnik.services.views import clock
from vestnik.trace.files import to_plain
from vestnik.trace.given import accepting, check_complete, check_once
from vestnik.trace.lives import Life, read_lives, together
from vestnik.trace.records import AnyRecord, Restarted
from vestnik.verify.outages import longest_outage
from vestnik.verify.quiet import agreements
from vestnik.verify.safety import ALWAYS
from vestnik.verify.traces import check_trace
from vestnik.verify.violations import Violation

CENTURY = 946_684_800.0
"""The beginning of the year 2000, in seconds since 1970."""
SHOWN: Final = 20
"""Violations of each rule that are printed, unless they are printed as JSON."""
EXITS: Final = (
    "Exit codes: 0 nothing is wrong; 1 something is; 2 a trace cannot be read, is missing, or is there twice."
)

F = TypeVar("F", bound=Callable[..., Any])


def held_to(command: F) -> F:
    """The options that say what a trace is held to."""
    settling = click.option(
        "--settling",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="The time after which what was done has taken effect; without it, only the trace itself tells.",
    )
    since = click.option(
        "--since", type=float, default=ALWAYS, metavar="SECONDS", help="The time from which on all is to be right."
    )
    offers = click.option("--advertisements", is_flag=True, help="Clients may publish only what they advertised.")
    stored = click.option(
        "--stored", is_flag=True, help="Brokers store and links lose nothing: in the end, all is to arrive."
    )
    return settling(since(offers(stored(command))))


@click.command("check", epilog=EXITS)
@click.argument("traces", nargs=-1, required=True, metavar="TRACE.jsonl...")
@held_to
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
    violation is printed with its rule and the records that show it; of one rule, the first 20.
    """
    check_files(traces)
    files = [_lives(trace) for trace in traces]
    _check_given(traces, files)
    whole = [say_cut(trace, lives) for trace, lives in zip(traces, files, strict=True)]
    records = together([life for lives in files for life in lives])
    found = check_trace(records, settling=settling, since=since, advertisements=advertisements, stored=stored)
    if as_json:
        for violation in found:
            echo_json(facts(violation))
    else:
        echo_violations(found, "--json prints all")
    counts = Counter(type(record).__name__ for record in records)
    has_settled = bool(counts["Settled"] or agreements(records))
    if not as_json:
        is_due = has_settled or settling is not None or not stored
        click.echo(summary(counts, len(found), is_whole=all(whole) and is_due))
    rules = {violation.rule for violation in found}
    say_doubts(records, rules, settling=settling, has_settled=has_settled)
    ctx.exit(1 if found else 0)


def say_doubts(
    records: Iterable[AnyRecord], rules: Collection[str], *, settling: float | None, has_settled: bool
) -> None:
    """Say so where nothing is due, or where what is missing may come later.

    That is where something was away for longer than things settle in.
    """
    if settling is None:
        if not has_settled:
            said = "the trace never settles; with --settling it is checked that what is due arrives"
            click.echo(f"vestnik: {said}", err=True)
        return
    outage = longest_outage(records) if "liveness" in rules else None
    if outage is not None and outage.seconds > settling:
        away = f"--settling {settling:g} is shorter than {outage.what} was away, {outage.seconds:g} seconds"
        said = f"{away} from {_time(outage.begin)} on; what was late for that is not wrong: settle in longer than that"
        click.echo(f"vestnik: {said}", err=True)


def check_files(traces: Sequence[str]) -> None:
    """Refuse two names of the same file."""
    found: dict[Path, str] = {}
    for trace in traces:
        before = found.get(path := Path(trace).resolve())
        if before == trace:
            raise Refused(f"{shown_name(trace)} is given twice; give it once")
        if before is not None:
            raise Refused(f"{before} and {trace} are the same file; give only one of them")
        found[path] = trace


def _check_given(traces: Sequence[str], files: Sequence[Sequence[Life]]) -> None:
    """Raise an error if a trace is there twice, or one is missing that the others cannot be checked without."""
    named = [(shown_name(trace), life) for trace, lives in zip(traces, files, strict=True) for life in lives]
    of_brokers = [(name, life.records) for name, life in named if life.node]
    check_once((name, one) for name, records in of_brokers for one in records if isinstance(one, Restarted))
    records = [record for _, records in of_brokers for record in records]
    check_complete({life.node for _, life in named}, records, accepting(records))


def _lives(trace: str) -> list[Life]:
    with opened(trace) as file:
        return list(read_lives(file, shown_name(trace)))


def say_cut(trace: str, lives: Sequence[Life]) -> bool:
    """Whether the lives in a file are there to their end; where some are cut off, it is said."""
    last = {life.node or place: life for place, life in enumerate(lives)}
    without_end = [life for life in last.values() if not life.is_whole]
    cut = Counter(life.node for life in lives if not life.is_whole)
    cut.subtract(life.node for life in without_end)
    for node, times in (+cut).items():
        often = "" if times == 1 else f" {times} times"
        said = f"{node} was killed{often}, and went on; what it did and had not written is not checked"
        click.echo(f"vestnik: {shown_name(trace)}: {said}", err=True)
    for life in without_end:
        of = f"{life.node} was killed, or still runs" if life.node else "it was cut off"
        click.echo(f"vestnik: {shown_name(trace)} has no end: {of}; what came later is not checked", err=True)
    return not without_end


def facts(violation: Violation) -> dict[str, object]:
    return {
        "rule": violation.rule,
        "said": violation.said,
        "client": violation.client or None,
        "subscription": violation.subscription or None,
        "event": None if violation.event is None else to_cloudevent(violation.event),
        "records": [to_plain(record) for record in violation.records],
    }


def echo_violations(found: Iterable[Violation], all_of_them: str) -> None:
    """Print the first violations of each rule, how many more there are, and where to find `all_of_them`."""
    counts: Counter[str] = Counter()
    for violation in found:
        counts[violation.rule] += 1
        if counts[violation.rule] <= SHOWN:
            click.echo(counterexample(violation))
    for rule, count in counts.items():
        if count > SHOWN:
            click.echo(f"{rule}: and {count - SHOWN:,} more; {all_of_them}")


def counterexample(violation: Violation) -> str:
    """The violation, and below it what happened, each with its time."""
    return "\n".join([_printable(str(violation)), *(f"  {record_text(record)}" for record in violation.records)])


def record_text(record: AnyRecord) -> str:
    """A record on one line, without what it has not got."""
    given = [(field, getattr(record, field.name)) for field in structs.fields(record) if field.name != "at"]
    fields = [f"{field.name}={_shown(value)}" for field, value in given if value != field.default]
    return _printable(" ".join([_time(record.at), type(record).__name__, *fields]))


def _time(at: float) -> str:
    """A time of this century as people write it, and one of a simulation in seconds."""
    return clock(at) if at >= CENTURY else f"{at:g}"


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def _printable(text: str) -> str:
    """`text` on one line, without what a terminal would obey."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def summary(counts: Mapping[str, int], found: int, *, is_whole: bool) -> str:
    """The verdict on a trace with so many records of each kind and so many violations."""
    nothing = "nothing is wrong" if is_whole else "nothing is wrong so far"
    verdict = nothing if not found else f"{found:,} violations" if found > 1 else "1 violation"
    published, notified = counts.get("Published", 0), counts.get("Notified", 0)
    return f"{verdict}: {sum(counts.values()):,} records, {published:,} published, {notified:,} notified"
