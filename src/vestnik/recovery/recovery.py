"""A broker's part in recovery: its own log, the ways to others, and the feeds of its clients' subscriptions.

The broker hands over what it hears, after it has told its neighbours what it wants: a fetch must not overtake the
routing entries that it proves. Each method returns what is to be done, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import NamedTuple, TypeAlias

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.recovery.feeds import Feeds, Start
from vestnik.recovery.pages import LogEntry
from vestnik.recovery.reader import Given, Reader, ReaderKey
from vestnik.recovery.reads import PageRequest
from vestnik.recovery.tail import Tail
from vestnik.recovery.topology import Rerouted, Say, Topology
from vestnik.wire.messages import NodeId
from vestnik.wire.origins import (
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


class ReadLog(NamedTuple):
    """Read a page of this broker's own log from disk. It comes back to `log_read` with the same number."""

    number: int
    terms: ReadTerms


Act: TypeAlias = Say | Given | ReadLog


class Recovery:
    """`own` is the log of this broker, whose end is in memory as `tail`. `matching` finds readers of an event."""

    def __init__(self, own: Origin, tail: Tail, matching: Callable[[Event], Iterable[ReaderKey]]) -> None:
        self.tail = tail
        self.topology = Topology(own)
        self.feeds = Feeds(own, tail.routed, matching)
        self._own = own
        self._frontiers: dict[Origin, int] = {}  # of others, that neighbours have to be told
        self._numbers = count(1)
        self._reading: dict[int, FetchPage | PageRequest] = {}
        self._offers: dict[int, Filter] = {}
        self._withdrawn: list[tuple[int, int]] = []  # offers, and up to where all must be routed before

    # --- links ---

    def link_up(self, neighbour: NodeId) -> list[Act]:
        return [*self.topology.link_up(neighbour)]

    def link_down(self, neighbour: NodeId) -> list[Act]:
        return self._rerouted(self.topology.link_down(neighbour))

    def origin_here(self, message: OriginHere, sender: NodeId) -> list[Act]:
        """Handle an origin that can be reached. A later log of the same broker supersedes the earlier ones."""
        origin = message.origin
        for known in self.feeds.roster.logs_of(origin.broker):
            if known.log < origin.log:
                self.feeds.superseded(known)
        return self._rerouted(self.topology.here(sender, origin, message.offers))

    def origin_gone(self, message: OriginGone, sender: NodeId) -> list[Act]:
        return self._rerouted(self.topology.gone(sender, message.origin))

    def origin_offers(self, message: OriginOffers, sender: NodeId) -> list[Act]:
        before, told = self.topology.offered(sender, message.origin, message.offers)
        if before is not None:
            self.feeds.offered(message.origin, before, message.offers)
        return [*told, *self._moved()]

    def _rerouted(self, rerouted: Rerouted) -> list[Act]:
        for origin in rerouted.lost:
            self._frontiers.pop(origin, None)
            self.feeds.lost(origin)
        for origin in rerouted.found:
            if not self.feeds.is_over(origin):
                self.feeds.found(origin)
        return [*rerouted.told, *self._moved()]

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

    def is_way(self, origin: Origin, sender: NodeId) -> bool:
        """Return whether events, frontiers and pages of an origin count if a neighbour sends them."""
        return self.topology.way(origin) == sender

    def routed(self, entry: LogEntry, size: int, wanting: Iterable[ReaderKey]) -> list[Act]:
        """Handle an event of this broker that is stored and was sent to the neighbours that want it."""
        self.tail.extend(entry, size)
        self.feeds.live(self._own, entry.event, wanting)
        return [*self._offered(), *self._moved()]

    def heard(self, origin: Origin, event: Event, wanting: Iterable[ReaderKey]) -> list[Act]:
        """Handle a live event that came by the way of its origin."""
        self.feeds.live(origin, event, wanting)
        return self._moved()

    def frontiers(self, message: Frontiers, sender: NodeId) -> list[Act]:
        for origin, offset in message.offsets:
            if self.is_way(origin, sender):
                self._frontiers[origin] = max(offset, self._frontiers.get(origin, 0))
                self.feeds.frontier(origin, offset)
        return []

    def report(self) -> list[Act]:
        """Tell all neighbours how far each log was sent to them; call this now and then."""
        told = {**self._frontiers, self._own: self.tail.routed}
        self._frontiers = {}
        said: list[Act] = []
        for neighbour in self.topology.neighbours:
            offsets = [(one, offset) for one, offset in told.items() if self.topology.way(one) != neighbour]
            said.append(Say(neighbour, Frontiers(tuple(offsets))))
        return said

    # --- pages ---

    def fetch_page(self, message: FetchPage, sender: NodeId) -> list[Act]:
        """Read a page of the own log, or pass the request on to its origin."""
        back = (*message.path, sender)
        if message.origin != self._own:
            way = self.topology.way(message.origin)
            passed = FetchPage(message.origin, message.request, message.terms, back)
            return [] if way is None or way == sender else [Say(way, passed)]
        asked = FetchPage(message.origin, message.request, message.terms, back)
        page = self.tail.read(message.terms)
        return self._read_from_disk(asked) if page is None else [self._answer(asked, page)]

    def page_read(self, message: PageRead, sender: NodeId) -> list[Act]:
        """Take in a page, or pass it on to the broker that asked for it."""
        if not self.is_way(message.origin, sender):
            return []
        if not message.path:
            self.feeds.page(message.request, message.page, message.edge)
            return self._moved()
        *path, back = message.path
        if back not in self.topology.neighbours:
            return []
        return [Say(back, PageRead(message.origin, message.request, message.page, message.edge, tuple(path)))]

    def log_read(self, number: int, page: Slice) -> list[Act]:
        """Take in a page that was read from disk; what was routed meanwhile is not in it."""
        asked = self._reading.pop(number)
        if isinstance(asked, FetchPage):
            return [self._answer(asked, page)] if asked.path[-1] in self.topology.neighbours else []
        self.feeds.page(asked.request, page, self.tail.routed)
        return self._moved()

    def _answer(self, asked: FetchPage, page: Slice) -> Say:
        *path, back = asked.path
        return Say(back, PageRead(self._own, asked.request, page, self.tail.routed, tuple(path)))

    def _read_from_disk(self, asked: FetchPage | PageRequest) -> list[Act]:
        number = next(self._numbers)
        self._reading[number] = asked
        return [ReadLog(number, asked.terms)]

    # --- readers ---

    def begin(self, reader: Reader, start: Start) -> list[Act]:
        self.feeds.begin(reader, start)
        return self._moved()

    def end(self, key: ReaderKey) -> None:
        self.feeds.end(key)

    def change(self, key: ReaderKey, wanted: Filter) -> list[Act]:
        self.feeds.change(key, wanted)
        return self._moved()

    def took(self, key: ReaderKey, number: int) -> list[Act]:
        self.feeds.took(key, number)
        return self._moved()

    def _moved(self) -> list[Act]:
        """Return what readers are given, and the reads that are due. What is in memory is read at once."""
        acts: list[Act] = []
        while reads := self.feeds.due_reads():
            for read in reads:
                if read.origin != self._own:
                    way = self.topology.way(read.origin)
                    assert way is not None, f"{read.origin} is fetched, and there is no way to it"
                    acts.append(Say(way, FetchPage(*read)))
                elif (page := self.tail.read(read.terms)) is not None:
                    self.feeds.page(read.request, page, self.tail.routed)
                else:
                    acts += self._read_from_disk(read)
        given, self.feeds.given = self.feeds.given, []
        return [*given, *acts]
