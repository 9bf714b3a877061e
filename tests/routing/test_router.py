"""A network of routers: what everyone is told is what the definition says, and events arrive where they are wanted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.strategies import Case, cases
from routing.networks import Network
from vestnik import Event, Filter
from vestnik.model import work
from vestnik.routing import propagation
from vestnik.routing import router as router_module
from vestnik.routing.declarative import REDUCE, entries_for, is_merged
from vestnik.routing.propagation import Leases, Propagation, Source
from vestnik.routing.reductions import Entry
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router, Targets
from vestnik.wire.messages import AdminA, AdminS, Interest, NodeId

STRATEGIES = ["flooding", "simple", "identity", "covering", "merging"]
STRATEGIES += [f"hierarchical {name}" for name in STRATEGIES]


def check(name: str, network: Network) -> None:
    for me, router in network.routers.items():
        adverts = router.advertisements if isinstance(router, AdvertisingRouter) else None
        for neighbour in router.neighbours:
            entries = entries_for(neighbour, router.subscriptions, adverts)
            agrees(name, me, neighbour, router.subscriptions, network.routers[neighbour].subscriptions, entries)
            if adverts is not None:
                other = network.routers[neighbour]
                assert isinstance(other, AdvertisingRouter)
                agrees(name.split()[-1], me, neighbour, adverts, other.advertisements, entries_for(neighbour, adverts))


def agrees(
    name: str, me: NodeId, neighbour: NodeId, here: Propagation, there: Propagation, entries: set[Entry]
) -> None:
    """What `neighbour` should know, was told and knows is one, and what the definition says."""
    known = set(here.reduction(neighbour).entries())
    assert known == set(here.told(neighbour))
    assert known == {entry for entry, sources in there if Source(me) in sources}
    variant, _, strategy = name.rpartition(" ")
    if variant and me < neighbour:
        assert known == set()
    elif strategy == "merging":
        assert is_merged(known, entries)
    else:
        assert known == REDUCE[strategy](entries)


def tree(data: st.DataObject) -> list[tuple[int, int]]:
    """A tree in which a broker's parent has a smaller number."""
    count = data.draw(st.integers(2, 5))
    return [(data.draw(st.integers(0, child - 1)), child) for child in range(1, count)]


@pytest.mark.parametrize("advertising", [False, True], ids=["", "advertisements"])
@pytest.mark.parametrize("name", STRATEGIES)
@given(case=cases(trees=5, events=2, size=2), data=st.data())
def test_after_any_operations(name: str, advertising: bool, case: Case, data: st.DataObject) -> None:
    edges = tree(data)
    parents = {child: f"b{parent}" for parent, child in edges}
    kind = AdvertisingRouter if advertising else Router
    network = Network(edges, lambda number: kind(make_strategy(name, parent=parents.get(number))))
    subscribed: dict[tuple[int, str], Filter] = {}
    advertised: dict[tuple[int, str], Filter] = {}
    filters = [wanted for wanted in case.filters if wanted != Filter.none()] or [Filter.all()]
    brokers = st.integers(0, len(edges))
    for _ in range(data.draw(st.integers(0, 12))):
        key = data.draw(brokers), data.draw(st.sampled_from("st"))
        wanted = data.draw(st.sampled_from(filters))
        if data.draw(st.booleans()) and advertising:
            if key in advertised:
                network.unadvertise(*key)
                del advertised[key]
            else:
                network.advertise(*key, wanted)
                advertised[key] = wanted
        elif key in subscribed:
            network.unsubscribe(*key, subscribed.pop(key))
        else:
            network.subscribe(*key, wanted)
            subscribed[key] = wanted
        if data.draw(st.booleans()):
            network.settle()
            check(name, network)
    network.settle()
    check(name, network)
    for event in case.events:
        number = data.draw(brokers)
        offered = [wanted for (at, _), wanted in advertised.items() if at == number]
        conforms = not advertising or any(wanted.matches(event) for wanted in offered)
        expected = {key for key, wanted in subscribed.items() if conforms and wanted.matches(event)}
        arrived = list(network.publish(number, event))
        assert len(arrived) == len(set(arrived))
        assert {(int(source.node[1:]), source.name) for source in arrived} == expected


@given(case=cases(trees=4, events=1, size=2), data=st.data())
def test_links_come_and_go(case: Case, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["simple", "identity", "covering", "merging"]))
    network = Network([(0, 1), (1, 2)], lambda number: AdvertisingRouter(make_strategy(name)))
    filters = [wanted for wanted in case.filters if wanted != Filter.none()] or [Filter.all()]
    for number in range(3):
        network.advertise(number, "a", data.draw(st.sampled_from(filters)))
        network.subscribe(number, "s", data.draw(st.sampled_from(filters)))
    network.settle()
    network.cut("b1", "b2")
    network.settle()
    check(name, network)
    network.subscribe(2, "t", data.draw(st.sampled_from(filters)))
    network.open("b0", "b2")
    if data.draw(st.booleans()):
        network.settle()  # it comes before the other side is linked
    if data.draw(st.booleans()):
        network.unadvertise(0, "a")
        network.settle()
    network.open("b2", "b0")
    network.settle()
    check(name, network)


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The steps that each operation on a table has spent, as a part of those it may spend."""
    found: list[float] = []

    @contextmanager
    def counted(allowed: int) -> Iterator[None]:
        before = work._shared.get()
        with work.together(allowed):
            budget = work._shared.get()
            yield
        if before is None and budget is not None:
            found.append((budget.allowed - budget.left) / budget.allowed)

    for module in (propagation, router_module):
        monkeypatch.setattr(module, "together", counted)
    return found


def patterns(rng: random.Random, count: int) -> Filter:
    """A filter that takes long to compare with others of its kind."""
    each = [f"(x LIKE '%{rng.randrange(999)}%{rng.randrange(99)}_{n}%' AND y > {n})" for n in range(count)]
    return Filter.parse(" OR ".join(each))


@pytest.mark.parametrize("kind", [Router, AdvertisingRouter])
def test_what_a_link_that_comes_up_costs_is_bounded(kind: type[Router], spent: list[float]) -> None:
    """All entries of a table are compared then, and share their steps."""
    rng = random.Random(3)
    router = kind(make_strategy("merging"), Leases())
    for number in range(25):
        router.subscribe(Source("c", str(number)), patterns(rng, 8), 1e9)
    spent.clear()
    router.connect("n")
    router.take("n", AdminA((Interest(Filter.all()),)), 0.0)
    assert list(router.flush(0.0))
    assert 0 < max(spent) < 2 + work.RESERVE


@pytest.mark.parametrize("strategy", ["covering", "merging"])
def test_what_the_end_of_a_filter_that_covers_many_costs_is_bounded(strategy: str, spent: list[float]) -> None:
    """All that it has covered is compared then."""
    rng = random.Random(3)
    router = Router(make_strategy(strategy), Leases())
    router.connect("n")
    wide, wanted = Filter.parse("x >= '' AND y > -1"), [patterns(rng, 4) for _ in range(150)]
    for number, one in enumerate([wide, *wanted]):
        router.subscribe(Source("c", str(number)), one, 1e9)
    list(router.flush(0.0))
    spent.clear()
    router.unsubscribe(Source("c", "0"), wide)
    (_, told), *_ = router.flush(0.0)
    assert len(spent) == 1 and 0 < spent[0] < 2 + work.RESERVE
    assert isinstance(told, AdminS)
    for example in filter(None, [one.example() for one in wanted]):
        assert any(one.filter.matches(example) for one in told.add)


def test_what_a_neighbour_wants_is_known_unless_entries_may_have_been_released(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [Filter.parse(f"x = {n}") for n in range(3)]
    for kind in (Router, AdvertisingRouter):
        router = kind(make_strategy("covering"))
        router.connect("n")
        router.connect("m")
        router.take("n", AdminS(tuple(map(Interest, wanted))), 0.0)
        router.subscribe(Source("c", "s"), Filter.parse("y = 1"), 5.0)
        assert router.wanted_by("n") == (tuple(wanted) if kind is Router else (Filter.all(),))
    plain = Router(make_strategy("covering"))
    plain.connect("n")
    assert plain.wanted_by("n") == ()
    plain.take("n", AdminS(tuple(map(Interest, wanted))), 0.0)
    monkeypatch.setattr("vestnik.routing.router.MANY", 2)
    assert plain.wanted_by("n") == (Filter.all(),)
    flooding = Router(make_strategy("flooding"))
    flooding.connect("n")
    assert flooding.wanted_by("n") == (Filter.all(),)


def test_where_events_go_is_found_out_once_for_as_many_answers_as_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(router_module, "REMEMBERED", 3)
    router = Router(make_strategy("simple"))
    for n in range(4):
        router.subscribe(Source("c", f"s{n}"), Filter.parse(f"n = {n}"), inf)
    events = [Event("t", {"n": n}) for n in range(4)]

    def routed(count: int, sender: NodeId) -> list[Targets]:
        return [targets for event in events[:count] for _, targets in router.route([event], sender)]

    first, again = routed(3, "p"), routed(3, "p")
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert all(one is other for one, other in zip(first, routed(3, "another client"), strict=True))
    assert routed(4, "p") == [([], [Source("c", f"s{n}")]) for n in range(4)], "more are found out anew"


def test_an_event_of_a_neighbour_does_not_go_back_where_that_of_a_client_goes() -> None:
    router = Router(make_strategy("simple"))
    for node in ("u", "v"):
        router.connect(node)
        router.take(node, AdminS(add=(Interest(Filter.all()),)), 0.0)
    went = {
        sender: [list(targets.neighbours) for _, targets in router.route([Event("t")], sender)] for sender in "puvq"
    }
    assert went == {"p": [["u", "v"]], "u": [["v"]], "v": [["u"]], "q": [["u", "v"]]}


def test_answers_with_many_subscriptions_are_forgotten_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_module, "REMEMBERED_SOURCES", 30)
    router = Router(make_strategy("simple"))
    for n in range(3):
        for name in range(10):
            router.subscribe(Source("c", f"s{n}/{name}"), Filter.parse(f"n = {n}"), inf)

    def where(n: int) -> Targets:
        ((_, targets),) = router.route([Event("t", {"n": n})], "p")
        return targets

    first, second = where(0), where(1)
    assert (where(0), where(1)) == (first, second) and where(0) is first and where(1) is second
    assert len(where(2).subscriptions) == 10
    assert where(0) is not first and where(0) == first, "it was forgotten, and found out again"
