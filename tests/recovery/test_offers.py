"""Advertisements that are withdrawn while events wait for the disk: too rare in random worlds."""

from __future__ import annotations

from vestnik import Event, Filter
from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import Append, Appended, Effect, LinkUp, Send, Tick
from vestnik.routing.propagation import Leases
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter
from vestnik.wire.messages import AdminA, AdminS, Advertise, Interest, Publish, Unadvertise
from vestnik.wire.origins import OriginOffers, Routed


def told(effects: list[Effect]) -> list[type]:
    """Return the types of the messages for the neighbour, in order."""
    return [type(one.message) for one in effects if isinstance(one, Send) and one.to == "b"]


def is_withdrawn(effects: list[Effect]) -> bool:
    """Return whether the neighbour is told that an advertisement is over."""
    return any(isinstance(one, Send) and isinstance(one.message, AdminA) and one.message.remove for one in effects)


def test_an_advertisement_stays_until_the_events_accepted_under_it_are_routed() -> None:
    core = BrokerCore("a", AdvertisingRouter(make_strategy("simple")))
    core.handle(LinkUp("b"), "a", 1.0)
    core.handle(Advertise("ad", Filter.parse("v > 0"), request=1), "p", 1.0)
    core.handle(AdminS((Interest(Filter.parse("v > 0")),)), "b", 1.0)
    (append,) = core.handle(Publish((Event("q", {"v": 1}),), request=2), "p", 2.0)
    assert isinstance(append, Append)
    assert told(core.handle(Unadvertise("ad", request=3), "p", 2.0)) == []
    after = told(core.handle(Appended(append), "a", 3.0))
    assert after[0] is Routed
    assert after == [Routed, AdminA, OriginOffers]


def test_an_advertisement_whose_lease_ends_stays_until_the_events_accepted_under_it_are_routed() -> None:
    core = BrokerCore("a", AdvertisingRouter(make_strategy("simple"), Leases(5.0)), sweep=1.0)
    core.handle(LinkUp("b"), "a", 1.0)
    core.handle(Advertise("ad", Filter.parse("v > 0"), 5.0, request=1), "p", 1.0)
    (append,) = core.handle(Publish((Event("q", {"v": 1}),), request=2), "p", 2.0)
    assert isinstance(append, Append)
    assert not is_withdrawn(core.handle(Tick(), "a", 7.0))
    core.handle(AdminS((Interest(Filter.parse("v > 0")),)), "b", 7.0)
    assert told(core.handle(Appended(append), "a", 8.0))[0] is Routed
    core.handle(AdminS((Interest(Filter.parse("v > 0")),)), "b", 11.0)
    assert is_withdrawn(core.handle(Tick(), "a", 13.0)), "after another lease"
