"""Catching up, with one mistake each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from vestnik import Event
from vestnik.broker.catchup import CatchUp
from vestnik.broker.confluence import Confluence, Late
from vestnik.broker.reach import Surroundings
from vestnik.model.streams import Handed
from vestnik.session.subscriptions import Seen, Subscription
from vestnik.wire.messages import NodeId, Reach

Plant = Callable[[pytest.MonkeyPatch], None]


def forget_an_origin(patch: pytest.MonkeyPatch) -> None:
    """Does not ask one broker for what was missed."""
    appeared = CatchUp.appeared

    def planted(self: CatchUp, brokers: Iterable[NodeId], now: float) -> Any:
        return appeared(self, set(brokers) - {"b3"}, now)

    patch.setattr(CatchUp, "appeared", planted)


def live_first(patch: pytest.MonkeyPatch) -> None:
    """Hands out what came meanwhile before what was missed."""
    patch.setattr(Confluence, "_rank", lambda flow, key: not isinstance(key, Late))
    patch.setattr(Confluence, "_waits", lambda flow, key: False)
    patch.setattr(Confluence, "_is_known", lambda flow, broker: True)


def report_too_early(patch: pytest.MonkeyPatch) -> None:
    """Tells neighbours that they were sent what is still to come."""
    report = Surroundings.report

    def planted(self: Surroundings, to: NodeId) -> Reach:
        return Reach(tuple((name, at + 3) for name, at in report(self, to).brokers))

    patch.setattr(Surroundings, "report", planted)


def forget_positions(patch: pytest.MonkeyPatch) -> None:
    """A client does not know what it has seen."""
    patch.setattr(Subscription, "seen", Seen(0, {}, replaying=True))


def hand_again(patch: pytest.MonkeyPatch) -> None:
    """A client hands over what comes again, whether it has come before or not."""
    takes = Handed.takes

    def planted(self: Handed, event: Event, *, again: bool = False) -> bool:
        return again or takes(self, event)

    patch.setattr(Handed, "takes", planted)


def stop_at_a_page(patch: pytest.MonkeyPatch) -> None:
    """Does not ask for the rest of what a broker sends in parts."""
    recalled = CatchUp.recalled

    def planted(self: CatchUp, broker: NodeId, message: Any, now: float) -> Any:
        return recalled(self, broker, type(message)(message.number, message.taken, message.upto, message.upto), now)

    patch.setattr(CatchUp, "recalled", planted)


MISTAKES: dict[str, tuple[Plant, str]] = {
    "a recall forgets one origin": (forget_an_origin, "kept"),
    "live events come before the missed ones": (live_first, "kept"),
    "positions are reported before events are forwarded": (report_too_early, "kept"),
    "a client throws its positions away": (forget_positions, "kept"),
    "what comes again is handed over twice": (hand_again, "once"),
    "the rest of a recall is not asked for": (stop_at_a_page, "kept"),
}
