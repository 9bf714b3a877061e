"""Where events leave a broker: one message for each receiver, and what is said with it."""

from __future__ import annotations

from broker.worlds import ACME, CHEAP, DEAR, OWN, World, accepted, ids, quote, sent_to
from vestnik import Filter
from vestnik.broker.core import OwnLog
from vestnik.broker.effects import (
    Append,
    Appended,
    Effect,
    GapTold,
    Gone,
    LinkDown,
    LinkUp,
    NotAppended,
    Note,
    Send,
    Tick,
)
from vestnik.wire.messages import (
    AdminS,
    Interest,
    Notify,
    Position,
    Publish,
    Stored,
    Subscribe,
    Took,
    Unsubscribe,
)
from vestnik.wire.origins import Origin, Routed

X = Origin("x", 1)


def routed(effects: list[Effect], to: str) -> list[Routed]:
    return [message for message in sent_to(effects, to) if isinstance(message, Routed)]


def test_a_batch_is_one_message_for_each_receiver_with_what_it_wants() -> None:
    world = World()
    far = world.meet(via="u")
    world.tell("v", AdminS(add=(Interest(DEAR),)))
    world.tell("c", Subscribe("s", CHEAP, afresh=7))
    world.tell("d", Subscribe("s", ACME, afresh=7))
    effects = far.publish(quote(1, "1"), quote(95, "2"), quote(2, "3"))
    assert [[event.id for event in one.events] for one in routed(effects, "v")] == [["2"]]
    assert routed(effects, "u") == []
    assert ids(effects, "c") == ["1", "3"] and ids(effects, "d") == ["1", "2", "3"]
    assert len(sent_to(effects, "c")) == len(sent_to(effects, "d")) == 1


def test_who_is_the_only_one_to_want_events_is_given_them_as_one_run_however_they_alternate() -> None:
    world = World(neighbours=())
    world.tell("c", Subscribe("s", CHEAP, afresh=7))
    world.tell("d", Subscribe("s", DEAR, afresh=7))
    effects = world.publish("p", quote(1, "1"), quote(95, "2"), quote(2, "3"), quote(96, "4"))
    for client, expected in ("c", ["1", "3"]), ("d", ["2", "4"]):
        (notify,) = sent_to(effects, client)
        assert isinstance(notify, Notify) and len(notify.deliveries) == 1
        assert ids(effects, client) == expected


def test_events_that_are_wanted_by_one_and_by_several_come_in_their_order() -> None:
    world = World(neighbours=())
    world.tell("c", Subscribe("s", CHEAP, afresh=7))
    world.tell("d", Subscribe("s", Filter.parse("price > 1"), afresh=7))
    prices = (1, 95, 2, 96, 1, 3, 50, 1)
    effects = world.publish("p", *[quote(price, str(at)) for at, price in enumerate(prices)])
    assert ids(effects, "c") == [str(at) for at, price in enumerate(prices) if price < 10]
    assert ids(effects, "d") == [str(at) for at, price in enumerate(prices) if price > 1]


def test_what_several_subscriptions_of_a_client_want_comes_in_the_order_of_the_log() -> None:
    world = World(neighbours=())
    world.tell("c", Subscribe("cheap", CHEAP, afresh=7))
    world.tell("c", Subscribe("dear", DEAR, afresh=8))
    assert ids(world.publish("p", quote(1, "1"), quote(95, "2"), quote(2, "3"))) == ["1", "2", "3"]


def test_events_are_routed_and_delivered_with_their_log() -> None:
    world = World()
    world.meet(log=5)
    world.tell("v", AdminS(add=(Interest(ACME),)))
    world.tell("c", Subscribe("s", ACME, afresh=7))
    effects = world.logs[Origin("x", 5)].publish(quote(1, "1"))
    assert [one.origin for one in routed(effects, "v")] == [Origin("x", 5)]
    (notify,) = sent_to(effects, "c")
    assert isinstance(notify, Notify) and notify.logs == (("x", 5),)


def test_what_is_stored_is_routed_before_its_publisher_is_answered() -> None:
    world = World()
    world.tell("u", AdminS(add=(Interest(ACME),)))
    world.tell("c", Subscribe("s", ACME, afresh=7))
    (append,) = world.tell("p", Publish((quote(1, "1"),), request=1))
    assert isinstance(append, Append)
    kinds = [type(e.message).__name__ for e in world.tell("b", Appended(append)) if isinstance(e, Send)]
    assert kinds == ["Routed", "Notify", "Stored"]


def test_what_could_not_be_stored_goes_nowhere_and_does_not_stop_what_follows() -> None:
    world = World()
    world.tell("u", AdminS(add=(Interest(ACME),)))
    world.tell("c", Subscribe("s", ACME, afresh=7))
    (first,) = world.tell("p", Publish((quote(1, "1"),), request=1))
    (second,) = world.tell("p", Publish((quote(1, "2"),), request=2))
    assert isinstance(first, Append) and isinstance(second, Append)
    failed = world.tell("b", NotAppended(first, "full"))
    assert not ids(failed) and not routed(failed, "u")
    (stored,) = [one for one in sent_to(failed, "p") if isinstance(one, Stored)]
    assert [refusal.id for refusal in stored.refused] == ["1"]
    effects = world.tell("b", Appended(second))
    assert ids(effects) == ["2"] and routed(effects, "u")[0].events[0].seq == 2


def test_what_has_expired_is_noted_and_goes_no_further() -> None:
    world = World()
    far = world.meet()
    world.tell("v", AdminS(add=(Interest(ACME),)))
    world.tell("c", Subscribe("s", ACME, afresh=7))
    world.now = 5.0
    effects = far.publish(quote(1, "old", expires=1_000_000), quote(2, "new"))
    assert [effect.event.id for effect in effects if isinstance(effect, Note)] == ["old"]
    assert ids(effects) == ["new"] and [one.id for one in routed(effects, "v")[0].events] == ["new"]


def test_observers_are_told_of_each_gap() -> None:
    world = World(neighbours=(), log=OwnLog(room=1))
    world.tell("c", Subscribe("s", ACME, window=1, afresh=7))
    world.publish("p", *[quote(1, str(number)) for number in range(5)])
    (told,) = [e for e in world.tell("c", Took((Position("s", 7, 1),))) if isinstance(e, GapTold)]
    assert (told.client, told.name, told.gap.log, told.gap.first, told.gap.end) == ("c", "s", "b/1", 2, 5)


def test_a_client_is_told_how_far_it_has_come_when_that_is_known() -> None:
    world = World()
    far = world.meet()
    far.accept(quote(1, "1"))
    world.silent = {X}
    world.now = 10.0
    effects = world.handle("c", Subscribe("s", ACME, afresh=7, request=1))
    (first,) = accepted(effects)
    assert dict(first.seen) == {"b/1": 1}, "x has not said yet where it starts"
    world.silent = set()
    (later,) = [one for one in accepted(world.answer(effects)) if not one.request]
    assert dict(later.seen) == {"b/1": 1, "x/1": 2}


def test_nothing_is_sent_for_a_subscription_that_has_ended() -> None:
    world = World(neighbours=())
    world.tell("c", Subscribe("s", ACME, window=1, afresh=7))
    world.publish("p", quote(1, "1"), quote(1, "2"))
    world.tell("c", Unsubscribe("s"))
    assert world.tell("c", Took((Position("s", 7, 1),))) == []
    assert ids(world.publish("p", quote(1, "3"))) == []
    world.tell("d", Subscribe("s", ACME, afresh=7))
    world.tell("b", Gone("d"))
    assert ids(world.publish("p", quote(1, "4")), "d") == []


def test_an_event_that_waits_for_its_time_gets_its_place_in_the_log_then() -> None:
    world = World(neighbours=("u",))
    world.tell("u", AdminS(add=(Interest(ACME),)))
    assert not routed(world.publish("p", quote(1, "held", not_before=2_000_000)), "u")
    (one,) = routed(world.publish("p", quote(1, "now")), "u")
    world.now = 2.0
    (append,) = [effect for effect in world.tell("b", Tick()) if isinstance(effect, Append)]
    (other,) = routed(world.store(append), "u")
    assert [(event.id, event.seq) for event in (*one.events, *other.events)] == [("now", 2), ("held", 3)]
    assert world.broker.origin == OWN


def test_who_comes_or_goes_between_two_events_is_heeded() -> None:
    """A broker remembers where events go. Each step here changes that."""
    world = World(neighbours=())
    world.tell("c", Subscribe("s", ACME, afresh=7))

    def receivers(number: int) -> set[str]:
        effects = world.publish("p", quote(1, f"{number}"))
        sent = [one for one in effects if isinstance(one, Send) and isinstance(one.message, Notify | Routed)]
        return {one.to for one in sent}

    assert receivers(1) == receivers(2) == {"c"}
    world.tell("d", Subscribe("s", ACME, afresh=7))
    assert receivers(3) == {"c", "d"}, "another subscription with the same filter"
    world.tell("c", Unsubscribe("s"))
    assert receivers(4) == {"d"}
    world.tell("d", Unsubscribe("s"))
    world.tell("d", Subscribe("s", ACME, afresh=8))
    assert receivers(5) == {"d"}, "another reader, of a subscription with the same name"
    world.tell("b", LinkUp("u"))
    world.tell("u", AdminS(add=(Interest(ACME),)))
    assert receivers(6) == {"d", "u"}
    world.tell("u", AdminS(remove=(Interest(ACME),)))
    assert receivers(7) == {"d"}
    world.tell("u", AdminS(add=(Interest(ACME),)))
    assert receivers(8) == {"d", "u"}
    world.tell("b", LinkDown("u"))
    assert receivers(9) == {"d"}


def test_an_event_does_not_go_back_where_the_last_one_like_it_went() -> None:
    world = World()
    for neighbour in ("u", "v"):
        world.tell(neighbour, AdminS(add=(Interest(ACME),)))
    published = world.publish("p", quote(1, "1"))
    assert routed(published, "u") != [] and routed(published, "v") != []
    far = world.meet(via="u")
    effects = far.publish(quote(1, "2"))
    assert routed(effects, "u") == [] and routed(effects, "v") != []


def test_a_reader_that_has_ended_is_given_nothing_more() -> None:
    """A broker remembers where the last event went, with the readers."""
    world = World(neighbours=())
    world.tell("c", Subscribe("s", ACME, afresh=7))
    assert ids(world.publish("p", quote(1, "1")), "c") == ["1"]
    world.broker.recovery.readers.end(("c", "s"))
    assert ids(world.publish("p", quote(1, "2")), "c") == []
