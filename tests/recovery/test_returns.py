"""Clients that come back to a broker that knows them."""

from __future__ import annotations

import pytest

from vestnik import Event, Filter
from vestnik.broker.clients import Subscription
from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import Append, Appended, Effect, Gone, Send
from vestnik.recovery.flight import single
from vestnik.recovery.reader import Reader
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.wire.messages import Advertise, Ask, Message, Notify, Position, Publish, Subscribe
from vestnik.wire.origins import Origin
from vestnik.wire.packing import pack

BACK = {
    "asks": Ask((Position("s", 7, 0),)),
    "publishes": Publish((Event("q", {"v": 0}),), request=2),
    "advertises": Advertise("a", Filter.all(), request=2),
}


def given(effects: list[Effect]) -> list[int]:
    """Return the numbers of the notifications that are sent."""
    notices = [one.message for one in effects if isinstance(one, Send) and isinstance(one.message, Notify)]
    each = [one for notice in notices for some in notice.deliveries for one in some.each()]
    return [number for one in each for _, number in one.numbers]


@pytest.mark.parametrize("message", BACK.values(), ids=BACK)
def test_a_client_is_sent_what_it_missed_whatever_it_comes_back_with(message: Message) -> None:
    core = BrokerCore("a", Router(make_strategy("simple")))
    core.handle(Subscribe("s", Filter.parse("v > 0"), lease=60.0, afresh=7, request=1), "client", 1.0)
    core.handle(Gone("client"), "a", 2.0)
    (append,) = core.handle(Publish((Event("q", {"v": 1}),), request=1), "other", 3.0)
    assert isinstance(append, Append)
    assert given(core.handle(Appended(append), "a", 3.0)) == []
    assert given(core.handle(message, "client", 4.0)) == [1]


def test_an_answer_names_the_log_of_each_event() -> None:
    """A broker without a disk that was restarted has another log; events of both may be in flight."""
    reader = Reader(("client", "s"), Filter.all(), 1, 10, epoch=7)
    subscription = Subscription(Subscribe("s", Filter.all(), afresh=7), reader)
    sent = [(1, 5), (1, 6), (2, 1), (2, 2)]  # the log and the offset
    for log, offset in sent:
        event = Event("q").stamped("b", offset)
        reader.give(single(event, len(pack(event)), Origin("b", log)))
    answers = list(subscription.answer(0, 1.0))
    got = [(dict(one.logs)["b"], kept.event.seq) for one in answers for kept in one.kept if kept.event]
    assert got == sent
    assert [one.last for one in answers] == [((7, 2),), ((7, 4),)]
