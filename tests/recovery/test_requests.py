"""Pages that come too late."""

from __future__ import annotations

from vestnik import Filter
from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import LinkUp, Send
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.wire.messages import Subscribe
from vestnik.wire.origins import FetchPage, Origin, OriginHere


def requests_at(start: float) -> set[int]:
    """Return the numbers of the requests that a broker sends which starts at a time."""
    core = BrokerCore("a", Router(make_strategy("simple")))
    effects = [
        *core.handle(LinkUp("b"), "a", start),
        *core.handle(OriginHere(Origin("b", 1)), "b", start),
        *core.handle(Subscribe("s", Filter.all(), afresh=7, settled=True, request=1), "client", start),
    ]
    return {one.message.request for one in effects if isinstance(one, Send) and isinstance(one.message, FetchPage)}


def test_a_broker_that_starts_again_uses_other_request_numbers() -> None:
    """A page that its earlier life had asked for would prove a path that is not there."""
    assert len(requests_at(100.0)) == 3
    assert not requests_at(100.0) & requests_at(100.5)
