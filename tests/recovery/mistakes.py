"""Mistakes that can be planted in the core, each a way to get the protocol wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from recovery.disks import Disk
from recovery.links import Link
from recovery.nodes import Node
from vestnik.broker.effects import Effect, Send
from vestnik.recovery.answers import Answered
from vestnik.recovery.arrivals import Arrivals
from vestnik.recovery.feed import Feed, FeedState
from vestnik.recovery.feeds import Feeds
from vestnik.recovery.giving import Giving
from vestnik.recovery.origins import Origins
from vestnik.recovery.reader import Reader
from vestnik.recovery.replaying import Replaying
from vestnik.recovery.roster import Roster
from vestnik.recovery.serving import Served, Serving
from vestnik.recovery.topology import Topology
from vestnik.wire.messages import AdminA, AdminS
from vestnik.wire.origins import FetchPage, Origin, PageRead, Slice

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]
LATE: Final = 1 << 60


def believe_every_frontier(patch: Patch) -> None:
    patch.setattr(Feed, "pass_frontier", lambda feed, offset: setattr(feed, "cursor", max(feed.cursor, offset)))


def ignore_fresh_advertisements_during_a_fetch(patch: Patch) -> None:
    def go_live(feed: Feed, edge: int) -> bool:
        if feed.cursor >= edge:
            feed._become(FeedState.LIVE)
        return feed.is_live

    patch.setattr(Feed, "go_live", go_live)


def skip_the_rest_of_a_page_without_room(patch: Patch) -> None:
    give = Arrivals._give_apart

    def skip(arrivals: Arrivals, feed: Feed, key: Any, page: Slice, *, is_exact: bool) -> bool:
        merges = arrivals._replaying.merges(key, feed.origin)
        return give(arrivals, feed, key, page, is_exact=is_exact) or not merges

    patch.setattr(Arrivals, "_give_apart", skip)


def fetch_nothing_for_fresh_advertisements(patch: Patch) -> None:
    patch.setattr(Origins, "offered", lambda *_: None)


def forget_events_of_other_origins(patch: Patch) -> None:
    patch.setattr(Giving, "_has", lambda *_: False)


def start_new_origins_at_their_end(patch: Patch) -> None:
    found = Origins.found

    def late(origins: Origins, origin: Origin, **terms: Any) -> None:
        readers = origins._roster.readers
        made = {key: reader.made for key, reader in readers.items()}
        for reader in readers.values():
            reader.made = LATE
        found(origins, origin, **terms)
        for key, reader in readers.items():
            reader.made = made[key]

    patch.setattr(Origins, "found", late)


def call_the_end_of_each_page_the_edge(patch: Patch) -> None:
    before = Serving._hand_over

    def hand_over(serving: Serving, answered: Answered) -> list[Served]:
        is_asked = isinstance(answered.asked, FetchPage)
        return before(serving, answered._replace(edge=answered.page.upto) if is_asked else answered)

    patch.setattr(Serving, "_hand_over", hand_over)


def hide_breaks_from_neighbours(patch: Patch) -> None:
    patch.setattr(Topology, "_unsay", lambda *_: [])


def give_up_logs_without_a_gap(patch: Patch) -> None:
    def superseded(origins: Origins, origin: Origin) -> None:
        origins._roster.forget(origin)

    patch.setattr(Origins, "superseded", superseded)


def give_offsets_twice(patch: Patch) -> None:
    def crash(disk: Disk, damage: int) -> None:
        end = max(disk.start, disk.synced - damage)
        disk._take([entry for entry in disk.log if entry.offset >= end])
        disk.synced = end

    patch.setattr(Disk, "crash", crash)


def keep_a_link_whose_lease_has_lapsed(patch: Patch) -> None:
    def lapse(node: Node, neighbour: str) -> None:
        node.core.router.disconnect(neighbour)
        node.core.router.connect(neighbour)
        node.perform(node.core._tell(node.clock))

    patch.setattr(Node, "lapse", lapse)


def tell_entries_after_fetches(patch: Patch) -> None:
    perform = Node.perform

    def late(node: Node, effects: list[Effect]) -> None:
        told = [one for one in effects if isinstance(one, Send) and isinstance(one.message, AdminS | AdminA)]
        life, links = node.life, dict(node.links)

        def tell() -> None:
            for one in told:
                if node.is_up and node.life == life and node.links.get(one.to) == links.get(one.to):
                    perform(node, [one])

        perform(node, [one for one in effects if one not in told])
        if told:
            node.world.after(0.3, tell)  # always the same, so that they stay in order

    patch.setattr(Node, "perform", late)


def share_a_feed_that_is_not_live(patch: Patch) -> None:
    def is_covered(roster: Roster, reader: Reader, origin: Origin) -> bool:
        others = [one for one in roster.readers.values() if one is not reader]
        return origin == roster._own_log or any(one.filter.covers(reader.filter) for one in others)

    patch.setattr(Roster, "is_covered", is_covered)


def say_shared_cursors_of_readers_that_lag(patch: Patch) -> None:
    def cursors(feeds: Feeds, key: Any) -> dict[Origin, int]:
        return {origin: feed.cursor for origin, feed in feeds.roster.main.items()}

    patch.setattr(Feeds, "cursors", cursors)


def let_pages_overtake_events(patch: Patch) -> None:
    send = Link.send

    def overtake(link: Link, sender: str, session: int, message: Any) -> None:
        if isinstance(message, PageRead) and link.session == session:
            delay = link.world.rng.uniform(0.01, 0.1)
            link.world.after(delay, link.arrive, session, link.other(sender), message)
        else:
            send(link, sender, session, message)

    patch.setattr(Link, "send", overtake)


def tell_no_gap(patch: Patch) -> None:
    patch.setattr(Replaying, "tell", lambda *_, **__: True)


MISTAKES: Final[dict[Plant, int]] = {
    believe_every_frontier: 2,
    ignore_fresh_advertisements_during_a_fetch: 125,
    skip_the_rest_of_a_page_without_room: 11,
    fetch_nothing_for_fresh_advertisements: 24,
    forget_events_of_other_origins: 28,
    start_new_origins_at_their_end: 52,
    call_the_end_of_each_page_the_edge: 0,
    hide_breaks_from_neighbours: 6,
    give_up_logs_without_a_gap: 228,
    give_offsets_twice: 46,
    keep_a_link_whose_lease_has_lapsed: 16,
    tell_entries_after_fetches: 3,
    share_a_feed_that_is_not_live: 854,
    say_shared_cursors_of_readers_that_lag: 21,
    let_pages_overtake_events: 11,
    tell_no_gap: 35,
}
"""Each mistake, with the first seed of a world in which it shows."""
