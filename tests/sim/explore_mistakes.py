"""Mistakes that can be planted in cores and sessions, each with a world so small that all of it can be explored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from recovery import mistakes
from recovery.mistakes import (
    believe_every_frontier,
    call_the_end_of_each_page_the_edge,
    fetch_nothing_for_fresh_advertisements,
    ignore_fresh_advertisements_during_a_fetch,
    say_shared_cursors_of_readers_that_lag,
    skip_the_rest_of_a_page_without_room,
    start_new_origins_at_their_end,
    tell_no_gap,
)
from vestnik.broker.effects import Append, Appended, Effect, Part
from vestnik.broker.offers import Offers
from vestnik.session.cursors import Cursors
from vestnik.session.handed import Handed
from vestnik.sim.explore.brokers import BrokerNode, Sent
from vestnik.sim.explore.settings import Kind, Settings
from vestnik.wire.messages import AdminA, AdminS, Message, NodeId

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def forget_events_of_other_origins(patch: Patch) -> None:
    """At the broker, and at the client, which remembers what its broker does not."""
    mistakes.forget_events_of_other_origins(patch)
    patch.setattr(Handed, "takes", lambda *_: True)


def tell_entries_after_fetches(patch: Patch) -> None:
    do = BrokerNode._do

    def late(node: BrokerNode, message: Message, sender: NodeId, now: float) -> list[Sent]:
        return sorted(do(node, message, sender, now), key=lambda sent: isinstance(sent.message, AdminS | AdminA))

    patch.setattr(BrokerNode, "_do", late)


def keep_a_link_whose_lease_has_lapsed(patch: Patch) -> None:
    perform = BrokerNode._perform
    patch.setattr(
        BrokerNode, "_perform", lambda node, effect, now: [] if isinstance(effect, Part) else perform(node, effect, now)
    )


def acknowledge_before_it_is_stored(patch: Patch) -> None:
    perform = BrokerNode._perform

    def early(node: BrokerNode, effect: Effect, now: float) -> list[Sent]:
        if isinstance(effect, Append) and node.disk is not None:
            return node._do(Appended(effect), node.name, now)
        return perform(node, effect, now)

    patch.setattr(BrokerNode, "_perform", early)


def forget_what_was_handed_over(patch: Patch) -> None:
    patch.setattr(Cursors, "said", property(lambda cursors: dict.fromkeys(cursors.offsets, 1)))


def withdraw_advertisements_at_once(patch: Patch) -> None:
    def routed(offers: Offers) -> bool:
        leaving, offers.leaving = offers.leaving, {}
        for source in leaving:
            offers._router.unadvertise(source)
            offers._close(source)
        return bool(leaving)

    patch.setattr(Offers, "routed", routed)


def world(kinds: str, operations: int, faults: int = 0, *, subscribed: bool = True, ads: bool = False) -> Settings:
    """Return a world with few kinds of operations, and one subscription of each client."""
    found = frozenset([Kind(kind) for kind in kinds.split()])
    return Settings(2, 2, operations, faults, 1, "covering", ads, subscribed, found)


MISTAKES: Final[dict[Plant, Settings]] = {
    believe_every_frontier: world("subscribe publish", 3, subscribed=False),
    ignore_fresh_advertisements_during_a_fetch: world("subscribe publish advertise", 3, subscribed=False, ads=True),
    fetch_nothing_for_fresh_advertisements: world("subscribe publish advertise", 3, subscribed=False, ads=True),
    forget_events_of_other_origins: world("publish crash", 2, 1),
    start_new_origins_at_their_end: world("subscribe publish cut crash", 4, 2, subscribed=False),
    tell_no_gap: world("publish crash", 2, 1),
    skip_the_rest_of_a_page_without_room: world("publish cut", 3, 1),
    call_the_end_of_each_page_the_edge: world("publish cut", 3, 1),
    say_shared_cursors_of_readers_that_lag: world("publish crash", 3, 1),
    tell_entries_after_fetches: world("subscribe publish", 2, subscribed=False),
    keep_a_link_whose_lease_has_lapsed: world("publish lease", 2, 1),
    acknowledge_before_it_is_stored: world("publish crash", 2, 1),
    forget_what_was_handed_over: world("publish crash", 2, 1),
    withdraw_advertisements_at_once: world("publish advertise", 2, ads=True),
}
