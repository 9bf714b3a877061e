"""The ratio of subscriptions to their ends: what a change costs where more come than leave, or more leave than come.

The consumers of a moment are like any others, so a subscription costs what it costs where the others were always there,
and its end what it would cost to make it again: only how many there are counts.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from vestnik.lab.agreement import LEVEL
from vestnik.lab.exact import EACH, Exact
from vestnik.lab.results import Claim, verdict
from vestnik.lab.routing import Market, Setting
from vestnik.lab.spread import Spread
from vestnik.lab.statistics import estimate, holm, p_value
from vestnik.sim.topologies import Topology, paper
from vestnik.wire.messages import AdminS

FORM = "interval"
MIXES = ((4, 0), (3, 1), (2, 2), (1, 3), (0, 4))
"""How many of four consumers come, and how many leave."""


class Task(NamedTuple):
    strategy: str
    come: int
    leave: int
    subscriptions: int
    seed: int


class Churned(NamedTuple):
    """What was measured while half as many consumers came or left as there were. `messages` are for each change."""

    strategy: str
    come: int
    leave: int
    subscriptions: int
    seed: int
    left: int
    entries: int
    exact_entries: float
    messages: float
    exact_messages: float


def churn(task: Task, topology: Topology | None = None) -> Churned:
    """Consumers come and leave in turn, with advertisements and intervals."""
    topology = topology or paper()
    exact, kind = Exact(topology), (task.strategy, True, FORM)
    setting = Setting(strategy=task.strategy, advertisements=True, form=FORM)
    market = Market(setting, task.seed, topology, task.subscriptions)
    turns = task.subscriptions // EACH // 2
    before, expected = market.overlay.sent[AdminS], 0.0
    for turn in range(turns):
        if turn * task.come % (task.come + task.leave) < task.come:
            expected += exact.admin(*kind, market.load // EACH)
            market.come()
        else:
            market.leave()
            expected += exact.admin(*kind, market.load // EACH)
    return Churned(
        *task,
        left=market.load,
        entries=market.overlay.entries().remote,
        exact_entries=exact.entries(*kind, market.load // EACH),
        messages=(market.overlay.sent[AdminS] - before) / (turns * EACH),
        exact_messages=expected / turns,
    )


def judge(found: list[Churned], topology: Topology | None = None) -> Claim:
    spread = Spread(Exact(topology or paper()))
    cells, p_values = [], []
    for kind in dict.fromkeys((one.strategy, one.come, one.leave) for one in found):
        same = [one for one in found if (one.strategy, one.come, one.leave) == kind]
        messages, entries = estimate([one.messages for one in same]), estimate([one.entries for one in same])
        (strategy, come, leave), first = kind, same[0]
        turns = first.subscriptions // EACH // 2
        for measured, expected, variance in (
            (messages, first.exact_messages, spread.admin(strategy, True, FORM, first.subscriptions // EACH, turns)),
            (entries, first.exact_entries, spread.entries(strategy, True, FORM, first.left // EACH)),
        ):
            p_values.append(p_value(measured, expected, sqrt(variance / len(same))))
        if strategy == "covering":
            cells.append(f"{messages} ({first.exact_messages:.4g}) where {come} come and {leave} leave")
    wrong = holm(p_values, LEVEL)
    return Claim(
        claim="the ratio of subscriptions to their ends counts only by how many are active",
        measured=f"{len(p_values) - len(wrong)} of {len(p_values)} means of messages and entries are as expected; with "
        f"advertisements and intervals a change costs under covering, beside the exact mean: {', '.join(cells)}",
        exact="the end of a subscription costs what it costs to make it",
        verdict=verdict(not wrong),
    )
