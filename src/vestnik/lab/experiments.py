"""Experiments by name. Each is a module with `run` and `draw`, imported when it runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from vestnik.lab.parallel import Bench
from vestnik.lab.results import Draw, Result

_known = {
    "routing": ("vestnik.lab.routing_study", "Table entries and messages of the routing strategies, by subscriptions."),
    "compare": ("vestnik.lab.compare", "All routing strategies on the same subscriptions and publications."),
    "leases": ("vestnik.lab.leases_study", "How long a network takes to recover, and what renewals cost."),
    "checking": ("vestnik.lab.checking_study", "How often to ask whether notifications were lost."),
}


class Experiment(NamedTuple):
    """`run(full, bench)` gives a result, `draw` its figures."""

    name: str
    run: Callable[[bool, Bench], Result]
    draw: Draw


def titles() -> dict[str, str]:
    """A line on each experiment."""
    return {name: title for name, (_, title) in _known.items()}


def find(name: str) -> Experiment:
    if name not in _known:
        raise ValueError(f"there is no experiment called {name!r}; there are {', '.join(_known)}")
    module = import_module(_known[name][0])
    return Experiment(name, module.run, module.draw)
