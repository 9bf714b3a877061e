"""What is not renewed ends with its lease, and nothing else does."""

from __future__ import annotations

import pytest

from vestnik import Event, Filter
from vestnik.routing.covering import Covering
from vestnik.routing.propagation import Leases, Source
from vestnik.routing.reductions import Entry
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Expired, Router
from vestnik.wire.messages import AdminA, AdminS, Interest

SOURCE = Source("c", "s")
LOW, HIGH = Filter.parse("x < 1"), Filter.parse("x > 2")
NOTHING = Filter.parse("x < 1 AND x > 2")
LEASES = Leases(length=10.0)
NONE = Expired([], set())
KINDS = pytest.mark.parametrize("kind", [Router, AdvertisingRouter])


@KINDS
def test_what_has_expired_is_named_with_its_filter(kind: type[Router]) -> None:
    router = kind(Covering(), LEASES)
    router.subscribe(SOURCE, LOW, 5.0)
    router.subscribe(SOURCE, HIGH, 9.0)
    assert router.expire(5.0) == ([(SOURCE, LOW)], set())
    assert [entry.filter for entry, _ in router.subscriptions] == [HIGH]
    assert router.expire(9.0) == ([(SOURCE, HIGH)], set())


@pytest.mark.parametrize(("kind", "told"), [(Router, AdminS), (AdvertisingRouter, AdminS), (AdvertisingRouter, AdminA)])
def test_neighbours_that_did_not_renew_something_are_named(
    kind: type[Router], told: type[AdminS] | type[AdminA]
) -> None:
    router = kind(Covering(), LEASES)
    for neighbour in ("silent", "renewing"):
        router.connect(neighbour)
        router.take(neighbour, told((Interest(LOW, lease=5.0),)), 0.0)
    router.take("renewing", told((Interest(LOW, lease=5.0),)), 4.0)
    assert router.expire(4.0) == NONE
    assert router.expire(5.0) == ([], {"silent"})
    assert router.expire(8.0) == NONE
    router.take("renewing", told((), (Interest(LOW),)), 8.0)
    assert router.expire(9.0) == NONE


@pytest.mark.parametrize(("kind", "told"), [(Router, AdminS), (AdvertisingRouter, AdminS), (AdvertisingRouter, AdminA)])
def test_entries_of_neighbours_last_longer_than_those_of_clients(
    kind: type[Router], told: type[AdminS] | type[AdminA]
) -> None:
    """The broker of a client that vanished tells in time, and is not taken for one that renews nothing."""
    router = kind(Covering(), LEASES._replace(grace=2.0))
    router.connect("n")
    router.take("n", told((Interest(HIGH, lease=5.0),)), 0.0)
    router.subscribe(SOURCE, LOW, 5.0)
    assert router.expire(5.0) == ([(SOURCE, LOW)], set())
    assert router.expire(6.9) == NONE
    assert router.expire(7.0) == ([], {"n"})


@KINDS
def test_a_subscription_that_wants_nothing_expires(kind: type[Router]) -> None:
    router = kind(Covering(), LEASES)
    router.subscribe(SOURCE, NOTHING, 5.0)
    router.subscribe(SOURCE, NOTHING, 1e9)
    assert router.expire(6.0) == NONE
    assert router.expire(16.0) == ([(SOURCE, NOTHING)], set())
    assert router.expire(17.0) == NONE
    router.subscribe(SOURCE, NOTHING, 20.0)
    router.unsubscribe(SOURCE, NOTHING)
    assert router.expire(20.0) == NONE


@KINDS
@pytest.mark.parametrize("offered", [LOW, NOTHING])
def test_an_advertisement_ends_with_its_lease(kind: type[Router], offered: Filter) -> None:
    router = kind(Covering(), LEASES)
    router.advertise(SOURCE, offered, 5.0)
    router.expire(4.0)
    assert router.advertised == {SOURCE: offered}
    router.expire(5.0)
    assert router.advertised == {}
    assert router.conforms("c")(Event("t", {"x": 0})) is (kind is Router)


@KINDS
def test_an_advertisement_that_was_changed_lasts_as_long_as_the_new_one(kind: type[Router]) -> None:
    router = kind(Covering(), LEASES)
    router.advertise(SOURCE, LOW, 5.0)
    router.advertise(SOURCE, HIGH, 9.0)
    router.expire(5.0)
    assert router.advertised == {SOURCE: HIGH}
    assert router.conforms("c")(Event("t", {"x": 3}))


def test_an_old_advertisement_that_is_still_in_the_table_takes_no_other_with_it() -> None:
    router = AdvertisingRouter(Covering(), LEASES)
    router.advertise(SOURCE, HIGH, 9.0)
    router.advertisements.add(Entry(LOW), SOURCE, 5.0)
    router.expire(5.0)
    assert [entry.filter for entry, _ in router.advertisements] == [HIGH]
    assert router.advertised == {SOURCE: HIGH}


@pytest.mark.parametrize("name", ["covering", "merging"])
def test_what_comes_to_stand_for_others_is_believed_as_long_as_they_last(name: str) -> None:
    router = Router(make_strategy(name), LEASES)
    router.connect("b")
    router.subscribe(Source("c", "narrow"), Filter.parse("x = 1 AND y = 1"), 10.0)
    router.subscribe(Source("c", "wide"), Filter.parse("x = 1 AND y > 0"), 10.0)
    brief = Filter.parse("x IN (1, 2) AND y BETWEEN 1 AND 3")
    router.subscribe(Source("c", "brief"), brief, 1.0)
    list(router.flush(0.0))
    router.unsubscribe(Source("c", "wide"), Filter.parse("x = 1 AND y > 0"))
    ((_, message),) = router.flush(0.0)
    assert message.add == (Interest(brief, "", 10.0),)
