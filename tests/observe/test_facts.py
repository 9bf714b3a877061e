"""Facts are made of a message to a broker and its effects."""

from __future__ import annotations

from broker.worlds import CHEAP, DEAR, OF_CLIENTS, World, quote
from vestnik import Event
from vestnik.broker.effects import (
    Append,
    Appended,
    Gone,
    LinkUp,
    NotAppended,
    Note,
    OfferEnded,
    OfferMade,
    SubscriptionChanged,
    SubscriptionEnded,
    SubscriptionMade,
    Tick,
)
from vestnik.observe.counts import MEANINGS, TOTALS, Counts
from vestnik.observe.facts import (
    Fact,
    Forwarded,
    Given,
    NotStored,
    Passed,
    PublicationRefused,
    RequestRefused,
    Said,
    Stored,
    facts_of,
)
from vestnik.routing.propagation import Leases
from vestnik.wire.messages import (
    AdminS,
    Advertise,
    Interest,
    Message,
    Position,
    Publish,
    Refusal,
    Subscribe,
    Took,
    Unadvertise,
    Unsubscribe,
)
from vestnik.wire.origins import Origin, Routed


def facts(world: World, sender: str, message: Message) -> list[Fact]:
    return facts_of(message, sender, world.broker.handle(message, sender, world.now))


def reserved(id: str) -> Event:
    return Event("vestnik.x", source="nyse", id=id)


def of_clients(found: list[Fact]) -> list[Fact]:
    return [fact for fact in found if isinstance(fact, OF_CLIENTS)]


def kinds(found: list[Fact]) -> list[str]:
    return [type(fact).__name__ for fact in found]


def publish(world: World, *messages: Publish) -> list[Fact]:
    """Return the facts when events of `p` are stored."""
    found: list[Fact] = []
    for message in messages:
        effects = world.broker.handle(message, "p", world.now)
        found += facts_of(message, "p", effects)
        for append in [one for one in effects if isinstance(one, Append)]:
            found += facts(world, "b", Appended(append))
    return found


def test_an_event_is_stored_forwarded_and_given() -> None:
    world = World()
    facts(world, "u", AdminS((Interest(CHEAP),)))
    facts(world, "c", Subscribe("s", CHEAP, afresh=7))
    world.now = 3.0
    stored, forwarded, given, answer = publish(world, Publish((quote(5), quote(50, "r")), request=1))
    assert isinstance(stored, Stored) and (stored.client, stored.time) == ("p", 3_000_000)
    assert [(event.id, event.seq) for event in stored.events] == [("q", 1), ("r", 2)]
    assert forwarded == Forwarded("u", Routed(world.broker.origin, stored.events[:1]))
    assert isinstance(given, Given) and given.client == "c" and given.deliveries[0].numbers == ((7, 1),)
    assert answer == Said("p", "Stored")
    assert kinds(facts(world, "c", Took((Position("s", 7, 1),)))) == ["ClientTook"]


def test_what_is_refused_or_cannot_be_stored() -> None:
    world = World()
    unread = Refusal("x", "it cannot be read", "nyse")
    (refused, *_) = facts(world, "p", Publish((reserved("q"), quote(2, "ok")), (unread,)))
    assert isinstance(refused, PublicationRefused) and refused.client == "p"
    assert [event.id for event in refused.events] == ["q"] and [one.id for one in refused.refusals] == ["x", "q"]
    append = Append("p", (quote(2, "ok"),))
    assert facts(world, "b", NotAppended(append, "no room"))[0] == NotStored("p", append.events, "no room", False)
    (refused,) = facts(world, "c", Subscribe("", CHEAP, request=1))
    assert refused == RequestRefused("c", "it has no name")


def test_what_comes_from_a_neighbour_and_has_expired() -> None:
    world = World()
    world.meet("x")
    world.now = 10.0
    stale = quote(5, stream=("x", "nyse"), seq=1, expires=1)
    found = facts(world, "u", Routed(Origin("x", 1), (stale,)))
    assert found == [Passed("u", (stale,)), Note(stale, "u", "expired")]


def test_what_clients_want_is_told_when_it_begins_changes_and_ends() -> None:
    world = World(leases=Leases(6.0, 1.0), sweep=1.0)
    facts(world, "b", Tick())
    (made,) = of_clients(facts(world, "c", Subscribe("s", CHEAP, afresh=7, epoch=3, seen=(("x/1", 5),), made=9)))
    assert made == SubscriptionMade("c", "s", CHEAP, 7, True, None, 9, (("x/1", 5),))
    assert not of_clients(facts(world, "c", Subscribe("s", CHEAP, epoch=7, afresh=8))), "it was renewed"
    (changed,) = of_clients(facts(world, "c", Subscribe("s", DEAR, epoch=7, afresh=8)))
    assert changed == SubscriptionChanged("c", "s", DEAR)
    ended, again = of_clients(facts(world, "c", Subscribe("s", DEAR, afresh=9)))
    assert isinstance(ended, SubscriptionEnded) and "begun it again" in ended.reason
    assert isinstance(again, SubscriptionMade) and (again.epoch, again.resumed) == (9, False)
    assert of_clients(facts(world, "c", Unsubscribe("s"))) == [
        SubscriptionEnded("c", "s", "unsubscribed", (("b/1", 1),))
    ]
    assert not of_clients(facts(world, "c", Unsubscribe("s"))), "it was over"
    facts(world, "c", Subscribe("t", CHEAP, lease=5.0))
    facts(world, "c", Subscribe("u", CHEAP))
    gone = facts(world, "b", Gone("c"))
    assert [one.name for one in gone if isinstance(one, SubscriptionEnded)] == ["u"]
    world.now = 9.0
    lapsed = [one for one in facts(world, "b", Tick()) if isinstance(one, SubscriptionEnded)]
    assert [(one.name, one.reason) for one in lapsed] == [("t", "its lease ended: it was not renewed")]


def test_what_clients_advertise() -> None:
    world = World()
    assert facts(world, "p", Advertise("a", CHEAP))[0] == OfferMade("p", "a", CHEAP)
    assert "OfferMade" not in kinds(facts(world, "p", Advertise("a", CHEAP))), "it was renewed"
    assert facts(world, "p", Unadvertise("a"))[0] == OfferEnded("p", "a")


def test_everything_is_counted() -> None:
    world, counts = World(), Counts()
    facts(world, "u", AdminS((Interest(CHEAP),)))
    facts(world, "c", Subscribe("s", CHEAP, afresh=7))
    counts.take(publish(world, Publish((quote(5), quote(50, "r"), reserved("x")))), 0.0)
    counts.take(facts(world, "c", Subscribe("", CHEAP, request=1)), 0.0)
    counts.take([LinkUp("v"), Passed("v", (quote(1),) * 3)], 0.0)
    assert {name: total for name, total in counts.totals.items() if total} == {
        "taken": 2,
        "forwarded": 1,
        "notified": 1,
        "refused": 1,
        "requests_refused": 1,
        "passed": 3,
    }
    assert MEANINGS.keys() == {total.name for total in TOTALS.values()}
