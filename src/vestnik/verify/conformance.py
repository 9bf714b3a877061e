"""Does a routing strategy do what all must: any strategy, on random small trees, under random operations.

While messages are on their way the tables must be weakly valid, and when all have arrived, valid. When also all that
was not renewed must have expired, what brokers think they told each other must be so, and nothing be there that nobody
asked for. The trace of all that happened must be safe and live. After a corruption the same holds from when it must
have healed. What fails is made shorter: steps that the failure does not need are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from vestnik.routing.reductions import Strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.verify.agreement import Definition, agreement
from vestnik.verify.network import LEASES, MakeRouter, Network
from vestnik.verify.scripts import Script, random_script
from vestnik.verify.stabilization import brevity, strangers
from vestnik.verify.traces import check_trace
from vestnik.verify.validity import Invalid, weak_validity
from vestnik.verify.violations import Violation
from vestnik.wire.messages import NodeId

SEEDS = range(100)


def conformance(
    make_strategy: Callable[[NodeId | None], Strategy],
    *,
    seeds: Iterable[int] = SEEDS,
    advertisements: bool = False,
    definition: Definition | None = None,
) -> list[Violation]:
    """What a strategy does wrong in the first of the runs that fails, one for each seed.

    `make_strategy` is given the broker above, which is None for the root, and gives a strategy for the one below. With
    a definition, what neighbours are told is held against it.
    """
    kind = AdvertisingRouter if advertisements else Router
    return router_conformance(lambda parent: kind(make_strategy(parent), LEASES), seeds=seeds, definition=definition)


def router_conformance(
    make_router: MakeRouter, *, seeds: Iterable[int] = SEEDS, definition: Definition | None = None
) -> list[Violation]:
    """The same for whole routers."""
    for seed in seeds:
        script = random_script(Random(seed))
        found = play(script, make_router, definition)
        if found:
            return _shortened(script, found, make_router, definition)
    return []


def play(script: Script, make_router: MakeRouter, definition: Definition | None = None) -> list[Violation]:
    """What goes wrong first."""
    network = Network(script.parents, make_router)
    for step in script.steps:
        try:
            step(network)
            found = check_tables(network, definition)
        except Exception as error:  # whatever a strategy raises is its failure
            found = [Violation("raises", f"{type(error).__name__}: {error}", records=tuple(network.records))]
        if found:
            return found
    return check_trace(network.records, since=network.right_since, advertisements=network.advertising)


def check_tables(network: Network, definition: Definition | None = None) -> list[Violation]:
    """What is wrong in a network as it is."""
    if network.now < network.right_since:
        return network.wrong
    routers, weak = network.routers, "" if network.is_quiet else "weak "
    invalid = weak_validity(routers, network.holding, network.finished, network.finished_offers)
    found = [*network.wrong, *(_violation(f"{weak}{one.rule}", one, network) for one in invalid)]
    records, offered = tuple(network.records), network.offered if network.advertising else None
    found += [Violation("leases", said, records=records) for said in brevity(routers)]
    if network.is_quiet and network.now >= network.in_order_since:
        found += [Violation("agreement", said, records=records) for said in agreement(routers, definition)]
        found += [Violation("strangers", said, records=records) for said in strangers(routers, network.asked, offered)]
    return found


def _violation(rule: str, one: Invalid, network: Network) -> Violation:
    return Violation(rule, one.said, *one.subscription, one.witness, tuple(network.records))


def _shortened(
    script: Script, found: list[Violation], make_router: MakeRouter, definition: Definition | None
) -> list[Violation]:
    """What goes wrong without the steps that this does not need."""
    length = 0
    while length != len(script.steps):
        length = len(script.steps)
        for place in reversed(range(length)):
            shorter = script._replace(steps=script.steps[:place] + script.steps[place + 1 :])
            again = play(shorter, make_router, definition)
            if again:
                script, found = shorter, again
    return found
