"""The leases experiment: stabilization time against its bound, and what renewals cost."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from vestnik.lab.figures import COLOURS
from vestnik.lab.leases import STRATEGIES, Overhead, Recovery, overhead, recover
from vestnik.lab.parallel import Bench, done
from vestnik.lab.results import Claim, Figure, Result
from vestnik.report.drawing import figure


class Corrupted(NamedTuple):
    """A network that has to recover."""

    strategy: str
    advertisements: bool
    seed: int
    most_brokers: int


class Renewing(NamedTuple):
    """A network in order whose clients renew; the lease is `factor` times its bound."""

    strategy: str
    factor: float
    seed: int


class Size(NamedTuple):
    """How many corrupted networks for each strategy, how large, and over which leases overhead is measured."""

    states: int
    most_brokers: int
    leases: tuple[float, ...]
    seeds: int


REDUCED = Size(2, 10, (1.5, 4.0), 1)
FULL = Size(63, 50, (1.2, 1.5, 2.0, 4.0, 8.0), 5)


def run(full: bool, bench: Bench) -> Result:
    size = FULL if full else REDUCED
    corrupted = product(STRATEGIES, (False, True), range(size.states), [size.most_brokers])
    recoveries = done(_recover, [Corrupted(*one) for one in corrupted], bench.part(0.0, 0.9))
    renewing = product(STRATEGIES, size.leases, range(size.seeds))
    costs = done(_overhead, [Renewing(*one) for one in renewing], bench.part(0.9, 1.0))
    return Result(
        name="leases",
        title="Leases: how long a network takes to recover from anything, and what renewals cost",
        settings=size._asdict(),
        tables={
            "leases-stabilization": [recovery._asdict() | {"share": recovery.share} for recovery in recoveries],
            "leases-overhead": [cost._asdict() for cost in costs],
        },
        claims=[_printed(recoveries), _stated(recoveries), _stays(recoveries), _cost(costs)],
        figures=[
            Figure("leases-stabilization", "Time until all is in order, as a share of the bound for each strategy"),
            Figure("leases-overhead", "Messages between brokers for renewals, by the length of a lease"),
        ],
    )


def draw(result: Result, folder: Path) -> None:
    with figure(folder / "leases-stabilization.png") as (panel,):
        labels = []
        for place, (strategy, ads) in enumerate(product(STRATEGIES, (False, True))):
            rows = result.tables["leases-stabilization"]
            shares = [r["share"] for r in rows if (r["strategy"], r["advertisements"]) == (strategy, ads)]
            panel.plot([place] * len(shares), shares, "o", alpha=0.35, color=COLOURS[strategy])
            labels.append(f"{strategy}\n+ adv." if ads else strategy)
        panel.axhline(1.0, color="black", linewidth=0.8)
        panel.set_xticks(range(len(labels)), labels, fontsize=8)
        panel.set(ylim=(0, 1.1), ylabel="share of the bound", title="Stabilization from arbitrary states")
    with figure(folder / "leases-overhead.png") as (panel,):
        for strategy in STRATEGIES:
            rows = [row for row in result.tables["leases-overhead"] if row["strategy"] == strategy]
            factors = sorted({row["factor"] for row in rows})
            rates = [mean([row["rate"] for row in rows if row["factor"] == factor]) for factor in factors]
            panel.plot(factors, rates, "o-", color=COLOURS[strategy], label=strategy)
        panel.set(xlabel="lease / its bound", ylabel="messages a refresh period and subscription", ylim=(0, None))
        panel.set_title("What renewals cost")
        panel.legend(fontsize=8, frameon=False, loc="upper right")


def _recover(task: Corrupted) -> Recovery:
    return recover(task.strategy, task.seed, advertisements=task.advertisements, most_brokers=task.most_brokers)


def _overhead(task: Renewing) -> Overhead:
    return overhead(*task)


def _printed(recoveries: list[Recovery]) -> Claim:
    ratios = [recovery.seconds / recovery.printed_bound for recovery in recoveries]
    beyond = sum(ratio > 1 for ratio in ratios)
    return Claim(
        claim="Stabilization takes dmax + d (dmax - dmin) + rho (formula 16, as it is printed)",
        measured=f"{beyond} of {len(ratios)} networks took longer, {min(ratios):.2f} to {max(ratios):.1f} times that",
        verdict="refuted" if beyond else "not refuted by these states",
        reason="a wrong entry goes only when its lease ends, and the lease is not in the formula",
    )


def _stated(recoveries: list[Recovery]) -> Claim:
    shares = [recovery.share for recovery in recoveries]
    return Claim(
        claim="Stabilization takes at most pi + (d + 1) dmax + 2 sigma, and once or twice a way through the network "
        "more where entries hide others or advertisements guide them (docs/design/0006)",
        measured=f"{sum(s <= 1 for s in shares)} of {len(shares)} networks within it; at most {max(shares):.0%} of it, "
        f"on average {mean(shares):.0%}",
        verdict="holds" if max(shares) <= 1 else "refuted",
    )


def _stays(recoveries: list[Recovery]) -> Claim:
    left = [recovery for recovery in recoveries if recovery.after]
    return Claim(
        claim="What is in order stays so",
        measured=f"{len(recoveries) - len(left)} of {len(recoveries)} networks, looked at for half the bound longer",
        verdict="refuted" if left else "holds",
        reason=left[0].after[:200] if left else "",
    )


def _cost(costs: list[Overhead]) -> Claim:
    shortest, longest = min(cost.factor for cost in costs), max(cost.factor for cost in costs)
    by_factor = {f: mean([c.rate for c in costs if c.factor == f]) for f in (shortest, longest)}
    return Claim(
        claim="Longer leases cost fewer renewals",
        measured=f"{by_factor[shortest]:.2f} messages between brokers a refresh period and subscription with a lease "
        f"of {shortest:g} times its bound, {by_factor[longest]:.2f} with {longest:g} times",
        verdict="holds" if by_factor[longest] < by_factor[shortest] else "refuted",
        reason="clients renew as often; their brokers pass on what gains half of what the lease has above its bound",
    )
