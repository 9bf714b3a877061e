"""The checking experiment: what strategies of checking cost and gain, in the model of the paper and in the client."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import NamedTuple

from vestnik.lab.checking import DELTAS, STEPS, TABLE_1, steps
from vestnik.lab.checking_claims import judge
from vestnik.lab.checking_client import measure_clients
from vestnik.lab.checking_figures import FIGURES
from vestnik.lab.checking_figures import draw as draw
from vestnik.lab.checking_printed import case_1, case_2
from vestnik.lab.checking_runs import KINDS, measure_runs, printed_rows, rank_rows, rows_of
from vestnik.lab.checking_weather import measure_curves, measure_storms
from vestnik.lab.losses import LAWS
from vestnik.lab.parallel import Bench
from vestnik.lab.results import Result, Row
from vestnik.session.checking import T0, Adaptive


class Size(NamedTuple):
    """How many runs there are of the model, of losses in time, with so many storms each, and of the client."""

    runs: int
    weathers: int
    storms: int
    clients: int


REDUCED = Size(4000, 10, 10, 5)
FULL = Size(20_000, 50, 20, 30)


def run(full: bool, bench: Bench) -> Result:
    return study(FULL if full else REDUCED, bench)


def study(size: Size, bench: Bench) -> Result:
    runs = measure_runs(KINDS, size.runs, bench.part(0.0, 0.3))
    tables: dict[str, list[Row]] = {
        "checking": list(rows_of(runs)),
        "checking-printed": printed_rows(runs),
        "checking-ranks": list(rank_rows(runs)),
        "checking-cases": list(_cases()),
        "checking-curves": measure_curves(size.weathers, size.storms, bench.part(0.3, 0.5)),
        "checking-storms": measure_storms(size.weathers, size.storms, bench.part(0.5, 0.8)),
        "checking-client": measure_clients(size.clients, bench.part(0.8, 1.0)),
        "checking-paths": list(_paths()),
    }
    return Result(
        name="checking",
        title="Checking: how often to ask whether notifications were lost",
        settings=size._asdict() | {"steps": STEPS, "t0": T0, "deltas": list(DELTAS)},
        tables=tables,
        claims=judge(tables),
        figures=FIGURES,
    )


def _cases() -> Iterator[Row]:
    """The two cases with a solution: as it is printed, and by rule (3) from t0 on."""
    rule = Adaptive(delta=20, alpha=0.5)
    for case, k in ((1, 0), (2, 1), (2, 3)):
        interval = T0
        for i in range(1, 6):
            interval = rule.next(interval, k, Random(0).uniform)
            printed = case_2(T0, rule.alpha, k, i) if k else case_1(T0, rule.delta, i)
            later = case_2(T0, rule.alpha, k, i + 1) if k else case_1(T0, rule.delta, i + 1)
            yield {"case": case, "k": k, "i": i, "printed": printed, "by_rule": interval, "printed_for_next": later}


def _paths() -> Iterator[Row]:
    """One run of each strategy, and of the adaptive one under each law: what figures 2 and 3 show."""
    lines = {
        f"adaptive, {law}": islice(steps(TABLE_1["adaptive"], LAWS[law], Random(f"path {law}")), STEPS) for law in LAWS
    }
    for name in ("multiplicative decrease", "random", "constant"):
        lines[name] = islice(steps(TABLE_1[name], LAWS["poisson"], Random(f"path {name}")), STEPS)
    for place, row in enumerate(zip(*lines.values(), strict=True), 1):
        yield {"i": place, **{name: step.interval for name, step in zip(lines, row, strict=True)}}
