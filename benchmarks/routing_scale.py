"""How far the tables of brokers grow in time and memory.

Many subscriptions, ten a consumer at a uniform local broker, on the 107 brokers of the routing experiments, with
advertisements and one producer at the root. Each strategy runs in a process of its own. Before a figure is printed, the
number of remote entries must be near the exact expectation.
"""

from __future__ import annotations

import resource
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

from benchmarks.report import Report, Row, cpu_seconds
from vestnik.lab.exact import EACH, Exact
from vestnik.lab.routing import Market, Setting
from vestnik.sim.topologies import paper
from vestnik.wire.messages import AdminS

STRATEGIES = "covering", "merging"
SECONDS, MEBIBYTES = 300, 4096


class WrongAnswer(Exception):
    """`ours` entries are far from the `truth` in `case`: there is no figure to print."""

    def __init__(self, case: str, ours: int, truth: float) -> None:
        super().__init__(case, ours, truth)


class Grown(NamedTuple):
    """What it took to grow a network: CPU time, peak memory, and how often a broker was touched."""

    seconds: float
    mebibytes: float
    touched: int
    entries: int


def entries(report: Report, subscriptions: int) -> None:
    """Rows for time, memory, and time for each subscription and for each broker that it reaches."""
    exact = Exact(paper())
    for strategy in STRATEGIES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            grown = alone.submit(grow, strategy, subscriptions).result()
        truth = exact.entries(strategy, True, "interval", subscriptions // EACH)
        if abs(grown.entries - truth) > max(0.03 * truth, 100):
            raise WrongAnswer(strategy, grown.entries, truth)
        case = f"{strategy}: {subscriptions:,} subscriptions"
        note = f"{grown.entries:,} remote entries"
        report.add(Row("entries", case, grown.seconds, "s", target=SECONDS, at_most=True, note=note))
        report.add(Row("entries", case, grown.mebibytes, "MiB", target=MEBIBYTES, at_most=True))
        report.add(Row("entries", case, grown.seconds / subscriptions * 1e6, "us a subscription"))
        report.add(Row("entries", case, grown.seconds / grown.touched * 1e6, "us a broker touched"))


def grow(strategy: str, subscriptions: int) -> Grown:
    market = Market(Setting(strategy=strategy, advertisements=True, form="interval"), 1, paper())
    start = cpu_seconds()
    market.grow(subscriptions)
    seconds = cpu_seconds() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    overlay = market.overlay
    return Grown(seconds, memory, subscriptions + overlay.sent[AdminS], overlay.entries().remote)
