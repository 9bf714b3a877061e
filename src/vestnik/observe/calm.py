"""Since when nothing has happened at a broker but renewals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vestnik.broker.effects import (
    Drained,
    Full,
    GapTold,
    Gone,
    LinkDown,
    LinkUp,
    OfferEnded,
    OfferMade,
    SubscriptionChanged,
    SubscriptionEnded,
    SubscriptionMade,
)
from vestnik.observe.facts import (
    ClientHere,
    ClientTook,
    Fact,
    Forwarded,
    Given,
    GivenAgain,
    NotStored,
    PageTaken,
    Passed,
    Said,
    Stored,
)

QUIET: Final = 2.0
"""Seconds in which nothing happens before a broker counts as quiet."""
AGAIN: Final = 5.0
"""Seconds after which it says so again."""
STOPPED: Final = 2.5
"""Seconds between two looks after which the process counts as stopped: messages may wait that it has not handled."""
DISTURBING: Final = frozenset(
    {
        Stored,
        NotStored,
        Passed,
        PageTaken,
        Forwarded,
        Given,
        ClientHere,
        ClientTook,
        Gone,
        Full,
        Drained,
        LinkUp,
        LinkDown,
        GapTold,
        SubscriptionMade,
        SubscriptionChanged,
        SubscriptionEnded,
        OfferMade,
        OfferEnded,
    }
)


class Calm:
    """Tells since when nothing has happened. Call `since` once a second: a long pause means a stopped process."""

    def __init__(self) -> None:
        self._disturbed = 0.0
        self._looked = 0.0
        self._told = 0.0

    def take(self, facts: Sequence[Fact], now: float) -> None:
        for fact in facts:
            if type(fact) in DISTURBING or _is_answer(fact):
                self.disturbed(now)
                return

    def disturbed(self, now: float) -> None:
        self._disturbed = self._looked = now

    def since(self, now: float) -> float | None:
        """Return since when nothing has happened, if that is to be told now."""
        if now - self._looked > STOPPED:
            self._disturbed = now
        self._looked = now
        is_told = self._told >= self._disturbed and now - self._told < AGAIN
        if is_told or now - self._disturbed < QUIET:
            return None
        self._told = now
        return self._disturbed


def _is_answer(fact: Fact) -> bool:
    """Return whether somebody is given what it asked for."""
    match fact:
        case Said(kind="PageRead"):
            return True
        case GivenAgain(deliveries=deliveries):
            return bool(deliveries)
    return False
