"""Totals of events, notifications, gaps and refusals since a broker was started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from vestnik.broker.effects import GapTold, Note
from vestnik.observe.facts import (
    Fact,
    Forwarded,
    Given,
    NotStored,
    PageTaken,
    Passed,
    PublicationRefused,
    RequestRefused,
    Stored,
)
from vestnik.wire.messages import count_of


class Total(NamedTuple):
    """A total: its name, and how much a fact adds to it."""

    name: str
    of: Callable[[Any], int]


def _events(fact: Any) -> int:
    return len(fact.events)


def _one(fact: Any) -> int:
    return 1


TOTALS: Final[dict[type[Fact], Total]] = {
    Stored: Total("taken", _events),
    Passed: Total("passed", _events),
    PageTaken: Total("read", _events),
    Forwarded: Total("forwarded", lambda fact: len(fact.routed.carried)),
    Given: Total("notified", lambda fact: count_of(fact.deliveries)),
    GapTold: Total("gaps", _one),
    Note: Total("expired", _one),
    NotStored: Total("not_stored", _events),
    PublicationRefused: Total("refused", lambda fact: len(fact.refusals)),
    RequestRefused: Total("requests_refused", _one),
}
MEANINGS: Final = {
    "taken": "Events from clients.",
    "passed": "Events from neighbours.",
    "read": "Events that came in pages of logs, for subscriptions that catch up.",
    "forwarded": "Events that were sent to neighbours, counted for each.",
    "notified": "Notifications that were sent to clients.",
    "gaps": "Gaps of which subscriptions were told.",
    "expired": "Events that had expired when they came.",
    "not_stored": "Events from clients that could not be stored.",
    "refused": "Events from clients that were refused.",
    "requests_refused": "Other requests of clients that were refused.",
}


class Counts:
    """The totals of one broker: `totals` has a number for each name in MEANINGS."""

    def __init__(self) -> None:
        self.totals = dict.fromkeys(MEANINGS, 0)

    @property
    def taken(self) -> int:
        return self.totals["taken"]

    def take(self, facts: Sequence[Fact], now: float) -> None:
        for fact in facts:
            total = TOTALS.get(type(fact))
            if total is not None:
                self.totals[total.name] += total.of(fact)
