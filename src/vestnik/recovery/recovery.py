"""A broker's part in recovery: its own log, the next hops to others, and the feeds of its clients' subscriptions.

The broker hands over what it hears, after it has told its neighbours what it wants: a fetch must not overtake the
routing entries that it proves. Each method returns what is to be done, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.times import MICROS
from vestnik.recovery.answers import Answered, ClientHistories, Offered, WantedPage
from vestnik.recovery.feeds import Feeds
from vestnik.recovery.limits import RecoveryLimits
from vestnik.recovery.meeting import Meeting
from vestnik.recovery.pages import parts_of
from vestnik.recovery.reader import Reader, ReaderKey
from vestnik.recovery.reads import PageRequest, WhenNotRead
from vestnik.recovery.replays import out_of_reach
from vestnik.recovery.tail import Tail
from vestnik.recovery.topology import Rerouted, Say, Topology
from vestnik.wire.messages import NodeId, Recalled
from vestnik.wire.origins import (
    ENDLESS,
    FetchPage,
    Frontiers,
    Offer,
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


class ReadLog(NamedTuple):
    """Read a page of this broker's own log below offset `end` from disk. It comes back to `log_read` by its number."""

    number: int
    terms: ReadTerms
    end: int


Act: TypeAlias = Say | ReadLog | Later
FAR: Final = 0.5
"""The share of the memory for events by which a reader may lag before publishers have to wait."""
MANY: Final = 100
"""Readers that lag and are looked at whenever somebody publishes."""
LOOK_EVERY: Final = 0.005
"""Seconds after which more of them are looked at again."""


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
        self.tail = tail
        self.limits = limits
        self.topology = Topology(own)
        self.meeting = Meeting()
        self.feeds = Feeds(own, tail, matching, lambda: self.meeting.missing, limits)
        self._own = own
        self._wanted_by = wanted_by
        self._histories = ClientHistories()
        self._frontiers: dict[Origin, int] = {}  # of others
        self._reported: dict[Origin, int] = {}  # what neighbours were told
        self._numbers = count(1)
        self._reading: dict[int, tuple[WantedPage, int]] = {}  # with the end of the log before
        self._offers: dict[int, Filter] = {}
        self._withdrawn: list[tuple[int, int]] = []  # offers, and up to where all must be routed before
        self._lagging: dict[tuple[NodeId, int], tuple[int, float]] = {}  # where feeds of others read, and when
        self._looked_at = (0.0, False)  # when slow readers were looked at, and what was found

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
                self.feeds.superseded(known)
        return self._rerouted(self.topology.here(sender, origin, message.offers, history=message.history))

    def origin_gone(self, message: OriginGone, sender: NodeId) -> list[Act]:
        return self._rerouted(self.topology.gone(sender, message.origin))

    def origin_offers(self, message: OriginOffers, sender: NodeId) -> list[Act]:
        before, told = self.topology.offered(sender, message.origin, message.offers)
        if before is not None:
            self.feeds.offered(message.origin, before, message.offers)
        return [*told, *self.moved()]

    def _rerouted(self, rerouted: Rerouted) -> list[Act]:
        for origin in rerouted.lost:
            self._frontiers.pop(origin, None)
            self.feeds.lost(origin)
        for origin in rerouted.found:
            if not self.feeds.roster.is_over(origin):
                self.feeds.found(origin, is_history=origin in self.topology.histories)
        return [*rerouted.told, *self.moved()]

    # --- offers ---

    def offer(self, number: int, offered: Filter) -> list[Act]:
        """Advertise at this broker; `number` was not used before."""
        self._offers[number] = offered
        return self._offered()

    def withdraw(self, number: int) -> list[Act]:
        """Withdraw an advertisement when all is routed that was accepted under it."""
        self._withdrawn.append((number, self.tail.next))
        return self._offered()

    def _offered(self) -> list[Act]:
        due = [number for number, upto in self._withdrawn if upto <= self.tail.routed]
        self._withdrawn = [one for one in self._withdrawn if one[1] > self.tail.routed]
        for number in due:
            self._offers.pop(number, None)
        offers = frozenset([Offer(number, offered) for number, offered in self._offers.items()])
        return [] if offers == self.topology.offers else [*self.topology.offer(offers)]

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
        sizes = self.tail.extend([event.seq or 0 for event in events], time, packed, events, wanting)
        self.feeds.live(self._own, events, wanting, sizes)
        return [*(self._offered() if self._withdrawn else ()), *self.moved()]

    def pass_over(self, offset: int) -> list[Act]:
        """Handle offsets of this broker at which nothing will be routed."""
        self.tail.pass_over(offset)
        self.feeds.frontier(self._own, self.tail.routed)
        return [*self._offered(), *self.moved()]

    def heard(self, origin: Origin, events: Sequence[Event], wanting: Sequence[Collection[Reader]]) -> list[Act]:
        """Handle live events that came from the next hop of their origin, also those that nobody here wants."""
        self.feeds.live(origin, events, wanting)
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

    def fetch_page(self, message: FetchPage, sender: NodeId) -> list[Act]:
        """Read a page of the own log, or pass the request on to its origin."""
        back = (*message.path, sender)
        if message.origin != self._own and message.origin not in self._histories:
            hop = self.topology.next_hop(message.origin)
            passed = FetchPage(message.origin, message.request, message.terms, message.feed, back)
            return [] if hop is None or hop == sender else [Say(hop, passed)]
        terms = message.terms
        if terms.is_shared:
            terms = replace(terms, filters=self._wanted_by(sender))
        asked = FetchPage(message.origin, message.request, terms, message.feed, back)
        if message.origin in self._histories:
            return self._ask_client(asked)
        page = self.tail.read(terms)
        self._note_progress((back[0], message.feed), terms, page)
        return self._read_from_disk(asked) if page is None else self._hand_over(Answered(asked, page, self.tail.routed))

    def page_read(self, message: PageRead, sender: NodeId) -> list[Act]:
        """Take in a page, or pass it on to the broker that asked for it."""
        if not self.is_next_hop(message.origin, sender):
            return []
        if not message.path:
            self.feeds.requests.read(message.request, message.origin, message.page, message.edge)
            return self.moved()
        *path, back = message.path
        if back not in self.topology.neighbours:
            return []
        return [Say(back, PageRead(message.origin, message.request, message.page, message.edge, tuple(path)))]

    def log_read(self, number: int, page: Slice) -> list[Act]:
        """Take in a page that was read from disk; what was routed meanwhile is not in it."""
        asked, end = self._reading.pop(number)
        if end < self.tail.routed and not self.tail.is_history:
            page = replace(page, end=end)
        return [*self._hand_over(Answered(asked, page, max(self.tail.routed, page.upto))), *self.moved()]

    def _hand_over(self, answered: Answered) -> list[Act]:
        """Take in a page, or answer another broker: with several messages if what was picked is too large for one."""
        asked, page, edge = answered
        if not isinstance(asked, FetchPage):
            self.feeds.requests.read(asked.request, asked.origin, page, edge)
            return []
        *path, back = asked.path
        if back not in self.topology.neighbours:
            return []
        parts = [page] if asked.terms.pick is None else parts_of(page)
        return [Say(back, PageRead(asked.origin, asked.request, part, edge, tuple(path))) for part in parts]

    # --- histories of clients ---

    def host(self, origin: Origin, offered: Offered) -> list[Act]:
        """Begin to ask a client of this broker for the past, or go on with another filter."""
        is_new = origin not in self._histories
        self._histories.offer(origin, offered)
        if not is_new:
            return []
        self.feeds.found(origin, is_history=True)
        return [*self.topology.host(origin)]

    def unhost(self, origin: Origin) -> list[Act]:
        """End a history: its client has withdrawn it, or is not there."""
        if origin not in self._histories:
            return []
        self._histories.withdraw(origin)
        self.feeds.lost(origin)
        return [*self.topology.unhost(origin), *self.moved()]

    def recalled(self, message: Recalled, client: NodeId) -> list[Act]:
        """Take in what a client answers."""
        outcome = self._histories.recalled(message, client, self.feeds.giving.now)
        return [*self._told(outcome), *self.moved()]

    def _ask_client(self, asked: WantedPage) -> list[Act]:
        return self._told(self._histories.ask(asked, self.feeds.giving.now))

    def _told(self, outcome: Say | Answered | None) -> list[Act]:
        """Ask the client, or hand over what it has answered."""
        if outcome is None:
            return []
        return [outcome] if isinstance(outcome, Say) else self._hand_over(outcome)

    def _note_progress(self, feed: tuple[NodeId, int], terms: ReadTerms, page: Slice | None) -> None:
        """Note where another broker reads; a feed that has come to the end gets live events."""
        if feed[1] and (page is None or page.upto < self.tail.routed):
            self._lagging[feed] = terms.start, self.feeds.giving.now
        else:
            self._lagging.pop(feed, None)

    def edge(self, origin: Origin) -> int:
        """Return where a log ends, as far as this broker knows."""
        if origin == self._own:
            return self.tail.routed
        main = self.feeds.roster.main.get(origin)
        return max(self._frontiers.get(origin, 0), 0 if main is None else main.cursor)

    def read_up_to(self) -> dict[Origin, int]:
        """Return how far each log was read that can be reached and from which all that comes is live."""
        return {origin: feed.cursor for origin, feed in self.feeds.roster.main.items() if feed.is_live}

    def is_pressed(self, now: float) -> bool:
        """Return whether publishers have to wait: a reader that makes progress may lose events otherwise.

        One that has taken or read nothing for `stalled` seconds is not waited for. If many lag, they are looked at now
        and then.
        """
        far = self.tail.far_before(FAR) if self.tail.is_whole else 0
        if not far:
            return False
        lagging = self.feeds.roster.apart(self._own)
        if len(lagging) > MANY and 0 <= now - self._looked_at[0] < LOOK_EVERY:
            return self._looked_at[1]
        since, readers = now - self.limits.stalled, self.feeds.readers
        self._lagging = {feed: one for feed, one in self._lagging.items() if one[1] > since}
        is_pressed = any(start < far for start, _ in self._lagging.values()) or any(
            feed.cursor < far and feed.is_fetching and readers[key].moved_at > since for key, feed in lagging.items()
        )
        self._looked_at = now, is_pressed
        return is_pressed

    def _read_from_disk(self, asked: WantedPage) -> list[Act]:
        number = next(self._numbers)
        self._reading[number] = asked, self.tail.routed
        return [ReadLog(number, self._until_now(asked.terms), self.tail.routed)]

    def _until_now(self, terms: ReadTerms) -> ReadTerms:
        """Let a time that is still to come mean now: more may be accepted before that time until the disk is read."""
        start, since = terms.start, terms.since
        if since is None or self.tail.latest >= since:
            return terms
        if terms.pick is not None:
            return ReadTerms(max(start, self.tail.routed), terms.filters, terms.limit, None, terms.pick)
        return ReadTerms(start, terms.filters, terms.limit, min(since, int(self.feeds.giving.now * MICROS)))

    def ask_all(self, then: Callable[[list[str]], None]) -> list[Act]:
        """Ask all brokers within reach a question that travels after the routing entries.

        When they have answered, call `then` with those that have not, in words.
        """
        waiting = dict.fromkeys([one for one in self.feeds.reachable if one != self._own])  # in a fixed order
        missing = self.feeds.replaying.out_of_reach()

        def answered(origin: Origin, reason: str = "") -> None:
            missing.extend([reason] if reason else [])
            waiting.pop(origin, None)
            if not waiting:
                then(missing)

        acts: list[Act] = []
        for origin in list(waiting):
            when_read = partial(_whatever_is_read, partial(answered, origin))
            told = WhenNotRead(lost=partial(answered, origin, out_of_reach(origin)))
            request = self.feeds.requests.new(origin, when_read, told)
            acts += self._read(PageRequest(origin, request, ReadTerms(ENDLESS, (), 0)))
        if not acts:
            then(missing)
        return acts

    # --- readers ---

    def moved(self) -> list[Act]:
        """Return the reads that are due. Pages in memory are read at once, as many as one turn allows."""
        acts: list[Act] = []
        while reads := self.feeds.next_reads():
            for read in reads:
                acts += self._read(read)
        return [*acts, Later(self.feeds.giving.now)] if self.feeds.has_due else acts

    def look_for_late(self) -> list[Act]:
        """Send requests again that were not answered in time, unless their readers go on without the answer."""
        given_up = [act for one in self._histories.late(self.feeds.giving.now) for act in self._hand_over(one)]
        again = [act for read in self.feeds.requests.late() for act in self._read(read)]
        return [*given_up, *again, *self.moved()]

    def shift(self, by: float) -> None:
        """Move all times, as the clock was."""
        self.feeds.requests.shift(by)
        self.meeting.shift(by)
        self.feeds.giving.repeats.shift(by)
        self._histories.shift(by)
        self._lagging = {feed: (start, at + by) for feed, (start, at) in self._lagging.items()}
        for reader in self.feeds.readers.values():
            reader.moved_at += by

    def _read(self, read: PageRequest) -> list[Act]:
        self.feeds.requests.sent(read)
        if read.origin in self._histories:
            return self._ask_client(read)
        if read.origin != self._own:
            hop = self.topology.next_hop(read.origin)
            assert hop is not None, f"{read.origin} is fetched, and has no next hop"
            return [Say(hop, read.message())]
        page = self._read_wanted(read) or self.tail.read(read.terms)
        if page is None:
            return self._read_from_disk(read)
        self.feeds.requests.read(read.request, self._own, page, self.tail.routed)
        return []

    def _read_wanted(self, read: PageRequest) -> Slice | None:
        """Read events of which it is known who wanted them; None if that is not known of all."""
        readers, start = read.readers, read.terms.start
        if not readers or any(start < reader.known_from for reader in readers):
            return None
        return self.tail.read_wanted(start, read.terms.limit, readers)


def _whatever_is_read(told: Callable[[], None], number: int) -> Callable[[Slice, int], None]:
    """Return a function that takes in any page, and only tells that it came."""
    return lambda page, edge: told()
