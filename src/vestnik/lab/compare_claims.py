"""What the comparison of all strategies shows, each claim over all workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from vestnik.lab.compare_run import Compared
from vestnik.lab.results import Claim, verdict
from vestnik.report.numbers import number

EXACT = ("simple", "identity", "covering", "merging")


def judge(rows: list[Compared]) -> list[Claim]:
    workloads = [list(group) for _, group in groupby(rows, key=lambda row: row.workload)]
    return [
        _same(workloads),
        _in_vain(workloads),
        _delay(workloads),
        _bytes(workloads),
        _complexity(workloads),
        _flooding(workloads),
    ]


def _same(workloads: list[list[Compared]]) -> Claim:
    def delivered(rows: list[Compared]) -> str:
        counts = sorted({row.notifications for row in rows})
        return f"{', '.join(map(number, counts))} notifications under {len(rows)} ways of routing"

    return Claim(
        claim="every strategy delivers the same",
        measured=_each(workloads, delivered),
        verdict=verdict(*(len({row.notifications for row in rows}) == 1 for rows in workloads)),
    )


def _in_vain(workloads: list[list[Compared]]) -> Claim:
    def useless(rows: list[Compared]) -> str:
        wasteful = max(rows, key=lambda row: row.useless)
        counts = ", ".join(sorted({number(row.useless) for row in rows if row.strategy in EXACT}))
        share = f"{number(wasteful.useless)} of {number(wasteful.events_sent)}"
        return f"{counts} useless deliveries, {share} with {wasteful.strategy}"

    return Claim(
        claim="filters and their perfect merging keep events from brokers where nobody wants them",
        measured=_each(workloads, useless),
        exact="0 with filters",
        verdict=verdict(*(not any(row.useless for row in rows if row.strategy in EXACT) for rows in workloads)),
    )


def _delay(workloads: list[list[Compared]]) -> Claim:
    def measured(rows: list[Compared]) -> str:
        medians, late = _shown(row.delay_median for row in rows), _shown(row.delay_95 for row in rows)
        return f"median {medians} ms, 95 % within {late} ms"

    return Claim(
        claim="events take the same time under every strategy",
        measured=_each(workloads, measured),
        verdict=verdict(*(len({(row.delay_median, row.delay_95) for row in rows}) == 1 for rows in workloads)),
        reason="there is one way between two brokers of a tree; brokers take no time here, and links have no bandwidth",
    )


def _bytes(workloads: list[list[Compared]]) -> Claim:
    def least(rows: list[Compared]) -> str:
        few, small = _fewest(rows), _smallest(rows)
        flooding = next(row for row in rows if row.strategy == "flooding")
        return (
            f"{called(few)} has the fewest messages ({number(few.messages)}, {number(few.bytes)} bytes), "
            f"{called(small)} the fewest bytes ({number(small.bytes)}); "
            f"flooding {number(flooding.messages)} and {number(flooding.bytes)}"
        )

    found = verdict(*(_fewest(rows).bytes == _smallest(rows).bytes for rows in workloads))
    return Claim(
        claim="the strategy with the fewest messages has the fewest bytes, too",
        measured=_each(workloads, least),
        verdict=found,
        reason=""
        if found == "holds"
        else "a message is the larger the more its filters say, and the more it withdraws",
    )


def _complexity(workloads: list[list[Compared]]) -> Claim:
    def parts(rows: list[Compared]) -> str:
        return ", ".join(
            f"{name} {number(row.complexity or 0.0)} ({number(row.entries)} entries, "
            f"{number(row.withdrawn or 0.0)} withdrawn for each that is told)"
            for name in EXACT
            for row in [_plain(rows, name)]
        )

    def grows(rows: list[Compared]) -> bool:
        merged, identity = _plain(rows, "merging"), _plain(rows, "identity")
        return merged.entries <= identity.entries and (merged.complexity or 0.0) > (identity.complexity or 0.0)

    return Claim(
        claim="merging leaves fewer entries with more complex filters: values and intervals in each",
        measured=_each(workloads, parts),
        verdict=verdict(*map(grows, workloads)),
        reason="sets of values grow when they merge, intervals that meet become one; nobody has unsubscribed: what is "
        "withdrawn has been covered or merged",
    )


def _flooding(workloads: list[list[Compared]]) -> Claim:
    def last(rows: list[Compared]) -> Compared:
        return max(rows, key=lambda row: row.break_even or 0.0)

    def place(rows: list[Compared]) -> str:
        covering = _plain(rows, "covering").break_even or 0.0
        return (
            f"cheaper than covering from {number(covering)} changes a publication on, and cheapest of all from "
            f"{number(last(rows).break_even or 0.0)} on, beyond {called(last(rows))}"
        )

    return Claim(
        claim="flooding has its place where subscriptions change often",
        measured=_each(workloads, place),
        verdict=verdict(*((last(rows).break_even or 0.0) > 0 for rows in workloads)),
        reason="every link carries every event under flooding, and nothing when a subscription changes",
    )


def called(row: Compared) -> str:
    return f"{row.strategy} with advertisements" if row.advertisements else row.strategy


def _plain(rows: list[Compared], strategy: str) -> Compared:
    """The row of a strategy without advertisements."""
    return next(row for row in rows if (row.strategy, row.advertisements) == (strategy, False))


def _fewest(rows: list[Compared]) -> Compared:
    return min(rows, key=lambda row: (row.messages, row.bytes))


def _smallest(rows: list[Compared]) -> Compared:
    return min(rows, key=lambda row: row.bytes)


def _shown(values: Iterable[float | None]) -> str:
    """The least and the largest, or the one that there is."""
    known = [value for value in values if value is not None]
    return " to ".join(map(number, sorted({min(known), max(known)}))) if known else "-"


def _each(workloads: list[list[Compared]], say: Callable[[list[Compared]], str]) -> str:
    return "; ".join(f"{rows[0].workload}: {say(rows)}" for rows in workloads)
