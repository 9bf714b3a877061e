"""The conformance kit passes every strategy that is there, and catches every mistake that is planted."""

from __future__ import annotations

from random import Random

import pytest

from verify.planted import BUGS, Bug
from vestnik.routing.declarative import REDUCE, is_merged
from vestnik.routing.merging import Merging
from vestnik.routing.reductions import Entry
from vestnik.routing.registry import known_strategies, make_strategy
from vestnik.trace.records import AnyRecord, Subscribed
from vestnik.verify.agreement import Definition
from vestnik.verify.conformance import conformance, play, router_conformance
from vestnik.verify.scripts import random_script
from vestnik.verify.violations import Violation


def exactly(name: str) -> Definition:
    def agrees(known: set[Entry], entries: set[Entry]) -> bool:
        return known == REDUCE[name](entries)

    return agrees


DEFINITIONS: dict[str, Definition] = {"merging": is_merged} | {name: exactly(name) for name in REDUCE}


@pytest.mark.parametrize("advertisements", [False, True], ids=["", "advertisements"])
@pytest.mark.parametrize("name", known_strategies())
def test_strategies_conform(name: str, advertisements: bool) -> None:
    definition = DEFINITIONS.get(name)
    found = conformance(
        lambda parent: make_strategy(name, parent=parent),
        seeds=range(20),
        advertisements=advertisements,
        definition=definition,
    )
    assert found == []


def test_imperfect_merging_conforms() -> None:
    assert conformance(lambda parent: Merging(0.4), seeds=range(20)) == []


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS.keys())
def test_mistakes_are_caught(bug: Bug) -> None:
    found = router_conformance(bug.make, definition=bug.definition)
    assert found, "nothing was found"
    violation = found[0]
    assert violation.rule == bug.rule and bug.said in violation.said
    assert len(violation.records) <= 8, "it was not made short"
    if violation.rule.endswith("remote validity"):
        assert violation.event is not None
        assert wanted(violation).filter.matches(violation.event), "the witness is one that its client wants"
    elif violation.rule.endswith("local validity"):
        assert violation.event is not None
        assert not is_subscribed(violation) or not wanted(violation).filter.matches(violation.event)


def wanted(violation: Violation) -> Subscribed:
    """What the client of a violation last asked for under its name."""
    return [record for record in violation.records if is_by(record, violation)][-1]  # type: ignore[return-value]


def is_by(record: AnyRecord, violation: Violation) -> bool:
    return isinstance(record, Subscribed) and (record.client, record.name) == violation[2:4]


def is_subscribed(violation: Violation) -> bool:
    about = [r for r in violation.records if (getattr(r, "client", ""), getattr(r, "name", "")) == violation[2:4]]
    return bool(about) and isinstance(about[-1], Subscribed)


def test_a_run_is_the_same_every_time() -> None:
    bug = BUGS["overlap taken for cover"]
    assert router_conformance(bug.make) == router_conformance(bug.make)
    assert random_script(Random(1)).parents == random_script(Random(1)).parents


def test_what_passes_is_passed_with_the_seeds_that_are_asked_for() -> None:
    bug = BUGS["merging keeps what is gone"]
    assert router_conformance(bug.make, seeds=range(5)) == []
    assert play(random_script(Random(0)), bug.make) == []
