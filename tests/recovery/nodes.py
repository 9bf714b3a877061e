"""A broker of the random worlds: the real router and the real recovery, with disks and links that may fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any, Final

from vestnik import Event, Filter
from vestnik.recovery.feeds import Start
from vestnik.recovery.pages import LogEntry, read_page
from vestnik.recovery.reader import Given, Reader, ReaderKey
from vestnik.recovery.recovery import Act, ReadLog, Recovery
from vestnik.recovery.tail import Tail
from vestnik.recovery.topology import Say
from vestnik.routing.propagation import Source
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.wire.messages import AdminA, AdminS, Message
from vestnik.wire.origins import (
    ENDLESS,
    FetchPage,
    Frontiers,
    Origin,
    OriginGone,
    OriginHere,
    OriginOffers,
    PageRead,
    ReadTerms,
    Routed,
    Slice,
    Span,
)

if TYPE_CHECKING:
    from recovery.worlds import Client, Link, World

HEARTBEAT: Final = 1.0
LEASE: Final = 3.5
SKEW: Final = 1.0
"""Seconds by which clocks may differ."""
WINDOW: Final = 4
RESERVED: Final = 8
"""Offsets that are reserved on disk at a time."""
EVENT_SIZE: Final = 100
Range = tuple[int, int]


@cache
def within(wanted: Range) -> Filter:
    return Filter.parse(f"v BETWEEN {wanted[0]} AND {wanted[1]}")


def micros(seconds: float) -> int:
    return int(seconds * 1e6)


class Disk:
    """What survives a crash of a broker: its log and its durable subscriptions."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.log: list[LogEntry] = []
        self.ever: list[LogEntry] = []  # what was appended, for the checker
        self.acknowledged: set[int] = set()  # offsets
        self.start = 0
        self.synced = 0  # everything below this offset is durable
        self.reserved = RESERVED
        self.holes: list[Span] = []
        self.dropped_until = -1
        self.subscriptions: dict[str, dict[str, Any]] = {}

    def entries(self, span: Span) -> Iterator[LogEntry]:
        return (entry for entry in self.log if span.first <= entry.offset < span.end)

    def offset_since(self, time: int) -> int:
        if self.dropped_until >= time:
            return 0
        before = [entry.offset + 1 for entry in self.log if entry.offset < self.synced and entry.time < time]
        return max(before, default=self.start)

    def read(self, terms: ReadTerms) -> Slice:
        return read_page(self, terms, self.synced)

    def crash(self, damage: int) -> None:
        """Lose what was not synced; with `damage`, also some of what was, which leaves a hole."""
        end = max(self.start, self.synced - damage)
        self.log = [entry for entry in self.log if entry.offset < end]
        self.reserved = max(self.reserved, self.synced)
        if damage:
            first = min([end, *[hole.first for hole in self.holes if hole.end >= end]])
            self.holes = [*[hole for hole in self.holes if hole.end < end], Span(first, self.reserved)]
        self.synced = self.reserved

    def drop(self, keep: int) -> None:
        """Let retention drop all but the last events."""
        kept = [entry for entry in self.log if entry.offset >= self.synced - keep]
        if len(kept) < len(self.log):
            last = self.log[len(self.log) - len(kept) - 1]
            self.log, self.start, self.dropped_until = kept, last.offset + 1, last.time


class Node:
    """One broker, which may be down. `is_durable` says whether it has a disk."""

    def __init__(self, world: World, name: str, is_durable: bool) -> None:
        self.world, self.name, self.is_durable = world, name, is_durable
        self.is_up = False
        self.life = 0
        self.skew = world.rng.uniform(-SKEW / 2, SKEW / 2)
        self.disk: Disk | None = None
        self.links: dict[str, tuple[Link, int]] = {}

    @property
    def clock(self) -> float:
        return self.world.now + self.skew

    # --- life ---

    def begin(self) -> None:
        self.is_up = True
        self.life += 1
        if self.disk is None or not self.is_durable:
            self.disk = Disk(Origin(self.name, self.life))
            self.world.disks[self.disk.origin] = self.disk
        disk = self.disk
        self.origin = disk.origin
        self.links, self.heard = {}, dict[str, float]()
        strategy = make_strategy(self.world.strategy)
        self.router = AdvertisingRouter(strategy) if self.world.advertises else Router(strategy)
        room = self.world.tail * EVENT_SIZE if self.is_durable else 1 << 30
        self.tail = Tail(room, disk.synced, is_whole=not self.is_durable)
        self.recovery = Recovery(self.origin, self.tail, self.matching)
        self.known = {entry.event.id: entry for entry in disk.log}
        self.unsynced: list[LogEntry] = []
        self.unanswered: list[tuple[LogEntry, Any]] = []
        self.latest = disk.log[-1].time if disk.log else 0
        self.numbers = count(self.life * 1000)
        self.offers: dict[str, list[int]] = {}
        self.clients: dict[ReaderKey, Client] = {}
        self.since: dict[ReaderKey, int] = {}
        for name, kept in list(disk.subscriptions.items()):
            self.subscribe(
                self.world.readers[name], kept["filter"], kept["since"], Start(kept["cursors"]), is_here=False
            )
        self.tick(self.life)

    def crash(self, damage: int = 0) -> None:
        assert self.disk is not None
        self.is_up = False
        if self.is_durable:
            self.disk.crash(damage)
        for link in self.world.links_of(self.name):
            link.cut()
        for client in self.world.clients:
            client.lose(self.name)

    def tick(self, life: int) -> None:
        if not self.is_up or life != self.life:
            return
        for neighbour in list(self.links):
            if self.world.now - self.heard[neighbour] > LEASE:
                self.lapse(neighbour)
        self.do(self.recovery.report())
        if self.world.rng.random() < 0.5:
            for key in list(self.clients):
                self.store(key)
        for key, client in self.clients.items():
            if self.recovery.feeds.readers[key].is_here and self.world.rng.random() < 0.3:
                client.push(self.recovery.feeds.cursors(key))
        self.world.after(HEARTBEAT, self.tick, life)

    def lapse(self, neighbour: str) -> None:
        """Cut a link over which nothing came for a lease."""
        link, session = self.links[neighbour]
        link.cut(back=self.world.rng.uniform(0.2, 2))
        self.link_down(neighbour, session)

    # --- what it does ---

    def do(self, acts: Iterable[Act]) -> None:
        """Tell neighbours what is wanted first, and then perform."""
        acts = list(acts)
        for neighbour, told in self.router.flush(0.0):
            self.send(neighbour, told)
        for act in acts:
            match act:
                case Say(to, message):
                    self.send(to, message)
                case Given():
                    self.clients[act.reader].push(act)
                case ReadLog(number, terms):
                    self.world.after(self.world.rng.uniform(0, 0.3), self.read, self.life, number, terms)

    def read(self, life: int, number: int, terms: ReadTerms) -> None:
        if self.is_up and life == self.life and self.disk is not None:
            self.do(self.recovery.log_read(number, self.disk.read(terms)))

    def send(self, to: str, message: Message) -> None:
        if to in self.links:
            link, session = self.links[to]
            link.send(self.name, session, message)

    # --- links ---

    def link_up(self, link: Link, neighbour: str, session: int) -> None:
        if neighbour in self.links:
            self.link_down(neighbour, self.links[neighbour][1])
        self.links[neighbour], self.heard[neighbour] = (link, session), self.world.now
        self.router.connect(neighbour)
        self.do(self.recovery.link_up(neighbour))

    def link_down(self, neighbour: str, session: int) -> None:
        if self.is_up and neighbour in self.links and self.links[neighbour][1] == session:
            del self.links[neighbour]
            self.router.disconnect(neighbour)
            self.do(self.recovery.link_down(neighbour))

    def receive(self, sender: str, message: Message) -> None:
        self.heard[sender] = self.world.now
        match message:
            case AdminS() | AdminA():
                self.router.take(sender, message, 0.0)
                self.do(())
            case OriginHere():
                self.do(self.recovery.origin_here(message, sender))
            case OriginGone():
                self.do(self.recovery.origin_gone(message, sender))
            case OriginOffers():
                self.do(self.recovery.origin_offers(message, sender))
            case Routed(origin, events):
                for event in events if self.recovery.is_way(origin, sender) else ():
                    keys = self.route(origin, event, sender)
                    self.do(self.recovery.heard(origin, event, keys))
            case Frontiers():
                self.do(self.recovery.frontiers(message, sender))
            case FetchPage():
                self.do(self.recovery.fetch_page(message, sender))
            case PageRead():
                self.do(self.recovery.page_read(message, sender))

    # --- events ---

    def route(self, origin: Origin, event: Event, sender: str) -> list[ReaderKey]:
        """Send an event to the neighbours that want it; return the local readers that do."""
        targets = self.router.targets(event, sender)
        for neighbour in targets.neighbours:
            self.send(neighbour, Routed(origin, (event,)))
        return list(targets.subscriptions)

    def matching(self, event: Event) -> Iterable[ReaderKey]:
        return self.router.targets(event, self.name).subscriptions

    def publish(self, client: Any, id: str, value: int) -> None:
        assert self.disk is not None
        if id not in self.known:
            (offset,) = self.tail.accept(1)
            if offset >= self.disk.reserved:
                self.disk.reserved = offset + RESERVED
            self.latest = max(self.latest, micros(self.clock))
            event = Event("q", {"v": value}, source=client.name, id=id, time=micros(self.clock))
            entry = LogEntry(offset, self.latest, event.stamped(self.name, offset))
            self.known[id] = entry
            self.unsynced.append(entry)
            self.disk.ever.append(entry)
            self.world.accepted[self.origin, offset] = self.world.now
        self.unanswered.append((self.known[id], client))
        self.world.after(self.world.rng.uniform(0, 0.3), self.sync, self.life)

    def sync(self, life: int) -> None:
        if not self.is_up or life != self.life or self.disk is None:
            return
        unsynced, self.unsynced = self.unsynced, []
        for entry in unsynced:
            self.disk.log.append(entry)
            self.disk.synced = entry.offset + 1
            keys = self.route(self.origin, entry.event, "")
            self.do(self.recovery.routed(entry, EVENT_SIZE, keys))
        for entry, client in self.unanswered:
            self.disk.acknowledged.add(entry.offset)
            self.world.after(self.world.rng.uniform(0, 0.3), client.acknowledged, entry.event.id)
        self.unanswered = []

    def advertise(self, client: str, offered: Range) -> None:
        number = next(self.numbers)
        self.offers.setdefault(client, []).append(number)
        self.router.advertise(Source(client, str(number)), within(offered), inf)
        self.do(self.recovery.offer(number, within(offered)))

    def unadvertise(self, client: str) -> None:
        """Withdraw: from the tables, too, only when all is routed that was accepted under it."""
        if self.unsynced:
            life = self.life
            self.world.after(0.1, lambda: self.unadvertise(client) if self.is_up and life == self.life else None)
            return
        for number in self.offers.pop(client, ()):
            self.router.unadvertise(Source(client, str(number)))
            self.do(self.recovery.withdraw(number))

    # --- subscriptions ---

    def subscribe(
        self, client: Client, wanted: Range, since: int, start: Start, *, is_here: bool = True, **terms: Any
    ) -> None:
        key = client.key
        self.unsubscribe(key, is_moving=True)
        reader = Reader(key, within(wanted), since, WINDOW, **terms)
        reader.is_here = is_here
        self.clients[key], self.since[key] = client, since
        self.wanted = {**getattr(self, "wanted", {}), key: wanted}
        self.router.subscribe(Source(*key), within(wanted), inf)
        if is_here:
            client.push(dict(start.cursors or {}))
        self.do(self.recovery.begin(reader, start))

    def unsubscribe(self, key: ReaderKey, *, is_moving: bool = False) -> None:
        if key in self.clients:
            self.router.unsubscribe(Source(*key), self.recovery.feeds.readers[key].filter)
            del self.clients[key]
            if not is_moving:
                self.recovery.end(key)
                if self.disk is not None:
                    self.disk.subscriptions.pop(key[0], None)
                self.do(())

    def change(self, key: ReaderKey, wanted: Range) -> None:
        before = self.recovery.feeds.readers[key].filter
        self.clients[key].cut(self.recovery.feeds.cursors(key), wanted)
        self.wanted[key] = wanted
        self.router.subscribe(Source(*key), within(wanted), inf)
        if before != within(wanted):
            self.router.unsubscribe(Source(*key), before)
        self.do(self.recovery.change(key, within(wanted)))
        self.store(key)

    def took(self, key: ReaderKey, connection: int, number: int) -> None:
        if self.is_up and key in self.clients and self.clients[key].connection == connection:
            self.do(self.recovery.took(key, number))

    def stored(self, key: ReaderKey) -> dict[str, Any]:
        """Return what is kept of a durable subscription: what was not taken comes again."""
        cursors = self.recovery.feeds.cursors(key)
        for one in reversed(self.recovery.feeds.readers[key].in_flight):
            cursors[one.origin] = min(cursors.get(one.origin, one.offset), one.offset)
        return {"filter": self.wanted[key], "since": self.since[key], "cursors": cursors}

    def store(self, key: ReaderKey) -> None:
        if self.is_durable and self.disk is not None and self.clients[key].is_durable:
            self.disk.subscriptions[key[0]] = self.stored(key)

    @property
    def unfinished(self) -> list[str]:
        """The feeds of readers that are here and of origins that are up, and which are not LIVE."""
        feeds, up = self.recovery.feeds, {node.origin for node in self.world.nodes.values()}
        found = []
        for origin in up & feeds.roster.main.keys():
            for feed in feeds.roster.all(origin):
                if not feed.is_live and (feed.reader is None or feeds.readers[feed.reader].is_here):
                    found.append(repr(feed))
        return found


__all__ = ["ENDLESS", "SKEW", "Node", "Range", "micros", "within"]
