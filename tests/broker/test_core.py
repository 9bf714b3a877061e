"""One broker, message by message."""

from __future__ import annotations

from typing import Any

import pytest

from vestnik import Event, Filter
from vestnik.broker import intake
from vestnik.broker.catchup import FORGOTTEN
from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import (
    Append,
    Appended,
    Drained,
    Effect,
    Full,
    Gone,
    LinkDown,
    LinkUp,
    NotAppended,
    Note,
    Part,
    Past,
    Read,
    Send,
    Tick,
    Wake,
)
from vestnik.broker.streams import Acceptance
from vestnik.model.streams import WINDOW, Arrivals, Recent
from vestnik.routing.propagation import Leases, Source
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.wire.messages import (
    Accepted,
    Addressed,
    AdminS,
    Advertise,
    Answer,
    Ask,
    Delivery,
    Forward,
    Interest,
    Last,
    Malformed,
    Message,
    Notify,
    Position,
    Publish,
    Reach,
    Recall,
    Recalled,
    Refusal,
    Refused,
    Stored,
    Subscribe,
    Taken,
    Unadvertise,
    Unknown,
    Unsubscribe,
)
from vestnik.wire.replays import Replay

HERE = (("b", 0),)
"""What a client has seen where nothing was published."""
CHEAP, DEAR, ACME = (Filter.parse(text) for text in ("price < 10", "price > 90", "symbol = 'ACME'"))


def quote(price: float, id: str = "q", **envelope: Any) -> Event:
    return Event("quote", {"symbol": "ACME", "price": price}, source="nyse", id=id, **envelope)


class World:
    """A broker `b` with neighbours `u` and `v`; `now` is whatever the test says."""

    def __init__(
        self,
        strategy: str = "covering",
        router: type[Router] = Router,
        neighbours: tuple[str, ...] = ("u", "v"),
        **options: Any,
    ) -> None:
        leases = options.pop("leases", Leases())
        self.broker = BrokerCore("b", router(make_strategy(strategy), leases), **options)
        self.now = 0.0
        for neighbour in neighbours:
            self.tell("b", LinkUp(neighbour))

    def tell(self, sender: str, message: Message) -> list[Effect]:
        return self.broker.handle(message, sender, self.now)

    def publish(self, client: str, *events: Event) -> list[Effect]:
        """What follows when events are stored."""
        appends = [e for e in self.tell(client, Publish(events)) if isinstance(e, Append)]
        return [effect for e in appends for effect in self.tell("b", Appended(e))]

    def sent(self, sender: str, message: Message, to: str) -> list[Message]:
        """What goes to `to` when `sender` says something."""
        return [e.message for e in self.tell(sender, message) if isinstance(e, Send) and e.to == to]


def test_a_subscription_is_told_to_neighbours_and_accepted() -> None:
    world = World()
    effects = world.tell("c", Subscribe("s", CHEAP, afresh=7, request=1))
    told = AdminS(add=(Interest(CHEAP),))
    assert effects == [Send("u", told), Send("v", told), Send("c", Accepted(1, epoch=7, seen=HERE))]
    assert world.tell("c", Unsubscribe("s", request=2)) == [
        Send("u", AdminS(remove=(Interest(CHEAP),))),
        Send("v", AdminS(remove=(Interest(CHEAP),))),
        Send("c", Accepted(2)),
    ]
    assert world.tell("c", Unsubscribe("s")) == [], "nobody wants to know"


def test_one_copy_for_a_client_names_all_subscriptions_that_want_it() -> None:
    world = World()
    world.tell("c", Subscribe("s", CHEAP, afresh=7))
    world.tell("c", Subscribe("t", ACME, afresh=8))
    world.tell("d", Subscribe("s", DEAR, afresh=7))
    event = quote(5, stream=("x", "nyse"), seq=1)
    assert world.sent("u", Forward((event,)), "c") == [Notify((Delivery(event, ((7, 1), (8, 1))),))]
    later = quote(50, "r", stream=("x", "nyse"), seq=2)
    assert world.sent("u", Forward((later,)), "c") == [Notify((Delivery(later, ((8, 2),)),))]


def test_a_publication_gets_its_stream_is_stored_and_forwarded_where_it_is_wanted() -> None:
    world = World()
    world.tell("u", AdminS(add=(Interest(CHEAP),)))
    (append,) = world.tell("p", Publish((quote(5),), request=1))
    assert isinstance(append, Append)
    (event,) = append.events
    assert (event.stream, event.seq, append.client) == (("b", "nyse"), 1, "p")
    again = Append("p", (), request=2, repeats=True)
    assert world.tell("p", Publish((quote(5),), request=2)) == [again], "it is answered when the first is stored"
    assert world.tell("b", Appended(append)) == [Send("u", Forward((event,))), Send("p", Stored(1)), Wake(1.0)]
    assert world.tell("b", Appended(again)) == [Send("p", Stored(2))]
    assert world.tell("p", Publish((quote(5),))) == [], "nobody wants to know"


def test_a_broker_that_begins_anew_goes_on_where_it_was() -> None:
    world = World()
    (append,) = world.tell("p", Publish((quote(5, "1"), quote(6, "2"))))
    assert isinstance(append, Append)
    again = World(stored=[append])
    (more,) = again.tell("p", Publish((quote(7, "3"),)))
    assert isinstance(more, Append) and more.events[0].seq == 3
    assert again.publish("p", quote(5, "1")) == [], "it is known"


def test_another_event_of_a_known_source_and_id_is_refused() -> None:
    world = World()
    (append, again) = [world.tell("p", Publish((event,), request=1))[0] for event in (quote(5), quote(5))]
    assert isinstance(append, Append) and again == Append("p", (), 1, repeats=True), "it is the same, and known"
    another = Append("p", (), 2, (Refusal("q", intake.ANOTHER, "nyse"),))
    assert world.tell("p", Publish((quote(6),), request=2)) == [another]
    assert World(stored=[append]).tell("p", Publish((quote(6),), request=2)) == [another], "and in its next life"
    elsewhere = quote(6).replace(source="other")
    assert world.tell("p", Publish((elsewhere,), request=3))[0].refused == ()  # type: ignore[union-attr]


def test_what_waits_for_the_same_event_is_refused_with_it() -> None:
    broker = BrokerCore("b", Router(make_strategy("covering")))
    appends = [broker.handle(Publish((quote(5),), request=request), "c", 0.0)[0] for request in (1, 2)]
    answers = [broker.handle(NotAppended(append, "full"), "b", 0.0) for append in appends if isinstance(append, Append)]
    assert answers == [
        [Send("c", Stored(1, (Refusal("q", "full", "nyse"),)))],
        [Send("c", Refused(2, "full", unknown=True))],
    ]


def test_a_batch_is_one_message_and_the_urgent_come_first() -> None:
    world = World()
    world.tell("u", AdminS(add=(Interest(ACME),)))
    world.tell("v", AdminS(add=(Interest(CHEAP),)))
    events = (quote(5, "1"), quote(50, "2", priority=9), quote(6, "3"))
    sends = {e.to: e.message for e in world.publish("p", *events) if isinstance(e, Send)}
    to_u, to_v = sends["u"], sends["v"]
    assert isinstance(to_u, Forward) and isinstance(to_v, Forward)
    assert [event.id for event in to_v.events] == ["1", "3"]
    assert sorted(event.id for event in to_u.events) == ["1", "2", "3"]


def test_no_effect_comes_before_its_cause_however_urgent_it_is() -> None:
    world = World()
    world.tell("c", Subscribe("s", ACME))
    cause = quote(5, "cause", stream=("x", "nyse"), seq=1)
    effect = quote(6, "effect", priority=9, causes=[("nyse", "cause")], stream=("x", "nyse"), seq=2)
    (notify,) = world.sent("u", Forward((cause, effect)), "c")
    assert isinstance(notify, Notify)
    assert [delivery.event for delivery in notify.deliveries] == [cause, effect]


def test_an_event_goes_not_back_to_whom_it_came_from_and_not_twice() -> None:
    world = World()
    for neighbour in ("u", "v"):
        world.tell(neighbour, AdminS(add=(Interest(ACME),)))
    event = quote(5, stream=("x", "nyse"), seq=7)
    assert world.tell("u", Forward((event,))) == [Send("v", Forward((event,)))]
    assert world.tell("u", Forward((event,))) == []
    late = quote(6, "l", stream=("x", "nyse"), seq=5)
    assert world.tell("u", Forward((late,))) == [Send("v", Forward((late,)))], "it was overtaken, not seen"
    assert world.tell("u", Forward((late,))) == []


def test_a_filter_changes_in_place_and_its_numbers_go_on() -> None:
    world = World()
    world.tell("c", Subscribe("s", CHEAP, afresh=7))
    world.tell("u", Forward((quote(5, stream=("x", "nyse"), seq=1),)))
    assert world.tell("c", Subscribe("s", DEAR, epoch=7, afresh=8))[0] == Send(
        "u", AdminS(add=(Interest(DEAR),), remove=(Interest(CHEAP),))
    )
    event = quote(95, "r", stream=("x", "nyse"), seq=2)
    assert world.sent("u", Forward((event,)), "c") == [Notify((Delivery(event, ((7, 2),)),))]


def test_what_was_missed_can_be_asked_for_as_far_as_it_is_kept() -> None:
    world = World()
    world.tell("c", Subscribe("s", ACME, lease=60, keep=2, afresh=7))
    world.tell("b", Gone("c"))
    events = [quote(n, str(n), stream=("x", "nyse"), seq=n) for n in range(1, 5)]
    assert world.sent("u", Forward(tuple(events)), "c") == [], "nobody is there"
    kept = tuple(Delivery(event, ((7, event.seq or 0),)) for event in events[2:])
    assert world.sent("c", Ask((Position("s", 7, 0),)), "c") == [Answer(((7, 4),), kept)]
    assert world.sent("c", Ask((Position("s", 7, 4),)), "c") == [Answer(((7, 4),))]
    assert world.sent("c", Ask((Position("t", 7, 0),)), "c") == [Unknown(Position("t", 7, 0))]
    assert world.sent("c", Ask((Position("s", 8, 0),)), "c") == [Unknown(Position("s", 8, 0))]
    world.tell("c", Subscribe("s", ACME, lease=60, keep=1, epoch=7, afresh=8))
    assert world.sent("c", Ask((Position("s", 7, 0),)), "c") == [Answer(((7, 4),), kept[1:])], "fewer are kept"


def test_what_several_subscriptions_missed_is_one_copy_each_in_order() -> None:
    world = World()
    world.tell("c", Subscribe("cheap", CHEAP, keep=9, afresh=7))
    world.tell("c", Subscribe("acme", ACME, keep=9, afresh=8))
    one, two = (quote(price, str(price), stream=("x", "nyse"), seq=price) for price in (5, 50))
    world.tell("u", Forward((one, two)))
    asked = Ask((Position("acme", 8, 0), Position("cheap", 7, 0), Position("gone", 9, 0)))
    unknown, answer = world.sent("c", asked, "c")
    assert unknown == Unknown(Position("gone", 9, 0))
    assert answer == Answer(((8, 2), (7, 1)), (Delivery(one, ((8, 1), (7, 1))), Delivery(two, ((8, 2),))))


def test_what_has_expired_is_not_handed_out_any_more() -> None:
    world = World()
    world.tell("c", Subscribe("s", ACME, keep=9, afresh=7))
    short = quote(1, "1", stream=("x", "nyse"), seq=1, expires=1_000_000)
    long = quote(2, "2", stream=("x", "nyse"), seq=2)
    world.tell("u", Forward((short, long)))
    assert world.sent("c", Ask((Position("s", 7, 0),)), "c") == [
        Answer(((7, 2),), (Delivery(short, ((7, 1),)), Delivery(long, ((7, 2),))))
    ]
    world.now = 2.0
    assert world.sent("c", Ask((Position("s", 7, 0),)), "c") == [Answer(((7, 2),), (Delivery(long, ((7, 2),)),))]


def test_a_numbering_that_the_client_does_not_know_is_given_up() -> None:
    world = World()
    world.tell("c", Subscribe("s", ACME, lease=60, keep=9, afresh=7))
    world.tell("u", Forward((quote(1, "1", stream=("x", "nyse"), seq=1),)))
    renewed = world.sent("c", Subscribe("s", ACME, lease=60, epoch=7, afresh=8, request=1), "c")
    assert renewed == [Accepted(1, 60, 7, 1, HERE)]
    unknown = world.sent("c", Subscribe("s", ACME, lease=60, epoch=20, afresh=21, request=2), "c")
    gap = Notify((Delivery(None, ((21, 1),), gap=FORGOTTEN),))
    assert unknown == [gap, Accepted(2, 60, 21, last=1, seen=HERE)], "and it is told that some may be missing"
    event = quote(2, "2", stream=("x", "nyse"), seq=2)
    assert world.sent("u", Forward((event,)), "c") == [Notify((Delivery(event, ((21, 2),)),))]


@pytest.mark.parametrize("replay", [None, Replay(all=True)], ids=["missed", "replayed"])
def test_what_was_recalled_for_an_earlier_numbering_is_not_all_for_a_later_one(replay: Replay | None) -> None:
    world = World(neighbours=("u",))
    world.tell("u", Reach((("u", 100),)))
    numbers: list[int] = []
    for afresh, wanted, after in ((7, CHEAP, 50), (21, ACME, 60)):
        seen = () if replay else (("u", after),)
        message = Subscribe("s", wanted, lease=60, keep=9, afresh=afresh, seen=seen, replay=replay)
        sent = world.sent("c", message, "u")
        numbers += [one.body.number for one in sent if isinstance(one, Addressed) and isinstance(one.body, Recall)]
        if replay:
            own = Recalled(numbers[-1] - 1, (), 0, 0)
            world.tell("b", Past(Read("b", Recall(own.number, (wanted,), replay)), own))
    early, late = (Taken(at, 0, quote(at, str(at), stream=("u", "nyse"), seq=at)) for at in (70, 80))
    assert world.sent("u", Addressed("b", "u", Recalled(numbers[0], (early,), 100, 100)), "c") == []
    told = world.sent("u", Addressed("b", "u", Recalled(numbers[1], (late,), 100, 100)), "c")
    found = [delivery.event for message in told if isinstance(message, Notify) for delivery in message.deliveries]
    assert found == [late.event]


def test_without_a_lease_subscriptions_end_with_the_connection() -> None:
    world = World()
    world.tell("c", Subscribe("s", CHEAP))
    world.tell("c", Subscribe("t", DEAR, lease=60))
    assert world.tell("b", Gone("c"))[0] == Send("u", AdminS(remove=(Interest(CHEAP),)))
    assert set(world.broker.clients["c"].subscriptions) == {"t"}


def test_what_is_not_renewed_expires_and_is_withdrawn() -> None:
    world = World(leases=Leases(10), sweep=1)
    assert world.tell("b", Tick())[-1] == Wake(1.0)
    world.tell("c", Subscribe("s", CHEAP, lease=10))
    world.tell("u", AdminS(add=(Interest(DEAR, lease=10),)))
    world.now = 9.0
    world.tell("c", Subscribe("s", CHEAP, lease=10))
    world.now = 11.0
    assert world.tell("b", Tick())[-2:] == [Send("v", AdminS(remove=(Interest(DEAR),))), Wake(12.0)]
    world.now = 20.0
    world.tell("b", Gone("c"))
    assert Send("u", AdminS(remove=(Interest(CHEAP),))) in world.tell("b", Tick())
    assert world.broker.clients == {}


def test_a_renewal_goes_on_to_the_neighbours() -> None:
    world = World(leases=Leases(10))
    world.tell("c", Subscribe("s", CHEAP, lease=10))
    world.now = 4.0
    told = AdminS(add=(Interest(CHEAP, lease=10),))
    assert world.tell("c", Subscribe("s", CHEAP, lease=10)) == [Send("u", told), Send("v", told)]


def test_nothing_is_granted_for_longer_than_any_lease() -> None:
    world = World(leases=Leases(10))
    assert world.sent("c", Subscribe("s", CHEAP, request=1), "c") == [Accepted(1, 10, seen=HERE)]
    assert world.sent("c", Advertise("a", CHEAP, 60, request=2), "c") == [Accepted(2, 10)]
    assert world.sent("c", Advertise("b", CHEAP, 5, request=3), "c") == [Accepted(3, 5)]


def test_a_client_that_has_nothing_is_forgotten_when_it_is_gone() -> None:
    world = World()
    world.publish("p", quote(5))
    world.tell("p", Advertise("a", ACME))
    world.tell("p", Subscribe("s", ACME))
    world.tell("b", Gone("p"))
    assert world.broker.clients == {}


def test_what_another_client_wants_for_longer_is_believed_for_longer() -> None:
    world = World(leases=Leases(10))
    world.tell("c", Subscribe("s", CHEAP, lease=10))
    world.now = 6.0
    told = AdminS(add=(Interest(CHEAP, lease=10),))
    assert Send("u", told) in world.tell("d", Subscribe("s", CHEAP, lease=10))


def test_only_so_many_events_wait_for_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "MOST_HELD", 2)
    world = World()
    later = [quote(5, str(number), not_before=5_000_000) for number in range(3)]
    world.publish("p", later[0])
    (append, *_) = world.tell("p", Publish((*later[1:], quote(1, "now")), request=1))
    assert isinstance(append, Append) and [event.id for event in append.events] == ["1", "now"]
    assert append.refused == (Refusal("2", "2 events wait for their time, and no more may", "nyse"),)
    under_way = [world.tell("p", Publish((quote(5, f"under way {n}", not_before=5_000_000),))) for n in range(2)]
    for (one,) in under_way:
        assert isinstance(one, Append)
        world.tell("b", Appended(one))
    (refused,) = world.tell("p", Publish((later[2],), request=2))
    assert isinstance(refused, Append) and refused.events == () and refused.refused, "though more wait than may"


def test_events_wait_until_they_may_and_not_longer_than_they_may() -> None:
    world = World()
    world.tell("c", Subscribe("s", ACME))
    held = quote(5, "held", not_before=2_000_000)
    (append,) = world.tell("p", Publish((held,), request=1))
    assert append == Append("p", (held,), request=1), "it gets its seq when it is let go"
    assert world.tell("b", Appended(append)) == [Wake(2.0), Send("p", Stored(1))]
    stale = quote(5, "stale", expires=1_000_000, stream=("x", "nyse"), seq=1)
    world.now = 2.0
    (append,) = world.tell("b", Tick())
    assert isinstance(append, Append) and [(event.id, event.seq) for event in append.events] == [("held", 1)]
    (notify, _) = world.tell("b", Appended(append))
    assert isinstance(notify, Send) and notify.to == "c"
    assert world.tell("u", Forward((stale,))) == [Note(stale, "u", "expired")]


def test_what_waits_outlives_a_crash() -> None:
    held, soon = quote(5, "held", not_before=9_000_000), quote(5, "soon", not_before=2_000_000)
    world = World()
    world.now = 3.0
    stored = [Append("p", (held, soon)), Append("p", (soon.replace(stream=("b", "nyse"), seq=1),))]
    again = World(stored=stored)
    again.now = 3.0
    assert again.tell("b", Tick()) == [Wake(9.0)]
    again.now = 9.0
    (append,) = again.tell("b", Tick())
    assert isinstance(append, Append) and [(event.id, event.seq) for event in append.events] == [("held", 2)]
    assert again.publish("p", held, soon) == [], "both are known"


def test_publications_outside_of_what_was_advertised_are_refused() -> None:
    world = World(router=AdvertisingRouter)
    outside = "it is outside of what this client advertised"
    refused = (Refusal("q", outside, "nyse"),)
    assert world.publish("p", quote(5)) == [Send("p", Stored(0, refused))], "even if nobody wants to know"
    world.tell("p", Advertise("a", ACME))
    assert isinstance(world.tell("p", Publish((quote(5),)))[0], Append)
    world.tell("p", Unadvertise("a"))
    assert world.tell("p", Publish((quote(6, "r"),), request=1)) == [
        Append("p", (), 1, (Refusal("r", outside, "nyse"),))
    ]
    world.tell("p", Unadvertise("unknown"))


def test_subscriptions_go_only_where_something_is_advertised() -> None:
    world = World(router=AdvertisingRouter)
    assert world.tell("c", Subscribe("s", CHEAP)) == []
    from vestnik.wire.messages import AdminA

    effects = world.tell("u", AdminA(add=(Interest(ACME),)))
    assert effects == [Send("v", AdminA(add=(Interest(ACME),))), Send("u", AdminS(add=(Interest(CHEAP),)))]
    effects = world.tell("u", AdminA(remove=(Interest(ACME),)))
    assert effects == [Send("v", AdminA(remove=(Interest(ACME),))), Send("u", AdminS(remove=(Interest(CHEAP),)))]


def test_a_lost_link_takes_with_it_what_came_over_it() -> None:
    world = World()
    world.tell("u", AdminS(add=(Interest(CHEAP),)))
    assert Send("v", AdminS(remove=(Interest(CHEAP),))) in world.tell("b", LinkDown("u"))
    world.tell("c", Subscribe("s", DEAR))
    assert Send("u", AdminS(add=(Interest(DEAR),))) in world.tell("b", LinkUp("u"))


def test_messages_for_one_broker_go_where_it_is() -> None:
    world = World()
    message = Addressed("far", "near", Forward(()))
    assert world.tell("u", message) == [], "nobody knows of it"
    assert world.tell("v", Reach((("v", 1), ("far", 2)))) == [Send("u", Reach((("b", 0), ("far", 2), ("v", 1))))]
    assert world.tell("u", message) == [Send("v", message)]
    assert world.tell("b", LinkDown("v")) == [Send("u", Reach((("b", 0),)))]
    assert world.tell("u", message) == []


def test_a_link_that_closes_a_cycle_is_parted() -> None:
    for cycle in (("u", "b"), ("u", "far", "v")):
        (part,) = World().tell("u", Reach(tuple((name, 0) for name in cycle)))
        assert isinstance(part, Part) and part.neighbour == "u" and cycle[-1] in part.reason


def test_who_is_linked_to_twice_is_not_believed() -> None:
    world = World()
    world.tell("v", Reach((("v", 0), ("far", 0))))
    twice = world.tell("u", Reach((("u", 0), ("far", 0))))
    assert not [effect for effect in twice if isinstance(effect, Part)]
    assert world.broker.surroundings.way("far") == "v"


@pytest.mark.parametrize("strategy", ["flooding", "simple", "identity", "covering", "merging"])
def test_what_wants_nothing_is_told_to_nobody(strategy: str) -> None:
    world = World(strategy)
    assert world.tell("c", Subscribe("s", Filter.none(), request=1)) == [Send("c", Accepted(1, seen=HERE))]
    assert world.tell("u", AdminS(add=(Interest(Filter.none()),))) == []
    assert world.tell("c", Unsubscribe("s", request=2)) == [Send("c", Accepted(2))]


def test_a_client_that_is_full_is_told_later_how_far_the_numbers_have_come() -> None:
    world = World()
    world.tell("c", Subscribe("s", ACME, keep=9, afresh=7))
    assert world.tell("b", Full("c")) == []
    event = quote(5, stream=("x", "nyse"), seq=1)
    assert world.sent("u", Forward((event,)), "c") == []
    assert world.sent("c", Ask((Position("s", 7, 1),)), "c") == [Answer(((7, 1),))], "answers are sent all the same"
    assert world.tell("b", Drained("c")) == [Send("c", Last(((7, 1),)))]
    assert world.sent("c", Ask((Position("s", 7, 0),)), "c") == [Answer(((7, 1),), (Delivery(event, ((7, 1),)),))]


def test_what_could_not_be_read_is_refused_with_the_reason() -> None:
    world = World()
    assert world.tell("c", Malformed("column 3", request=1)) == [Send("c", Refused(1, "column 3"))]


def test_names_that_cannot_be() -> None:
    world = World()
    assert world.tell("c", Subscribe("", CHEAP, request=1)) == [Send("c", Refused(1, "it has no name"))]
    assert world.tell("c", Advertise("", CHEAP, request=2)) == [Send("c", Refused(2, "it has no name"))]
    reason = "u is the name of a neighbouring broker"
    assert world.tell("u", Subscribe("s", CHEAP)) == [Send("u", Refused(0, reason))]


def test_an_event_that_comes_stamped_may_be_repeated() -> None:
    world = World()
    stamped = quote(1, id="1", stream=("x", "nyse"), seq=7)
    for request in (1, 2):
        (append,) = world.tell("p", Publish((stamped,), request=request))
        assert isinstance(append, Append) and not append.refused and len(append.events) == 2 - request


def test_what_was_refused_is_not_known_by_its_content() -> None:
    acceptance = Acceptance("b")
    refused, taken = quote(1, id="1"), quote(2, id="1")
    acceptance.sifted([refused])
    acceptance.forget(refused)
    assert acceptance.sifted([taken], answered=False) == ([taken], [])
    assert acceptance.sifted([taken]) == ([], [])


def test_a_source_that_was_forgotten_goes_on_above_what_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.broker.sources.STREAMS", 2)
    acceptance = Acceptance("b", 10)

    def seq(source: str) -> int | None:
        return acceptance.stamped(Event("t", {}, source=source)).seq

    assert [seq(source) for source in "aaabcad"] == [10, 11, 12, 10, 13, 13, 14]
    assert len(acceptance._sources) == 2


def test_what_is_remembered_of_a_stream_is_bounded() -> None:
    arrivals = Arrivals()
    for seq in range(1, 100_000, 100):
        assert arrivals.is_new(quote(1, stream=("x", "nyse"), seq=seq))
        assert not arrivals.is_new(quote(1, stream=("x", "nyse"), seq=seq))
    assert arrivals.is_new(quote(1, stream=("x", "nyse"), seq=99_900))
    assert not arrivals.is_new(quote(1, stream=("x", "nyse"), seq=99_900))
    assert not arrivals.is_new(quote(1, stream=("x", "nyse"), seq=50_000)), "too late to tell"
    assert arrivals.of("x")["x", "nyse"][1].bit_length() <= WINDOW


def test_what_was_put_last_is_remembered_and_not_much_more() -> None:
    recent: Recent[int, str] = Recent(10)
    for key in range(95):
        recent.put(key, str(key))
        recent.put(0, "again")
    assert [recent.get(key) for key in range(86, 95)] == [str(key) for key in range(86, 95)]
    assert recent.get(0) == "again" and recent.get(50) is None and len(recent) <= 20


def test_what_covers_others_is_believed_as_long_as_they_last() -> None:
    world = World(leases=Leases(10), sweep=1)
    wide, narrow = Filter.parse("price < 50"), Filter.parse("price < 20")
    world.tell("c", Subscribe("wide", wide, lease=10))
    world.tell("d", Subscribe("narrow", narrow, lease=10))
    world.now = 8.0
    told = AdminS(add=(Interest(wide, lease=10),))
    assert Send("u", told) in world.tell("d", Subscribe("narrow", narrow, lease=10))
    world.now = 11.0
    assert Send("u", AdminS(add=(Interest(narrow, lease=7.0),), remove=(Interest(wide),))) in world.tell("b", Tick())


def test_events_that_are_addressed_are_routed() -> None:
    world = World()
    world.tell("c", Subscribe("s", ACME))
    event = quote(5, stream=("x", "nyse"), seq=1)
    assert [e.to for e in world.tell("u", Addressed("b", "far", Forward((event,)))) if isinstance(e, Send)] == ["c"]


def test_garbage_in_the_table_hurts_nobody() -> None:
    world = World(leases=Leases(10), sweep=1)
    world.broker.router.subscribe(Source("ghost", "s"), ACME, 5.0)
    assert world.sent("u", Forward((quote(5),)), "ghost") == []
    world.now = 6.0
    world.tell("b", Tick())
    assert len(world.broker.router.subscriptions) == 0
