"""Catching up, with one mistake each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from msgspec import structs

from vestnik.recovery import reading
from vestnik.recovery.feed import Feed, FeedState
from vestnik.recovery.roster import Roster
from vestnik.recovery.topology import Topology
from vestnik.session.cursors import Cursors
from vestnik.session.handed import Handed
from vestnik.wire.origins import Slice

Plant = Callable[[pytest.MonkeyPatch], None]

PAGE: Final = 2
"""Events of a page: few, so that most of what was missed takes several pages."""


def small_pages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reading, "PAGE", PAGE)


def fetch_nothing_of_one_origin(patch: pytest.MonkeyPatch) -> None:
    """Take up the live events of one broker without a fetch of what was missed."""
    catch_up = Roster.catch_up

    def planted(self: Roster, feed: Feed) -> None:
        catch_up(self, feed)
        if feed.origin.broker == "b3" and feed.is_fetching:
            feed._become(FeedState.LIVE)

    patch.setattr(Roster, "catch_up", planted)


def give_live_events_while_fetching(patch: pytest.MonkeyPatch) -> None:
    """Give live events before the missed ones, and move the cursor beyond these."""
    become = Feed._become

    def planted(self: Feed, state: FeedState) -> None:
        become(self, state)
        self.is_live = state is not FeedState.UNREACHABLE

    patch.setattr(Feed, "_become", planted)


def stay_live_without_a_way(patch: pytest.MonkeyPatch) -> None:
    """Take a way that was lost and found again for one that was never lost."""
    catch_up = Feed.catch_up

    def planted(self: Feed) -> None:
        if not self.is_live:
            catch_up(self)

    patch.setattr(Feed, "break_off", lambda feed: None)
    patch.setattr(Feed, "catch_up", planted)


def drop_events_for_which_there_is_no_room(patch: pytest.MonkeyPatch) -> None:
    """Pass over an event if its reader has not taken the ones before it."""
    patch.setattr(Roster, "lag", lambda roster, key, origin, offset: None)


def skip_the_rest_after_a_page(patch: pytest.MonkeyPatch) -> None:
    """Take a page for the whole rest of the log."""
    part_of = Feed.part_of

    def planted(self: Feed, page: Slice, edge: int) -> Slice | None:
        part = part_of(self, page, edge)
        return None if part is None else structs.replace(part, upto=max(part.upto, edge))

    patch.setattr(Feed, "part_of", planted)


def hide_breaks(patch: pytest.MonkeyPatch) -> None:
    """Do not tell neighbours that an origin was out of reach for a while."""
    patch.setattr(Topology, "_unsay", lambda topology, neighbour, origin: [])


def forget_cursors(patch: pytest.MonkeyPatch) -> None:
    """Let a client hand over no cursors to its next broker."""
    patch.setattr(Cursors, "said", {})


def hand_over_old_cursors(patch: pytest.MonkeyPatch) -> None:
    """Let a client hand over cursors before what it has, and take everything that comes."""
    said: property = vars(Cursors)["said"]

    def planted(self: Cursors) -> dict[str, int]:
        return {log: max(1, offset - 3) for log, offset in said.__get__(self).items()}

    patch.setattr(Cursors, "said", property(planted))
    patch.setattr(Cursors, "takes", lambda cursors, event, log, *, replayed: True)
    patch.setattr(Handed, "takes", lambda *_: True)


MISTAKES: dict[str, tuple[Plant, str]] = {
    "one origin is not asked for what was missed": (fetch_nothing_of_one_origin, "kept"),
    "live events come before the missed ones": (give_live_events_while_fetching, "kept"),
    "a lost way does not end that a feed is live": (stay_live_without_a_way, "kept"),
    "events are dropped if the window is full": (drop_events_for_which_there_is_no_room, "kept"),
    "the rest after a page is not asked for": (skip_the_rest_after_a_page, "kept"),
    "neighbours do not hear of a break": (hide_breaks, "kept"),
    "a client throws its cursors away": (forget_cursors, "kept"),
    "a client hands over what it had before": (hand_over_old_cursors, "once"),
}
"""Each mistake by what goes wrong, and the rule by which it is found."""
