"""What a broker tells of what its clients want and offer."""

from __future__ import annotations

from typing import Any

import pytest

from broker.worlds import CHEAP, DEAR, World, quote, sent_to
from vestnik import Event, Filter, Replay
from vestnik.broker.announcements import Announcements, Wish
from vestnik.broker.effects import Effect, Gone, LinkDown, Send, Tick
from vestnik.model.reserved import SUBSCRIPTION
from vestnik.routing.propagation import Leases
from vestnik.routing.router import AdvertisingRouter
from vestnik.wire.messages import (
    Addressed,
    AdminA,
    AdminS,
    Advertise,
    Announce,
    Interest,
    Message,
    Notify,
    Opened,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    WhatIsOpen,
)
from vestnik.wire.origins import Origin, OriginHere

ANY = Filter.parse("type IS vestnik")


class Hearing(World):
    """A broker that announces, with a neighbour `u` who asks for it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(announces=True, **options)
        self.tell("u", AdminS(add=(Interest(ANY),)))

    def told(self, sender: str, message: Message) -> list[tuple[str, str, str]]:
        """The announcements to `u`: the end of the type, the name and the filter."""
        sent = [message for message in self.sent(sender, message, "u") if isinstance(message, Announce)]
        return [_short(event) for message in sent for event in message.events]


def _short(event: Event) -> tuple[str, str, str]:
    assert event.source == "b" and event.seq is None and event.data["broker"] == "b"
    return event.type.removeprefix("vestnik."), event.data["name"], event.data["filter"]


def test_what_is_made_changed_and_ended_is_told() -> None:
    world = Hearing()
    made = Subscribe("s", CHEAP, afresh=7, replay=Replay(last=3))
    (event,) = next(m.events for m in world.sent("c", made, "u") if isinstance(m, Announce))
    assert event.data == {"filter": "price < 10", "client": "c", "name": "s", "broker": "b", "replay": {"last": 3}}
    assert world.told("c", Subscribe("s", CHEAP, epoch=7, afresh=8)) == [], "a renewal is no news"
    assert world.told("c", Subscribe("s", DEAR, epoch=7, afresh=8)) == [
        ("subscription.ended", "s", "price < 10"),
        ("subscription.made", "s", "price > 90"),
    ]
    assert world.told("c", Subscribe("s", DEAR, epoch=1, afresh=9)) == [("subscription.made", "s", "price > 90")]
    assert world.told("c", Unsubscribe("s")) == [("subscription.ended", "s", "price > 90")]
    assert world.told("c", Unsubscribe("s")) == []


def test_neighbours_know_of_a_subscription_before_it_is_announced() -> None:
    sent = Hearing().sent("c", Subscribe("s", CHEAP, afresh=7), "u")
    assert [type(message) for message in sent] == [AdminS, Announce]


def test_advertisements_are_told() -> None:
    world = Hearing()
    assert world.told("c", Advertise("a", CHEAP)) == [("advertisement.made", "a", "price < 10")]
    assert world.told("c", Advertise("a", CHEAP)) == []
    changed = [("advertisement.ended", "a", "price < 10"), ("advertisement.made", "a", "price > 90")]
    assert world.told("c", Advertise("a", DEAR)) == changed
    assert world.told("c", Unadvertise("a")) == [("advertisement.ended", "a", "price > 90")]


def test_who_leaves_or_lets_a_lease_run_out_has_ended_it() -> None:
    world = Hearing(sweep=1.0, leases=Leases(10.0))
    for name, lease in (("t", 5.0), ("s", float("inf"))):
        world.tell("c", Subscribe(name, CHEAP, lease=lease, afresh=7))
        world.tell("c", Advertise(name, CHEAP, lease=lease))
    ended = [("subscription.ended", "s", "price < 10"), ("advertisement.ended", "s", "price < 10")]
    assert world.told("b", Gone("c")) == ended
    world.now = 6.0
    world.tell("u", AdminS(add=(Interest(ANY),)))
    ended = [("subscription.ended", "t", "price < 10"), ("advertisement.ended", "t", "price < 10")]
    assert world.told("b", Tick()) == ended
    assert "c" not in world.broker.clients


def test_nothing_is_told_where_nobody_asks() -> None:
    world = World(announces=True)
    world.tell("u", AdminS(add=(Interest(CHEAP),)))
    effects = [effect for name in "cd" for effect in world.tell(name, Subscribe("s", CHEAP, afresh=7))]
    assert not [e for e in effects if isinstance(e, Send) and isinstance(e.message, Announce)]


def test_a_subscription_that_asks_for_announcements_is_told_what_is_open_here_and_elsewhere() -> None:
    world = World(announces=True, neighbours=("u",))
    world.tell("u", OriginHere(Origin("u", 1)))
    of_dear = Filter.parse("type IS vestnik AND OVERLAPS(filter, 'price > 95')")
    world.tell("c", Subscribe("cheap", CHEAP, afresh=7))
    world.tell("c", Subscribe("dear", DEAR, afresh=8))
    effects = world.tell("d", Subscribe("told", of_dear, afresh=1))
    assert _names(effects) == [("made", "dear")]
    (asked,) = [m.body for m in sent_to(effects, "u") if isinstance(m, Addressed)]
    assert asked == WhatIsOpen(asked.number, of_dear)
    made = Event("vestnik.subscription.made", {"name": "far", "filter": "price > 99"}, source="u", id="1")
    answer = Addressed("b", "u", Opened(asked.number, (made,)))
    assert _names(world.tell("u", Announce((made,)))) == [("made", "far")]
    assert _names(world.tell("u", answer)) == [], "it came as an announcement before"
    assert _names(world.tell("u", answer)) == [], "it is answered once"
    changed = world.tell("d", Subscribe("told", ANY, epoch=1, afresh=2))
    assert _names(changed) == [("made", "cheap")], "what it was not told before"


def test_a_broker_that_comes_within_reach_is_asked_what_is_open_there() -> None:
    world = World(announces=True, neighbours=("u",))
    world.tell("d", Subscribe("told", ANY, afresh=1))
    world.tell("d", Subscribe("cheap", CHEAP, afresh=2))
    sent = world.sent("u", OriginHere(Origin("u", 1)), "u")
    assert [m.body.filter for m in sent if isinstance(m, Addressed) and isinstance(m.body, WhatIsOpen)] == [ANY]


def test_another_broker_is_told_what_is_open_here() -> None:
    world = World(announces=True, neighbours=("u",))
    world.tell("u", OriginHere(Origin("w", 1)))
    world.tell("c", Subscribe("cheap", CHEAP, afresh=7))
    world.tell("c", Advertise("dear", DEAR))
    answers = [m for m in world.sent("u", Addressed("b", "w", WhatIsOpen(5, ANY)), "u") if isinstance(m, Addressed)]
    bodies = [one.body for one in answers if isinstance(one.body, Opened)]
    assert {one.to for one in answers} == {"w"} and {one.number for one in bodies} == {5}
    assert [event.data["name"] for body in bodies for event in body.events] == ["cheap", "dear"]
    assert [body.more for body in bodies] == [True] * (len(bodies) - 1) + [False]


def _names(effects: list[Effect]) -> list[tuple[str, str]]:
    return [(event.type.rpartition(".")[2], event.data["name"]) for event in _notified(effects)]


def _notified(effects: list[Effect]) -> list[Event]:
    messages = [effect.message for effect in effects if isinstance(effect, Send)]
    deliveries = [delivery for message in messages if isinstance(message, Notify) for delivery in message.deliveries]
    return [event for delivery in deliveries for event in delivery.events]


def test_wishes_about_announcements_are_not_announced() -> None:
    world = Hearing()
    assert world.told("c", Subscribe("s", ANY, afresh=7)) == []
    both = Filter.parse("type IS vestnik OR price < 10")
    told = world.told("c", Subscribe("t", both, afresh=8))
    assert [(type, name) for type, name, _ in told] == [("subscription.made", "t")]
    assert Filter.parse(told[0][2]).same_as(Filter.parse("price < 10 AND NOT type IS vestnik"))


def test_ordinary_subscriptions_do_not_get_them() -> None:
    world = Hearing()
    world.tell("d", Subscribe("s", Filter.all(), afresh=7))
    world.tell("e", Subscribe("s", Filter.parse("client = 'c'"), afresh=8))
    effects = world.tell("c", Subscribe("s", CHEAP, afresh=9))
    assert not [e for e in effects if isinstance(e, Send) and isinstance(e.message, Notify)]


def test_clients_cannot_publish_them() -> None:
    (append,) = Hearing().tell("c", Publish((Event("vestnik.subscription.made"), quote(1)), request=1))
    (refused,) = append.refused  # type: ignore[union-attr]
    assert "brokers only" in refused.reason and len(append.events) == 1  # type: ignore[union-attr]


def test_nobody_needs_to_advertise_them() -> None:
    world = World(router=AdvertisingRouter, announces=True)
    assert world.sent("c", Subscribe("s", CHEAP, afresh=7), "u") == []
    assert world.sent("c", Subscribe("t", ANY, afresh=8), "u") == [AdminS(add=(Interest(ANY),))]
    world.tell("u", AdminA(add=(Interest(ANY),)))
    world.tell("u", AdminA(remove=(Interest(ANY),)))
    assert world.sent("c", Unsubscribe("t"), "u") == [AdminS(remove=(Interest(ANY),))]


def test_clients_are_told_who_is_within_reach() -> None:
    world = Hearing()
    world.tell("c", Subscribe("s", ANY, afresh=7, replay=None))

    def changes(sender: str, message: Message) -> list[tuple[str, str]]:
        sent = world.sent(sender, message, "c")
        found = [event for note in sent if isinstance(note, Notify) for one in note.deliveries for event in one.events]
        return [(event.type, event.data["broker"]) for event in found if event]

    joined = [("vestnik.broker.joined", "u"), ("vestnik.broker.joined", "w")]
    assert [*changes("u", OriginHere(Origin("u", 1))), *changes("u", OriginHere(Origin("w", 1)))] == joined
    assert changes("b", LinkDown("u")) == [("vestnik.broker.left", "u"), ("vestnik.broker.left", "w")]


@pytest.fixture
def announcements() -> Announcements:
    return Announcements("b")


def test_what_is_open_is_told_as_it_was(announcements: Announcements) -> None:
    wish, late = Wish(SUBSCRIPTION, "c", "s", CHEAP), Wish(SUBSCRIPTION, "c", "t", DEAR)
    announcements.made(late)
    assert announcements.news(0.0, []) == []
    announcements.made(wish)
    told = announcements.news(1.0, [ANY])
    wanted = [Filter.parse("type IS vestnik AND OVERLAPS(filter, 'price = 5')")]
    assert announcements.open(wanted, [wish, late], 2.0) == told
    announcements.made(late)
    assert announcements.news(2.0, [*wanted, Filter.parse("type IS vestnik.broker")]) == [], "it concerns nobody"
    everything = announcements.open([ANY], [late, wish], 3.0)
    assert [event.data["name"] for event in everything] == ["t", "s"]
    assert announcements.open([ANY], [late, wish], 4.0) == everything
    assert announcements.open([Filter.all()], [late, wish], 4.0) == []
