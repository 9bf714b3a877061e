"""A broker's part in recovery: its own log, the next hops to others, and the feeds of its clients' subscriptions.

The broker hands over what it hears, after it has told its neighbours what it wants: a fetch must not overtake the
routing entries that it proves. Each method returns what is to be done, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.work import together
from vestnik.recovery.allowance import Allowance
from vestnik.recovery.answers import Offered
from vestnik.recovery.arrivals import Arrivals
from vestnik.recovery.feeds import Feeds
from vestnik.recovery.giving import Giving
from vestnik.recovery.limits import RecoveryLimits
from vestnik.recovery.meeting import Meeting
from vestnik.recovery.offering import Offering
from vestnik.recovery.origins import Origins
from vestnik.recovery.picking import Picking
from vestnik.recovery.pressure import Pressure
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.readers import Readers
from vestnik.recovery.reading import Reading
from vestnik.recovery.reads import PageRequest, Requests, out_of_reach
from vestnik.recovery.repeats import Repeats
from vestnik.recovery.replaying import Replaying
from vestnik.recovery.roster import COMPARING, Roster
from vestnik.recovery.serving import ReadLog, Serving
from vestnik.recovery.tail import Tail
from vestnik.recovery.topology import Rerouted, Say, Topology
from vestnik.wire.messages import NodeId, Recalled
from vestnik.wire.origins import (
    ENDLESS,
    Frontiers,
    Origin,
    OriginGone,
    OriginHere,
    OriginOffers,
    PageRead,
    ReadTerms,
    Slice,
)


class Later(NamedTuple):
    """Go on with the reads that are due in another turn, at this time."""

    at: float


Act: TypeAlias = Say | ReadLog | Later


class Recovery:
    """The recovery of one broker, whose log `own` ends with `tail`. `matching` finds the readers that want an event.

    `wanted_by` returns filters for everything that is wanted through a neighbour.
    """

    def __init__(
        self,
        own: Origin,
        tail: Tail,
        matching: Callable[[Event], Iterable[ReaderKey]],
        wanted_by: Callable[[NodeId], tuple[Filter, ...]],
        limits: RecoveryLimits = RecoveryLimits(),  # noqa: B008  # a frozen value
    ) -> None:
        repeats = Repeats(limits.repeat_window, limits.repeat_window_age)
        roster = Roster(own, tail.routed, repeats, Allowance(limits.in_flight))
        giving = Giving(own, tail, repeats, roster.cursor_of)

        def clock() -> float:
            return giving.now

        self._own = own
        self.tail = tail
        self.topology = Topology(own, is_history=tail.is_history)
        self.meeting = Meeting()
        self.requests = Requests(clock)
        replaying = Replaying(roster, giving, lambda: self.meeting.missing)
        self.feeds = Feeds(replaying)
        self.origins = Origins(roster, self.requests, replaying)
        self.readers = Readers(own, roster, giving, replaying)
        arrivals = Arrivals(replaying, matching)
        self._reading = Reading(roster, self.requests, replaying, arrivals)
        self._picking = Picking(roster, self.requests, replaying)
        self.offering = Offering(tail, self.topology)
        self.pressure = Pressure(own, tail, roster, limits.stalled, clock)
        self.serving = Serving(tail, self.topology, self.requests, wanted_by, clock, self.pressure.note_read)
        self._roster = roster
        self._replaying = replaying
        self._frontiers: dict[Origin, int] = {}  # of others
        self._reported: dict[Origin, int] = {}  # what neighbours were told

    # --- links ---

    def link_up(self, neighbour: NodeId) -> list[Act]:
        self.meeting.linked(neighbour, self.feeds.giving.now)
        return [*self.topology.link_up(neighbour)]

    def link_down(self, neighbour: NodeId) -> list[Act]:
        self.meeting.met(neighbour)
        return self._rerouted(self.topology.link_down(neighbour))

    def origin_here(self, message: OriginHere, sender: NodeId) -> list[Act]:
        """Handle an origin that can be reached. A later log of the same broker supersedes the earlier ones."""
        origin = message.origin
        if origin.broker == sender:
            self.meeting.met(sender)
        if self.topology.next_hop(origin) == sender:
            return self.origin_offers(OriginOffers(origin, message.offers), sender)
        for known in self.feeds.roster.logs_of(origin.broker):
            if known.log < origin.log:
                self.origins.superseded(known)
        return self._rerouted(self.topology.here(sender, origin, message.offers, history=message.history))

    def origin_gone(self, message: OriginGone, sender: NodeId) -> list[Act]:
        return self._rerouted(self.topology.gone(sender, message.origin))

    def origin_offers(self, message: OriginOffers, sender: NodeId) -> list[Act]:
        before, told = self.topology.offered(sender, message.origin, message.offers)
        if before is not None and before != message.offers:
            self.origins.offered(message.origin, before, message.offers)
        return [*told, *self.moved()]

    def _rerouted(self, rerouted: Rerouted) -> list[Act]:
        for origin in rerouted.lost:
            self._frontiers.pop(origin, None)
            self.origins.lost(origin)
        for origin in rerouted.found:
            if not self.feeds.roster.is_over(origin):
                self.origins.found(origin, is_history=origin in self.topology.histories)
        return [*rerouted.told, *self.moved()]

    # --- events ---

    def is_next_hop(self, origin: Origin, sender: NodeId) -> bool:
        """Return whether events, frontiers and pages of an origin count if a neighbour sends them."""
        return self.topology.next_hop(origin) == sender

    def routed(
        self, time: int, packed: Sequence[bytes], events: Sequence[Event], wanting: Sequence[Collection[Reader]]
    ) -> list[Act]:
        """Handle events of this broker that are stored and were sent to the neighbours that want them.

        They were accepted at a time, and have their offsets.
        """
        self.tail.extend([event.seq or 0 for event in events], time, packed, wanting)
        self.feeds.live(self._own, events, packed, wanting)
        acts: list[Act] = [*self.offering.told()] if self.offering.withdrawn else []
        return acts + self.moved() if self._roster.due or self._replaying.due_picks else acts

    def pass_over(self, offset: int) -> list[Act]:
        """Handle offsets of this broker at which nothing will be routed."""
        self.tail.pass_over(offset)
        self.feeds.frontier(self._own, self.tail.routed)
        return [*self.offering.told(), *self.moved()]

    def heard(
        self,
        origin: Origin,
        events: Sequence[Event],
        packed: Sequence[bytes],
        wanting: Sequence[Collection[Reader]],
    ) -> list[Act]:
        """Handle live events that came from the next hop of their origin, also those that nobody here wants."""
        self.feeds.live(origin, events, packed, wanting)
        return self.moved()

    def frontiers(self, message: Frontiers, sender: NodeId) -> bool:
        """Take in frontiers; return whether any of them has moved, so that neighbours have to be told."""
        has_moved = False
        for origin, offset in message.offsets:
            if self.is_next_hop(origin, sender) and offset > self._frontiers.get(origin, 0):
                self._frontiers[origin] = offset
                self.feeds.frontier(origin, offset)
                has_moved = True
        return has_moved

    def report(self) -> list[Act]:
        """Tell all neighbours how far each log was sent to them, if it has moved; call this now and then."""
        now = {**self._frontiers, self._own: self.tail.routed}
        moved = [(one, offset) for one, offset in now.items() if self._reported.get(one) != offset]
        self._reported = now
        said: list[Act] = []
        for neighbour in self.topology.neighbours if moved else ():
            offsets = tuple([(one, offset) for one, offset in moved if self.topology.next_hop(one) != neighbour])
            said += [Say(neighbour, Frontiers(offsets))] if offsets else []
        return said

    # --- pages ---

    def page_read(self, message: PageRead, sender: NodeId) -> list[Act]:
        """Take in a page, or pass it on to the broker that asked for it."""
        if not self.is_next_hop(message.origin, sender):
            return []
        served = self.serving.page_read(message)
        return [*served, *([] if message.path else self.moved())]

    def log_read(self, number: int, page: Slice) -> list[Act]:
        """Take in a page that was read from disk."""
        return [*self.serving.log_read(number, page), *self.moved()]

    # --- histories of clients ---

    def host(self, origin: Origin, offered: Offered) -> list[Act]:
        """Begin to ask a client of this broker for the past, or go on with another filter."""
        is_new = origin not in self.serving.histories
        self.serving.histories.offer(origin, offered)
        if not is_new:
            return []
        self.origins.found(origin, is_history=True)
        return [*self.topology.host(origin)]

    def unhost(self, origin: Origin) -> list[Act]:
        """End a history: its client has withdrawn it, or is not there."""
        if origin not in self.serving.histories:
            return []
        self.serving.histories.withdraw(origin)
        self.origins.lost(origin)
        return [*self.topology.unhost(origin), *self.moved()]

    def recalled(self, message: Recalled, client: NodeId) -> list[Act]:
        """Take in what a client answers."""
        return [*self.serving.recalled(message, client), *self.moved()]

    # --- how far logs were read ---

    def edge(self, origin: Origin) -> int:
        """Return where a log ends, as far as this broker knows."""
        if origin == self._own:
            return self.tail.routed
        main = self.feeds.roster.main.get(origin)
        return max(self._frontiers.get(origin, 0), 0 if main is None else main.cursor)

    def read_up_to(self) -> dict[Origin, int]:
        """Return how far each log was read that can be reached and from which all that comes is live."""
        return {origin: feed.cursor for origin, feed in self.feeds.roster.main.items() if feed.is_live}

    # --- readers ---

    def ask_all(self, then: Callable[[list[str]], None]) -> list[Act]:
        """Ask all brokers within reach a question that travels after the routing entries.

        When they have answered, call `then` with those that have not, in words.
        """
        waiting = dict.fromkeys([one for one in self.origins.reachable if one != self._own])  # in a fixed order
        missing = self.feeds.replaying.out_of_reach()

        def answered(origin: Origin, reason: str = "") -> None:
            missing.extend([reason] if reason else [])
            waiting.pop(origin, None)
            if not waiting:
                then(missing)

        acts: list[Act] = []
        for origin in list(waiting):
            when_read = partial(_whatever_is_read, partial(answered, origin))
            lost = partial(answered, origin, out_of_reach(origin))
            acts += self.serving.read(self.requests.new(origin, ReadTerms(ENDLESS, (), 0), when_read, lost=lost))
        if not acts:
            then(missing)
        return acts

    def moved(self) -> list[Act]:
        """Return the reads that are due. Pages in memory are read at once, as many as one turn allows."""
        if not self._has_due:
            return []
        acts: list[Act] = []
        while reads := self._next_reads():
            for read in reads:
                acts += self.serving.read(read)
        return [*acts, Later(self.feeds.giving.now)] if self._has_due else acts

    @property
    def _has_due(self) -> bool:
        """Whether pages may be wanted."""
        return bool(self._roster.due or self._replaying.due_picks)

    def _next_reads(self) -> list[PageRequest]:
        """Return the pages that are wanted next, as long as something may be given in this turn."""
        left = self.feeds.giving.left
        if not self._has_due or left <= 0:
            return []
        with together(COMPARING):
            return [*self._picking.next_reads(), *self._reading.next_reads(left)]

    def look_for_late(self) -> list[Act]:
        """Send requests again that were not answered in time, unless their readers go on without the answer."""
        return [*self.serving.late(), *self.moved()]

    def shift(self, by: float) -> None:
        """Move all times, as the clock was."""
        self.serving.shift(by)
        self.meeting.shift(by)
        self.feeds.giving.repeats.shift(by)
        self.pressure.shift(by)
        for reader in self.feeds.readers.values():
            reader.shift(by)


def _whatever_is_read(told: Callable[[], None], request: int, page: Slice, edge: int) -> None:
    """Take in any page, and only tell that it came."""
    told()
