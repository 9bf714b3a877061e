"""The whole routing experiment: what is measured, and what becomes of each claim."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product
from typing import Any, NamedTuple

from vestnik.lab import churn, routing_claims, routing_conclusions, routing_variants, selection
from vestnik.lab.exact import law
from vestnik.lab.notebook import Notebook, Task, measure
from vestnik.lab.parallel import Bench, done
from vestnik.lab.results import Figure, Result
from vestnik.lab.routing import FORMS, Measured, Setting
from vestnik.lab.routing_evidence import LINKS, PAPER, STRATEGIES, Evidence
from vestnik.lab.routing_figures import draw as draw
from vestnik.lab.routing_variants import Variants
from vestnik.lab.selection import SELECTIONS, select
from vestnik.routing.registry import HIERARCHICAL, known_strategies

OTHERS = ("flooding", *(f"{HIERARCHICAL} {strategy}" for strategy in STRATEGIES))
"""Strategies that are measured without advertisements, and of which the paper tells nothing."""


class Size(NamedTuple):
    """How much is measured: loads, and the load at which variants are compared.

    Where every broker comes to know every subscription, there are no more than `everywhere`.
    """

    loads: list[int]
    everywhere: int
    seeds: int
    variant_load: int
    variant_seeds: int
    operations: int


REDUCED = Size([20, 60, 1000], 1000, 3, 200, 3, 4)
FULL = Size([10, 100, 1000, 2000, 10_000, 100_000], 20_000, 30, 2000, 10, 20)


def run(full: bool, bench: Bench) -> Result:
    return study(FULL if full else REDUCED, bench)


def study(size: Size, bench: Bench) -> Result:
    notebook = Notebook(bench.folder)
    main, variants = list(_main(size)), list(_variants(size))
    other = list(chain(*list(measure([*main, *variants], notebook, bench.part(0.0, 0.9)))[len(main) :]))
    rows = sorted((row for row in notebook if _is_main(row, size)), key=_place)
    churned = done(churn.churn, list(_churns(size)), bench.part(0.9, 0.95))
    selected = done(select, list(_selections(size)), bench.part(0.95, 1.0))
    evidence, of_variants = Evidence(rows), Variants(other)
    return Result(
        name="routing",
        title="Routing: table entries and messages against the number of subscriptions",
        settings=size._asdict(),
        tables={
            "routing-summary": list(evidence.summary()),
            "routing-cells": list(evidence.judged()),
            "routing": [row.as_row() for row in rows],
            "routing-variants": [row.as_row() for row in other],
            "routing-churn": [one._asdict() for one in churned],
            "routing-selection": [one._asdict() for one in selected],
        },
        claims=[
            *routing_claims.judge(evidence),
            *routing_conclusions.judge(evidence, of_variants),
            *routing_variants.judge(of_variants),
            churn.judge(churned),
            selection.judge(selected),
        ],
        figures=[
            Figure("figure-16", "The 107 brokers of the experiment: routers as circles, local brokers as squares"),
            Figure("figure-17", "Remote entries under covering and merging; lines are exact, points are measured"),
            Figure("figure-18", "By which factor advertisements reduce the remote entries"),
            Figure("routing-messages", "Messages for one more subscription; lines are exact, points are measured"),
        ],
    )


def _main(size: Size) -> Iterator[Task]:
    ways = [*product(STRATEGIES, (False, True)), *product(OTHERS, (False,))]
    for (strategy, ads), form in product(ways, FORMS):
        setting = Setting(strategy=strategy, advertisements=ads, form=form)
        loads = _loads(setting, size)
        yield from (Task(setting, loads, seed, size.operations) for seed in range(1, size.seeds + 1))


def _loads(setting: Setting, size: Size) -> list[int]:
    over_all_links = len(PAPER.counted(setting.strategy, setting.advertisements)) > LINKS
    if not over_all_links or law(setting.strategy, setting.form) != "simple":
        return size.loads
    return sorted({min(load, size.everywhere) for load in size.loads})


def _is_main(row: Measured, size: Size) -> bool:
    """Whether a row is of the main table, where other loads and strategies that were measured before are, too."""
    return row.operations == size.operations and not (row.tolerance or row.locality or row.zipf or row.producers)


def _place(row: Measured) -> Any:
    """The order of rows, however they came into the notebook."""
    return known_strategies().index(row.strategy), row.advertisements, row.form, row.seed, row.subscriptions


def _variants(size: Size) -> Iterator[Task]:
    """The same load with interests of other kinds, imperfect merging, and producers elsewhere."""
    kinds = [
        Setting(strategy=strategy, advertisements=True, form="interval", locality=locality, zipf=zipf)
        for strategy in STRATEGIES[1:]
        for locality, zipf in ((0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (0.0, 1.0))
    ]
    kinds += [
        Setting(strategy="merging", advertisements=True, form="interval", tolerance=tolerance)
        for tolerance in (0.1, 0.3, 0.6)
    ]
    kinds += [
        Setting(strategy="covering", advertisements=True, form="interval", producers=producers) for producers in (1, 5)
    ]
    for kind in kinds:
        for seed in range(1, size.variant_seeds + 1):
            yield Task(kind, [size.variant_load], seed, size.operations)


def _selections(size: Size) -> Iterator[selection.Task]:
    """The same interests served by channels, by subjects and by content."""
    for kind, strategy, seed in product(SELECTIONS, STRATEGIES, range(1, size.variant_seeds + 1)):
        yield selection.Task(kind, strategy, size.variant_load, seed)


def _churns(size: Size) -> Iterator[churn.Task]:
    """The same consumers at first, of whom more or fewer leave than come."""
    for strategy, mix, seed in product(STRATEGIES, churn.MIXES, range(1, size.variant_seeds + 1)):
        yield churn.Task(strategy, *mix, size.variant_load, seed)
