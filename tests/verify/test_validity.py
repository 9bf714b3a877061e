"""Validity of tables: valid ones deliver exactly, invalid ones have a witness that goes wrong (theorems 1 and 2)."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestnik import Event, Filter
from vestnik.routing.propagation import Source
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.trace.records import Notified
from vestnik.verify.network import LEASES, Network, home
from vestnik.verify.scripts import random_event, random_filter
from vestnik.verify.validity import (
    Invalid,
    difference,
    forwarded,
    local_validity,
    remote_validity,
    side,
    validity,
    weak_validity,
)
from vestnik.wire.messages import NodeId

STRATEGIES = ["flooding", "simple", "identity", "covering", "merging", "hierarchical covering"]


def network(name: str, parents: list[int], kind: type[Router] = Router) -> Network:
    return Network(parents, lambda parent: kind(make_strategy(name, parent=parent), LEASES))


def settled(name: str, rng: Random, kind: type[Router]) -> Network:
    """A network in which some clients subscribed and advertised."""
    made = network(name, [rng.randrange(child) for child in range(1, rng.randint(2, 5))], kind)
    for _ in range(6):
        client = f"{rng.choice('cd')}{rng.randrange(len(made.routers))}"
        made.advertise(client, rng.choice("st"), random_filter(rng))
        made.subscribe(client, rng.choice("st"), random_filter(rng))
    made.settle()
    return made


def damage(made: Network, rng: Random) -> None:
    """Take something out of the tables, or put something in."""
    for _ in range(rng.randint(0, 2)):
        broker = rng.choice(sorted(made.routers))
        table = made.routers[broker].subscriptions
        there = sorted((str(entry.filter), source) for entry, sources in table for source in sources)
        if there and rng.random() < 0.7:
            text, source = rng.choice(there)
            entry = next(entry for entry, sources in table if str(entry.filter) == text and source in sources)
            table.remove(entry, source)
        else:
            made.routers[broker].subscribe(Source(f"c{broker[1:]}", "z"), random_filter(rng), 1e9)


def notified(made: Network, client: NodeId, event: Event) -> list[Source]:
    """Whom a publication reaches."""
    before = len(made.records)
    made.publish(client, event)
    made.settle()
    handed = [record for record in made.records[before:] if isinstance(record, Notified)]
    return [Source(record.client, name) for record in handed for name, _ in record.numbers]


def publisher(made: Network, invalid: Invalid) -> NodeId:
    """A client at the broker of the witness that may publish it."""
    names = [source.node for source, offer in made.offered[invalid.publisher].items() if offer.matches(invalid.witness)]
    return names[0] if made.advertising and names else f"c{invalid.publisher[1:]}"


def check_theorems(made: Network, rng: Random) -> None:
    invalids = validity(made.routers, made.asked, made.offered if made.advertising else None)
    for invalid in invalids:
        wants = invalid.wanted.matches(invalid.witness)
        assert invalid.entry.matches(invalid.witness)
        if invalid.rule == "local validity":
            targets = made.routers[invalid.publisher].targets(invalid.witness, invalid.publisher)
            assert (invalid.subscription in targets.subscriptions) is not wants
        else:
            reached = notified(made, publisher(made, invalid), invalid.witness)
            assert wants and invalid.subscription not in reached
            assert home(invalid.subscription.node) in side(made.routers, *reversed(invalid.link))
    if not invalids:
        for broker in made.routers:
            event, client = random_event(rng), f"c{broker[1:]}"
            taken = made.routers[broker].conforms(client)(event.replace(source=client))
            wanting = [
                s for held in made.asked.values() for s, wanted in held.items() if taken and wanted.matches(event)
            ]
            assert sorted(notified(made, client, event)) == sorted(wanting)


@pytest.mark.parametrize("kind", [Router, AdvertisingRouter])
@given(name=st.sampled_from(STRATEGIES), seed=st.integers(0, 2**32))
def test_valid_is_sufficient_and_necessary(kind: type[Router], name: str, seed: int) -> None:
    rng = Random(seed)
    made = settled(name, rng, kind)
    assert validity(made.routers, made.asked, made.offered if made.advertising else None) == []
    check_theorems(made, rng)
    damage(made, rng)
    check_theorems(made, rng)


def line() -> Network:
    """b0 - b1 - b2; a client of b2 wants x from 1 to 5."""
    made = network("identity", [0, 1])
    made.subscribe("c2", "s", Filter.parse("x BETWEEN 1 AND 5"))
    made.settle()
    return made


def test_a_missing_entry_is_named_with_its_link() -> None:
    made = line()
    (entry,) = [entry for entry, _ in made.routers["b0"].subscriptions]
    made.routers["b0"].subscriptions.remove(entry, Source("b1"))
    (invalid,) = validity(made.routers)
    assert invalid == Invalid(
        "remote validity",
        "b0 does not forward to b1 what c2/s beyond wants: (x BETWEEN 1 AND 5)",
        ("b0", "b1"),
        Source("c2", "s"),
        entry.filter,
        entry.filter,
        "b0",
        invalid.witness,
    )
    assert entry.filter.matches(invalid.witness)


def test_only_what_is_missing_of_an_entry_is_named() -> None:
    made = line()
    asked = {"b2": {Source("c2", "s"): Filter.parse("x BETWEEN 1 AND 7")}}
    assert [
        str(invalid.entry) for invalid in remote_validity(made.routers, asked, {"b0": {Source("c0"): Filter.all()}})
    ] == ["x > 5 AND x <= 7"] * 2
    (invalid,) = local_validity(made.routers, asked)
    assert invalid.link == ("b2", "c2") and str(invalid.entry) == "x > 5 AND x <= 7"
    assert invalid.said == "b2 does not hand c2/s all that it wants: (x > 5 AND x <= 7)"


def test_a_wrong_local_entry_is_named() -> None:
    made = line()
    made.routers["b2"].subscribe(Source("d2", "t"), Filter.parse("y = 1"), 1e9)
    (invalid,) = validity(made.routers, made.asked)[-1:]
    assert (invalid.rule, invalid.subscription, str(invalid.entry)) == ("local validity", ("d2", "t"), "y = 1")
    assert invalid.said == "b2 hands d2/t more than it wants: (y = 1)"


def test_weakly_valid_while_the_update_is_on_its_way() -> None:
    made = network("covering", [0, 1])
    made.subscribe("c2", "s", Filter.parse("x = 1"))
    assert [invalid.link for invalid in validity(made.routers, made.asked)] == [("b0", "b1"), ("b1", "b2")]
    assert weak_validity(made.routers, made.asked, made.finished, made.finished_offers) == []
    made.settle()
    assert validity(made.routers, made.asked) == []


def test_advertisements_restrict_what_must_be_forwarded() -> None:
    made = network("covering", [0], AdvertisingRouter)
    made.subscribe("c1", "s", Filter.parse("x > 1"))
    made.settle()
    assert list(forwarded(made.routers["b0"], "b1")) == []
    assert validity(made.routers, made.asked, made.offered) == []
    (invalid,) = validity(made.routers, made.asked, {"b0": {Source("c0", "a"): Filter.parse("x BETWEEN 0 AND 3")}})
    assert invalid.link == ("b0", "b1") and Filter.parse("x > 1 AND x <= 3").matches(invalid.witness)


def test_the_sides_of_a_link() -> None:
    routers = network("flooding", [0, 1, 1, 0]).routers
    assert side(routers, "b0", "b1") == ["b0", "b4"]
    assert side(routers, "b1", "b0") == ["b1", "b2", "b3"]


def test_a_difference() -> None:
    wide = Filter.parse("x BETWEEN 1 AND 9")
    parts = [Filter.parse("x BETWEEN 1 AND 4"), Filter.parse("x > 6"), Filter.parse("y = 1")]
    assert difference(wide, parts).same_as(Filter.parse("x > 4 AND x <= 6 AND NOT y = 1"))
    assert difference(wide, [Filter.parse("EXISTS x")]) == Filter.none()
