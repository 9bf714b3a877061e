"""The cursors of a subscription are exact: a broker that starts at them misses and repeats nothing."""

from __future__ import annotations

from typing import Any

import pytest

from session.test_session import EPOCH, WANTED, event, results, said, session, silent
from vestnik.model.events import Event
from vestnik.session.acts import Hand, Missing, Passed
from vestnik.session.agenda import PATIENCE
from vestnik.session.session import Session
from vestnik.wire.messages import Accepted, Answer, Delivery, Gap, Message, Notify, Position, Subscribe, Took, Unknown
from vestnik.wire.origins import ENDLESS
from vestnik.wire.replays import Replay

LOGS = ("b1", 1), ("b2", 4)


def stored(offset: int, broker: str = "b1") -> Event:
    return event(offset).stamped(broker, offset)


def given(number: int, offset: int, broker: str = "b1", epoch: int = EPOCH, *, replayed: bool = False) -> Delivery:
    return Delivery((stored(offset, broker),), ((epoch, number),), replayed)


def gap(number: int, log: str, first: int, end: int, epoch: int = EPOCH) -> Delivery:
    return Delivery((), ((epoch, number),), gap=Gap(log, first, end, "it was dropped"))


def notify(*deliveries: Delivery) -> Notify:
    return Notify(deliveries, LOGS)


def subscribed(acts: Any) -> Subscribe:
    (found,) = [message for message in said(acts) if isinstance(message, Subscribe)]
    return found


def offsets(acts: Any) -> list[int | None]:
    """The offsets of the events that are handed over."""
    return [act.event.seq for act in acts if isinstance(act, Hand)]


def moved(client: Session, now: float = 10.0) -> int:
    """Let the client come to another broker; return the numbering that starts there at its cursors."""
    again = subscribed(client.resume(now))
    client.handle(Unknown(Position("s", again.epoch, 0)), now)
    client.handle(Accepted(again.request, epoch=again.afresh), now)
    return again.afresh


def test_an_event_that_is_handed_over_moves_the_cursor_of_its_log() -> None:
    client = session()
    client.handle(notify(given(1, 7), given(2, 3, "b2"), given(3, 9)), 0.0)
    assert client.seen("s") == {"b1/1": 10, "b2/4": 4}
    assert dict(subscribed(client.resume(1.0)).seen) == {"b1/1": 10, "b2/4": 4}


def test_an_event_that_waits_for_its_turn_moves_nothing() -> None:
    client = session()
    client.handle(notify(given(1, 7), given(3, 9)), 0.0)
    assert client.seen("s") == {"b1/1": 8}
    client.handle(Answer(((EPOCH, 3),), (given(2, 8), given(3, 9)), LOGS), 1.0)
    assert client.seen("s") == {"b1/1": 10}


def test_an_answer_names_the_logs_of_its_events() -> None:
    client = session()
    client.handle(notify(given(2, 8)), 0.0)
    client.handle(Answer(((EPOCH, 2),), (given(1, 5),), (("b1", 9),)), 1.0)
    assert client.seen("s") == {"b1/9": 6, "b1/1": 9}


def test_an_event_without_an_offset_moves_nothing() -> None:
    client = session()
    client.handle(notify(Delivery((event(1),), ((EPOCH, 1),)), Delivery((stored(4, "b3"),), ((EPOCH, 2),))), 0.0)
    assert client.seen("s") == {}, "and neither does one of a log that the message does not name"


def test_a_gap_moves_the_cursor_to_its_end() -> None:
    client = session()
    acts = client.handle(notify(given(1, 3), gap(2, "b1/1", 4, 9)), 0.0)
    assert results(acts)[1:] == [Missing("s", "it was dropped (log b1/1, offsets 4 to 8)")]
    assert client.seen("s") == {"b1/1": 9}
    client.handle(notify(gap(3, "", 0, 0)), 0.0)
    assert client.seen("s") == {"b1/1": 9}, "this one is about no log"


def test_a_log_that_is_over_has_no_cursor() -> None:
    client = session()
    client.handle(Accepted(0, epoch=EPOCH, last=1, seen=(("b1/1", 6), ("b2/4", 2))), 0.0)
    acts = client.handle(notify(given(1, 5), gap(2, "b1/1", 6, ENDLESS)), 0.0)
    assert results(acts)[1:] == [Missing("s", "it was dropped (log b1/1, from offset 6 on)")]
    assert client.seen("s") == {"b2/4": 2}


def test_what_the_broker_says_holds_once_everything_up_to_its_number_was_handed_over() -> None:
    client = session()
    client.handle(notify(given(1, 3)), 0.0)
    client.handle(Accepted(0, epoch=EPOCH, last=2, seen=(("b1/1", 20), ("b2/4", 5))), 0.0)
    client.handle(Accepted(0, epoch=EPOCH, last=3, seen=(("b1/1", 30), ("b2/4", 5))), 0.0)
    assert client.seen("s") == {"b1/1": 4}
    client.handle(notify(given(2, 12)), 0.0)
    assert client.seen("s") == {"b1/1": 20, "b2/4": 5}
    client.handle(notify(given(3, 29)), 0.0)
    assert client.seen("s") == {"b1/1": 30, "b2/4": 5}
    client.handle(Accepted(0, epoch=EPOCH, last=1, seen=(("b1/1", 4),)), 0.0)
    assert client.seen("s") == {"b1/1": 30, "b2/4": 5}, "a cursor never goes back"


def test_what_was_said_of_numbers_that_were_never_reached_does_not_hold() -> None:
    client = session()
    client.handle(Accepted(0, epoch=EPOCH, last=2, seen=(("b1/1", 20),)), 0.0)
    client.handle(notify(given(1, 3)), 0.0)
    epoch = moved(client)
    client.handle(notify(given(1, 4, epoch=epoch), given(2, 5, epoch=epoch)), 11.0)
    assert client.seen("s") == {"b1/1": 6}


def test_another_broker_goes_on_at_the_cursors_and_the_numbers_go_on() -> None:
    client = session(seen={"b1/1": 5})
    client.handle(notify(given(1, 5), given(2, 6)), 0.0)
    epoch = moved(client)
    acts = results(client.handle(notify(given(1, 7, epoch=epoch)), 11.0))
    assert acts == [Hand(stored(7), (("s", 3),))]


def test_an_event_that_crossed_the_cursors_on_its_way_is_not_handed_over_again() -> None:
    """The broker forgot the subscription, and started again at cursors that have moved since they were said."""
    client = session()
    client.handle(notify(given(1, 5)), 0.0)
    again = subscribed(client.resume(1.0))
    client.handle(notify(given(2, 6)), 1.0)
    client.handle(Accepted(again.request, epoch=again.afresh), 2.0)
    acts = results(client.handle(notify(given(1, 6, epoch=again.afresh), given(2, 7, epoch=again.afresh)), 2.0))
    assert acts == [Passed("s"), Hand(stored(7), (("s", 3),))]
    assert said(client.took({"s": 4})) == [Took((Position("s", again.afresh, 2),))], "what was passed is taken"


def test_an_event_that_its_publisher_repeated_at_another_broker_is_handed_over_once() -> None:
    """The broker that the client comes to does not know what it was given elsewhere."""
    client = session()
    client.handle(notify(given(1, 5), given(2, 6)), 0.0)
    epoch = moved(client)
    twin = Delivery((event(6).stamped("b2", 40),), ((epoch, 1),))
    late = Delivery((event(5).stamped("b2", 41),), ((epoch, 3),))
    acts = results(client.handle(notify(twin, late, given(2, 7, epoch=epoch)), 11.0))
    assert acts == [Passed("s"), Hand(stored(7), (("s", 3),)), Passed("s")]
    assert client.seen("s") == {"b1/1": 8, "b2/4": 42}, "the cursor passes it"


def test_a_request_that_is_repeated_says_the_cursors_of_now() -> None:
    client = session()
    (asked,) = said(client.change("s", WANTED, 1.0))
    client.handle(notify(given(1, 5)), 2.0)
    again = subscribed(client.wake(1.0 + PATIENCE))
    assert isinstance(asked, Subscribe) and again.request == asked.request
    assert (asked.seen, again.seen) == ((), (("b1/1", 6),))


def test_when_a_subscription_was_made_is_said_to_every_later_broker() -> None:
    client = silent()
    first = subscribed(client.subscribe("s", WANTED, 0.0))
    client.handle(Accepted(first.request, epoch=first.afresh, made=123), 0.0)
    client.handle(Accepted(0, epoch=first.afresh), 1.0)
    assert (first.made, subscribed(client.resume(2.0)).made) == (0, 123)


# --- replays ---


def test_a_replay_starts_again_until_the_broker_has_said_where_all_logs_stand() -> None:
    """Else logs that had no turn yet would not be replayed; and what was handed over does not come again."""
    client = session(replay=Replay(all=True))
    client.handle(notify(given(1, 1, replayed=True), given(2, 2, replayed=True)), 0.0)
    assert client.seen("s") == {} and subscribed(client.resume(1.0)).seen == ()
    epoch = moved(client)
    again = [given(number, number, epoch=epoch, replayed=True) for number in (1, 2, 3)]
    assert offsets(client.handle(notify(*again), 11.0)) == [3]
    client.handle(Accepted(0, epoch=epoch, last=3, seen=(("b1/1", 3), ("b2/4", 1))), 12.0)
    assert client.seen("s") == {"b1/1": 4, "b2/4": 1}


def test_picked_events_come_in_any_order_and_move_nothing() -> None:
    client = session(replay=Replay(last=3))
    picked = [given(1, 8, replayed=True), given(2, 2, replayed=True), given(3, 5, replayed=True)]
    assert offsets(client.handle(notify(*picked), 0.0)) == [8, 2, 5]
    assert client.seen("s") == {}
    client.handle(Accepted(0, epoch=EPOCH, last=3, seen=(("b1/1", 9),)), 1.0)
    client.handle(notify(given(4, 9)), 1.0)
    assert client.seen("s") == {"b1/1": 10}


def test_what_was_picked_is_not_handed_over_again_when_it_is_picked_again() -> None:
    client = session(replay=Replay(last=3))
    client.handle(notify(given(1, 8, replayed=True), given(2, 2, replayed=True)), 0.0)
    epoch = moved(client)
    picked = [given(number, offset, epoch=epoch, replayed=True) for number, offset in ((1, 8), (2, 2), (3, 5))]
    assert offsets(client.handle(notify(*picked), 11.0)) == [5]


def test_live_events_after_a_replay_that_picks_are_not_picked_again() -> None:
    client = session(replay=Replay(last=2))
    client.handle(notify(given(1, 8, replayed=True), given(2, 9)), 0.0)
    epoch = moved(client)
    picked = [given(1, 8, epoch=epoch, replayed=True), given(2, 9, epoch=epoch, replayed=True)]
    assert offsets(client.handle(notify(*picked, given(3, 10, epoch=epoch)), 11.0)) == [10]


def test_where_live_events_start_after_picked_ones_is_known_before_these_were_taken() -> None:
    client = session(replay=Replay(last=2))
    client.handle(notify(given(1, 2, replayed=True), given(2, 5, replayed=True)), 0.0)
    assert client.begun("s") == {}
    client.handle(Accepted(0, epoch=EPOCH, last=2, seen=(("b1/1", 9),)), 1.0)
    client.handle(notify(given(3, 9)), 2.0)
    client.handle(Accepted(0, epoch=EPOCH, last=3, seen=(("b1/1", 20),)), 3.0)
    assert client.begun("s") == {"b1/1": 9} and client.seen("s") == {"b1/1": 20}
    late = session(replay=Replay(last=2))
    late.handle(notify(given(1, 2, replayed=True), given(2, 9)), 0.0)
    late.handle(Accepted(0, epoch=EPOCH, last=2, seen=(("b1/1", 20),)), 1.0)
    assert late.begun("s") == {}, "live events came before the broker said it"


def test_an_answer_that_was_late_does_not_bring_a_log_back_that_is_over() -> None:
    client = session()
    client.handle(notify(given(1, 5), gap(2, "b1/1", 6, ENDLESS)), 0.0)
    client.handle(Accepted(0, epoch=EPOCH, last=1, seen=(("b1/1", 6), ("b2/4", 2))), 1.0)
    assert client.seen("s") == {"b2/4": 2}


# --- what the application has taken ---


def took(number: int, epoch: int = EPOCH) -> list[Message]:
    return [Took((Position("s", epoch, number),))]


def test_what_was_taken_is_acknowledged_in_the_numbers_of_the_broker() -> None:
    client = session()
    client.handle(notify(gap(1, "", 0, 0), given(2, 1), gap(3, "", 0, 0), gap(4, "", 0, 0), given(5, 2)), 0.0)
    assert said(client.took({"s": 1})) == [], "the gap is told with the first event"
    assert said(client.took({"s": 2})) == took(2)
    assert said(client.took({"s": 2})) == [], "it is no news"
    assert said(client.took({"s": 3})) == took(5)
    client.handle(notify(gap(6, "", 0, 0)), 0.0)
    assert said(client.took({"s": 3})) == took(6), "there is nothing to take, and it fills the window"


def test_what_is_lost_is_acknowledged_with_what_comes_after_it() -> None:
    client = session()
    client.handle(notify(given(1, 1), given(4, 4)), 0.0)
    client.handle(Answer(((EPOCH, 4),), (given(4, 4),), LOGS), 0.0)
    assert said(client.took({"s": 2})) == took(1)
    assert said(client.took({"s": 5})) == took(4)


def test_what_was_not_taken_still_fills_the_window_of_the_same_numbering() -> None:
    client = session(window=5)
    client.handle(notify(given(1, 1), given(2, 2), given(3, 3)), 0.0)
    client.took({"s": 2})
    again = subscribed(client.resume(1.0))
    assert (again.last, again.window, dict(again.seen)) == (1, 5, {"b1/1": 4})
    assert said(client.took({"s": 3, "gone": 7})) == took(2)


def test_what_waits_of_an_earlier_numbering_is_not_acknowledged_in_the_next() -> None:
    client = session()
    client.handle(notify(given(1, 1), given(2, 2)), 0.0)
    epoch = moved(client)
    client.handle(notify(given(1, 3, epoch=epoch)), 11.0)
    assert said(client.took({"s": 2})) == [] == said(client.took({"s": 3}))
    assert said(client.took({"s": 4})) == took(1, epoch)


def test_a_later_life_gets_what_an_earlier_one_has_not_taken() -> None:
    client = silent()
    first = subscribed(client.subscribe("s", WANTED, 0.0, adopts=True))
    accepted = client.handle(Accepted(first.request, epoch=7, last=5, seen=(("b1/1", 30),), taken=3), 0.0)
    assert first.adopts and client.seen("s") == {}
    assert [getattr(message, "positions", ()) for message in said(accepted)] == [(Position("s", 7, 3, 3),)]
    kept = (given(4, 21, epoch=7), given(5, 22, epoch=7))
    assert offsets(client.handle(Answer(((7, 5),), kept, LOGS), 1.0)) == [21, 22]
    assert client.seen("s") == {"b1/1": 30}


@pytest.mark.parametrize("taken", [1, 2, 3, 4])
def test_nothing_is_acknowledged_twice_or_beyond_what_came(taken: int) -> None:
    client = session()
    client.handle(notify(given(1, 1), given(2, 2)), 0.0)
    said(client.took({"s": 2}))
    found = said(client.took({"s": taken}))
    assert found == ([] if taken <= 2 else took(2))


def test_how_far_an_answer_of_a_client_was_read_is_said_until_it_was_read_to_its_end() -> None:
    client = session()
    answer = "b1/desk/r1/1"
    client.handle(Accepted(0, epoch=EPOCH, seen=(("b1/1", 5), (answer, 3))), 0.0)
    assert dict(subscribed(client.resume(1.0)).seen) == {"b1/1": 5, answer: 3}
    client.handle(Accepted(0, epoch=EPOCH, seen=(("b1/1", 5),)), 2.0)
    assert dict(subscribed(client.resume(3.0)).seen) == {"b1/1": 5}


def test_a_log_that_was_rewound_is_taken_from_its_new_end_on() -> None:
    client = session()
    client.handle(notify(given(1, 15)), 0.0)
    lost = Delivery((), ((EPOCH, 2),), gap=Gap("b1/1", 6, 16, "it has lost its end", rewinds=True))
    client.handle(notify(lost), 0.0)
    assert client.seen("s") == {"b1/1": 6}
    acts = client.handle(notify(given(3, 6), given(4, 16)), 0.0)
    assert offsets(acts) == [6, 16]
    assert client.seen("s") == {"b1/1": 17}
