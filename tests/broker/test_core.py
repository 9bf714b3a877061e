"""One broker, message by message."""

from __future__ import annotations

import pytest
from msgspec import Raw

from broker.worlds import ACME, CHEAP, DEAR, OWN, World, asked, ids, quote, sent_to
from vestnik import Event, Filter
from vestnik.broker import intake
from vestnik.broker.acceptance import Acceptance
from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.effects import (
    Append,
    Appended,
    Drained,
    Full,
    Gone,
    LinkDown,
    LinkUp,
    NotAppended,
    Note,
    Part,
    Send,
    Tick,
    Wake,
)
from vestnik.broker.stored import StoredEvent
from vestnik.broker.subscriptions import FORGOTTEN
from vestnik.model.streams import Recent
from vestnik.routing.propagation import Leases, Source
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.wire.messages import (
    Accepted,
    Addressed,
    AdminA,
    AdminS,
    Advertise,
    Answer,
    Ask,
    Delivery,
    Gap,
    Inquiry,
    Interest,
    Malformed,
    Notify,
    Position,
    Publish,
    Refusal,
    Refused,
    Stored,
    Subscribe,
    Took,
    Unadvertise,
    Unknown,
    Unsubscribe,
)
from vestnik.wire.origins import Origin, OriginGone, OriginHere, Routed
from vestnik.wire.packing import pack, unpack
from vestnik.wire.replays import Replay

HERE = (("b/1", 1),)
"""The cursors of a client where nothing was published."""
MADE = -250_000
"""When a subscription was made at time 0, by the clock of a broker that may be ahead."""
X = Origin("x", 1)


def test_a_subscription_is_told_to_neighbours_and_accepted() -> None:
    world = World()
    effects = world.tell("c", Subscribe("s", CHEAP, afresh=7, request=1))
    told = AdminS(add=(Interest(CHEAP),))
    accepted = Accepted(1, epoch=7, seen=HERE, made=MADE)
    assert effects == [Send("u", told), Send("v", told), Send("c", accepted)]
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
    effects = world.publish("p", quote(5))
    (notify,) = sent_to(effects, "c")
    assert notify == Notify((Delivery((quote(5).stamped("b", 1),), ((7, 1), (8, 1))),), (("b", 1),))
    (notify,) = sent_to(world.publish("p", quote(50, "r")), "c")
    assert notify == Notify((Delivery((quote(50, "r").stamped("b", 2),), ((8, 2),)),), (("b", 1),))


def test_a_publication_gets_its_offset_is_stored_and_routed_where_it_is_wanted() -> None:
    world = World()
    world.tell("u", AdminS(add=(Interest(CHEAP),)))
    (append,) = world.tell("p", Publish((quote(5),), request=1))
    assert isinstance(append, Append)
    (event,) = append.events
    assert (event.stream, event.seq, append.client, append.first) == (("b", "nyse"), 1, "p", 1)
    assert append.packed == (pack(event),)
    (again,) = world.tell("p", Publish((quote(5),), request=2))
    assert isinstance(again, Append) and again.repeats, "it is answered when the first is stored"
    assert world.tell("b", Appended(append)) == [Send("u", Routed(OWN, (event,))), Send("p", Stored(1)), Wake(1.0)]
    assert world.tell("b", Appended(again)) == [Send("p", Stored(2))]
    assert world.tell("p", Publish((quote(5),))) == [], "nobody wants to know"


def stored_of(append: Append) -> list[StoredEvent]:
    """Return the events that the next life of a broker reads."""
    return [StoredEvent.read(append.client, packed) for packed in append.packed]


def test_a_broker_that_starts_again_goes_on_after_its_log() -> None:
    world = World()
    (append,) = world.tell("p", Publish((quote(5, "1"), quote(6, "2"))))
    assert isinstance(append, Append)
    again = World(stored=stored_of(append), log=OwnLog(next=3))
    (more,) = again.tell("p", Publish((quote(7, "3"),)))
    assert isinstance(more, Append) and more.events[0].seq == 3
    assert again.publish("p", quote(5, "1")) == [], "it is known"


def test_another_event_of_a_known_source_and_id_is_refused() -> None:
    world = World()
    (append, again) = [world.tell("p", Publish((event,), request=1))[0] for event in (quote(5), quote(5))]
    assert isinstance(append, Append) and isinstance(again, Append)
    assert not again.events and again.repeats and not again.refused, "it is the same, and known"
    refused = (Refusal("q", intake.ANOTHER, "nyse"),)
    for one in (world, World(stored=stored_of(append))):
        (another,) = one.tell("p", Publish((quote(6),), request=2))
        assert isinstance(another, Append) and not another.events and another.refused == refused
    elsewhere = quote(6).replace(source="other")
    (fresh,) = world.tell("p", Publish((elsewhere,), request=3))
    assert isinstance(fresh, Append) and not fresh.refused and len(fresh.events) == 1


def test_what_waits_for_the_same_event_is_refused_with_it() -> None:
    broker = BrokerCore("b", Router(make_strategy("covering")))
    appends = [broker.handle(Publish((quote(5),), request=request), "c", 0.0)[0] for request in (1, 2)]
    answers = [broker.handle(NotAppended(append, "full"), "b", 0.0) for append in appends if isinstance(append, Append)]
    assert answers == [
        [Send("c", Stored(1, (Refusal("q", "full", "nyse"),)))],
        [Send("c", Refused(2, "full", unknown=True))],
    ]


def test_a_batch_is_one_message_in_the_order_of_the_log() -> None:
    """However urgent an event is: priorities order the queue of a client."""
    world = World()
    world.tell("u", AdminS(add=(Interest(ACME),)))
    world.tell("v", AdminS(add=(Interest(CHEAP),)))
    events = (quote(5, "1"), quote(50, "2", priority=9), quote(6, "3"))
    sends = {e.to: e.message for e in world.publish("p", *events) if isinstance(e, Send)}
    to_u, to_v = sends["u"], sends["v"]
    assert isinstance(to_u, Routed) and isinstance(to_v, Routed)
    assert [event.id for event in to_v.events] == ["1", "3"]
    assert [event.id for event in to_u.events] == ["1", "2", "3"]


def test_no_effect_comes_before_its_cause_however_urgent_it_is() -> None:
    world = World()
    far = world.meet()
    world.tell("c", Subscribe("s", ACME))
    effect = quote(6, "effect", priority=9, causes=[("nyse", "cause")])
    assert ids(far.publish(quote(5, "cause"), effect)) == ["cause", "effect"]


def test_live_events_count_only_if_they_come_by_the_way_of_their_log() -> None:
    world = World()
    far = world.meet(via="u")
    for neighbour in ("u", "v"):
        world.tell(neighbour, AdminS(add=(Interest(ACME),)))
    world.tell("c", Subscribe("s", ACME))
    (event,) = far.accept(quote(5))
    assert world.tell("v", Routed(X, (event,))) == [], "v is not the way to x"
    effects = world.tell("u", Routed(X, (event,)))
    assert Send("v", Routed(X, (event,))) in effects and not sent_to(effects, "u") and ids(effects) == ["q"]
    assert ids(world.tell("u", Routed(X, (event,)))) == [], "its client has it"


def test_a_filter_changes_in_place_and_its_numbers_go_on() -> None:
    world = World()
    far = world.meet()
    world.tell("c", Subscribe("s", CHEAP, afresh=7))
    far.publish(quote(5))
    assert world.tell("c", Subscribe("s", DEAR, epoch=7, afresh=8))[0] == Send(
        "u", AdminS(add=(Interest(DEAR),), remove=(Interest(CHEAP),))
    )
    (notify,) = sent_to(far.publish(quote(95, "r")), "c")
    assert notify == Notify((Delivery((quote(95, "r").stamped("x", 2),), ((7, 2),)),), (("x", 1),))


def test_what_is_in_flight_can_be_asked_for_and_the_rest_comes_when_it_is_taken() -> None:
    world = World()
    far = world.meet()
    world.tell("c", Subscribe("s", ACME, lease=60, window=2, afresh=7))
    events = [quote(n, str(n)) for n in range(1, 5)]
    assert ids(far.publish(*events)) == ["1", "2"]
    sent = tuple(Delivery((event.stamped("x", seq),), ((7, seq),)) for seq, event in enumerate(events[:2], 1))
    logs = (("x", 1),)
    assert world.sent("c", Ask((Position("s", 7, 0),)), "c") == [Answer(((7, 2),), sent, logs)]
    assert world.sent("c", Ask((Position("s", 7, 1),)), "c") == [Answer(((7, 2),), sent[1:], logs, 1)]
    assert world.sent("c", Ask((Position("s", 7, 2),)), "c") == [Answer(((7, 2),), after=2)]
    assert world.sent("c", Ask((Position("t", 7, 0),)), "c") == [Unknown(Position("t", 7, 0))]
    assert world.sent("c", Ask((Position("s", 8, 0),)), "c") == [Unknown(Position("s", 8, 0))]
    assert ids(world.tell("c", Took((Position("s", 7, 2),)))) == ["3", "4"]
    assert world.sent("c", Ask((Position("s", 7, 0),)), "c") == [
        Answer(
            ((7, 4),),
            tuple(Delivery((event.stamped("x", seq),), ((7, seq),)) for seq, event in enumerate(events[2:], 3)),
            logs,
        )
    ], "what was taken is not kept"


def test_who_asks_says_what_was_taken_because_a_took_may_be_lost() -> None:
    world = World()
    far = world.meet()
    world.tell("c", Subscribe("s", ACME, window=2, afresh=7))
    assert ids(far.publish(*[quote(n, str(n)) for n in range(1, 5)])) == ["1", "2"]
    answer, more = world.sent("c", Ask((Position("s", 7, 2, taken=2),)), "c")
    assert answer == Answer(((7, 2),), after=2)
    assert isinstance(more, Notify) and [event.id for one in more.deliveries for event in one.events] == ["3", "4"]
    assert world.sent("c", Ask((Position("s", 7, 4, taken=2),)), "c") == [Answer(((7, 4),), after=4)]


def test_each_page_of_an_answer_says_where_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.wire.pages.PAGE", 2)
    world = World()
    far = world.meet()
    world.tell("c", Subscribe("s", ACME, afresh=7))
    far.publish(*[quote(n, str(n)) for n in range(1, 7)])
    answers = [one for one in world.sent("c", Ask((Position("s", 7, 1),)), "c") if isinstance(one, Answer)]
    assert [(one.after, one.last) for one in answers] == [(1, ((7, 3),)), (3, ((7, 5),)), (5, ((7, 6),))]


def test_nobody_is_sent_anything_who_is_not_there() -> None:
    world = World()
    far = world.meet()
    world.tell("c", Subscribe("s", ACME, lease=60, afresh=7))
    world.tell("b", Gone("c"))
    assert sent_to(far.publish(quote(1, "1"), quote(2, "2")), "c") == []
    back = Subscribe("s", ACME, lease=60, epoch=7, afresh=8)
    assert ids(world.tell("c", back)) == ["1", "2"], "it is read from the log"


def test_each_position_that_is_asked_about_is_answered_by_itself() -> None:
    world = World()
    far = world.meet()
    world.tell("c", Subscribe("cheap", CHEAP, afresh=7))
    world.tell("c", Subscribe("acme", ACME, afresh=8))
    far.publish(quote(5, "1"), quote(50, "2"))
    one, two = quote(5, "1").stamped("x", 1), quote(50, "2").stamped("x", 2)
    asking = Ask((Position("acme", 8, 0), Position("cheap", 7, 0), Position("gone", 9, 0)))
    logs = (("x", 1),)
    assert world.sent("c", asking, "c") == [
        Answer(((8, 2),), (Delivery((one,), ((8, 1),)), Delivery((two,), ((8, 2),))), logs),
        Answer(((7, 1),), (Delivery((one,), ((7, 1),)),), logs),
        Unknown(Position("gone", 9, 0)),
    ]


def test_what_has_expired_is_not_handed_out_any_more() -> None:
    world = World()
    far = world.meet()
    world.tell("c", Subscribe("s", ACME, window=2, afresh=7))
    far.publish(quote(1, "1", expires=1_000_000), quote(2, "2"), quote(3, "3", expires=1_000_000), quote(4, "4"))
    asking = Ask((Position("s", 7, 0),))
    (answer,) = world.sent("c", asking, "c")
    assert isinstance(answer, Answer) and [one.event.id for one in answer.kept if one.event] == ["1", "2"]
    world.now = 2.0
    (answer,) = world.sent("c", asking, "c")
    assert isinstance(answer, Answer) and [one.event.id for one in answer.kept if one.event] == ["2"]
    assert ids(world.tell("c", Took((Position("s", 7, 2),)))) == ["4"], "nor what was not sent yet"


def test_a_numbering_that_the_client_does_not_know_is_given_up() -> None:
    world = World()
    world.tell("c", Subscribe("s", ACME, lease=60, afresh=7))
    world.publish("p", quote(1, "1"))
    seen = (("b/1", 2),)
    renewed = world.sent("c", Subscribe("s", ACME, lease=60, epoch=7, afresh=8, request=1), "c")
    assert renewed == [Accepted(1, 60, 7, 1, seen, made=MADE)]
    unknown = world.sent("c", Subscribe("s", ACME, lease=60, epoch=20, afresh=21, request=2), "c")
    gap = Notify((Delivery((), ((21, 1),), gap=Gap("", 0, 0, FORGOTTEN)),))
    assert unknown == [gap, Accepted(2, 60, 21, 1, seen, made=MADE)], "and it is told that some may be missing"
    (notify,) = sent_to(world.publish("p", quote(2, "2")), "c")
    assert notify == Notify((Delivery((quote(2, "2").stamped("b", 2),), ((21, 2),)),), (("b", 1),))


@pytest.mark.parametrize("replay", [None, Replay(all=True)], ids=["missed", "replayed"])
def test_a_page_that_was_read_for_an_earlier_numbering_is_not_for_a_later_one(replay: Replay | None) -> None:
    world = World(neighbours=("u",))
    far = world.meet()
    far.accept(quote(1, "early"), quote(2, "late"))
    reads = []
    for afresh, wanted, after in ((7, CHEAP, 1), (21, ACME, 2)):
        seen = () if replay else (("x/1", after),)
        message = Subscribe("s", wanted, lease=60, afresh=afresh, seen=seen, replay=replay)
        (read,) = asked(world.handle("c", message))
        reads.append(far.page(read))
    assert ids(world.tell("u", reads[0])) == []
    assert ids(world.tell("u", reads[1])) == (["early", "late"] if replay else ["late"])


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
    effects = world.tell("b", Tick())
    assert Send("v", AdminS(remove=(Interest(DEAR),))) in effects and Wake(12.0) in effects
    (part,) = [effect for effect in effects if isinstance(effect, Part)]
    assert (part.neighbour, part.code) == ("u", "silent"), "what it has not renewed it may not know"
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
    assert world.sent("c", Subscribe("s", CHEAP, request=1), "c") == [Accepted(1, 10, seen=HERE, made=MADE)]
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
    far = world.meet()
    world.tell("c", Subscribe("s", ACME))
    held = quote(5, "held", not_before=2_000_000)
    (append,) = world.tell("p", Publish((held,), request=1))
    assert isinstance(append, Append) and append.events == (held,), "it gets its seq when it is let go"
    effects = world.store(append)
    assert Wake(2.0) in effects and Send("p", Stored(1)) in effects and not ids(effects)
    world.now = 2.0
    (append,) = [effect for effect in world.tell("b", Tick()) if isinstance(effect, Append)]
    assert [(event.id, event.seq) for event in append.events] == [("held", 2)]
    assert ids(world.store(append)) == ["held"]
    (stale,) = far.accept(quote(5, "stale", expires=1_000_000))
    assert world.tell("u", Routed(X, (stale,))) == [Note(stale, "u", "expired")]


def test_what_waits_outlives_a_crash() -> None:
    held, soon = quote(5, "held", not_before=9_000_000), quote(5, "soon", not_before=2_000_000)
    stored = [StoredEvent.of("p", one) for one in (held, soon, soon.stamped("b", 3))]
    again = World(stored=stored, log=OwnLog(next=4))
    again.now = 3.0
    assert again.tell("b", Tick()) == [Wake(9.0)]
    again.now = 9.0
    (append,) = again.tell("b", Tick())
    assert isinstance(append, Append) and [(event.id, event.seq) for event in append.events] == [("held", 4)]
    assert again.publish("p", held, soon) == [], "both are known"


def test_publications_outside_of_what_was_advertised_are_refused() -> None:
    world = World(router=AdvertisingRouter)
    outside = "it is outside of what this client advertised"
    refused = (Refusal("q", outside, "nyse"),)
    assert sent_to(world.publish("p", quote(5)), "p") == [Stored(0, refused)], "even if nobody wants to know"
    world.tell("p", Advertise("a", ACME))
    world.publish("p", quote(5))
    world.tell("p", Unadvertise("a"))
    (append,) = world.tell("p", Publish((quote(6, "r"),), request=1))
    assert isinstance(append, Append) and not append.events
    assert append.refused == (Refusal("r", outside, "nyse"),)
    world.tell("p", Unadvertise("unknown"))


def test_subscriptions_go_only_where_something_is_advertised() -> None:
    world = World(router=AdvertisingRouter)
    assert world.tell("c", Subscribe("s", CHEAP)) == []
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
    message = Addressed("far", "near", Inquiry("c", 1, "status", {}))
    assert world.tell("u", message) == [], "nobody knows of it"
    far = Origin("far", 1)
    assert world.sent("v", OriginHere(far), "u") == [OriginHere(far)]
    assert world.tell("u", message) == [Send("v", message)]
    assert world.sent("b", LinkDown("v"), "u") == [OriginGone(far)]
    assert world.tell("u", message) == []


@pytest.mark.parametrize("broker", ["b", "v"])
def test_a_link_that_closes_a_cycle_is_parted(broker: str) -> None:
    (part,) = World().tell("u", OriginHere(Origin(broker, 1)))
    assert isinstance(part, Part) and part.neighbour == "u" and broker in part.reason and part.code == "cycle"


def test_a_log_that_is_reached_already_keeps_its_way() -> None:
    world = World()
    far = Origin("far", 1)
    world.tell("v", OriginHere(far))
    assert world.tell("u", OriginHere(far)) == [], "others do not hear of it either"
    assert world.broker.topology.next_hop(far) == "v"
    effects = world.handle("b", LinkDown("v"))
    assert world.broker.topology.next_hop(far) == "u", "it is remembered for when it is needed"
    assert [read.origin for read in asked(effects)] == [far]


@pytest.mark.parametrize("strategy", ["flooding", "simple", "identity", "covering", "merging"])
def test_what_wants_nothing_is_told_to_nobody(strategy: str) -> None:
    world = World(strategy)
    accepted = Accepted(1, seen=HERE, made=MADE)
    assert world.tell("c", Subscribe("s", Filter.none(), request=1)) == [Send("c", accepted)]
    assert world.tell("u", AdminS(add=(Interest(Filter.none()),))) == []
    assert world.tell("c", Unsubscribe("s", request=2)) == [Send("c", Accepted(2))]


def test_a_client_that_is_full_gets_what_it_missed_when_it_has_drained() -> None:
    world = World()
    far = world.meet()
    world.tell("c", Subscribe("s", ACME, afresh=7))
    assert world.tell("b", Full("c")) == []
    assert sent_to(far.publish(quote(5)), "c") == []
    assert world.sent("c", Ask((Position("s", 7, 0),)), "c") == [Answer(((7, 0),))], "answers are sent all the same"
    assert ids(world.tell("b", Drained("c"))) == ["q"]


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
    acceptance = Acceptance()
    refused, taken = quote(1, id="1"), quote(2, id="1")
    acceptance.sifted([refused])
    acceptance.forget(refused)
    assert acceptance.sifted([taken], answered=False) == ([taken], [])
    assert acceptance.sifted([taken]) == ([], [])


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


def test_garbage_in_the_table_hurts_nobody() -> None:
    world = World(leases=Leases(10), sweep=1)
    far = world.meet()
    world.broker.router.subscribe(Source("ghost", "s"), ACME, 5.0)
    assert sent_to(far.publish(quote(5)), "ghost") == []
    world.now = 6.0
    world.tell("b", Tick())
    assert len(world.broker.router.subscriptions) == 0


def test_a_start_unpacks_only_the_latest_of_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "CONTENTS", 2)
    stored = [StoredEvent.of("p", quote(price, str(price)).stamped("b", price)) for price in range(1, 6)]
    unpacked: list[bytes | Raw] = []

    def unpack_and_note(packed: bytes | Raw) -> Event:
        unpacked.append(packed)
        return unpack(packed)

    monkeypatch.setattr("vestnik.broker.stored.unpack", unpack_and_note)
    again = World(stored=stored, log=OwnLog(next=6))
    assert unpacked == [one.packed for one in stored[-2:]]
    assert again.publish("p", *[quote(price, str(price)) for price in range(1, 6)]) == [], "all are known"


def test_what_was_stored_and_is_no_event_is_known_by_its_name() -> None:
    stored = [StoredEvent.read("p", b"\x95\x01\xa1s\xa1i\x05\x06"), StoredEvent.of("p", quote(5))]
    assert stored[0].pair == ("s", "i") and stored[0].event is None
    again = World(stored=stored, log=OwnLog(next=3))
    assert again.publish("p", quote(5)) == []
