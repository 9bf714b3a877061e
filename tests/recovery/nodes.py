"""A broker of the random worlds: the real core, with disks, links and clients that may fail."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from recovery.disks import Disk
from recovery.links import Connection, Link
from vestnik import Filter
from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.effects import (
    Append,
    Appended,
    Effect,
    Gone,
    LinkDown,
    LinkUp,
    LogRead,
    NotAppended,
    Part,
    ReadLog,
    Send,
    Tick,
    Wake,
)
from vestnik.model.times import FOREVER, MICROS
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.wire.messages import Accepted, Message, Ping, Publish, Stored, Subscribe, Took, Unsubscribe
from vestnik.wire.origins import Origin

if TYPE_CHECKING:
    from recovery.worlds import World

EPOCH: Final = 1000.0
"""What clocks say when a world begins."""
HEARTBEAT: Final = 1.0
LEASE: Final = 3.5
SKEW: Final = 1.0
"""Seconds by which clocks may differ."""
EVENT_SIZE: Final = 270
Range = tuple[int, int]


@cache
def within(wanted: Range) -> Filter:
    return Filter.parse(f"v BETWEEN {wanted[0]} AND {wanted[1]}")


class Numbering:
    """What the checker knows of one numbering of a subscription: its start, and its filters from where on."""

    def __init__(self, message: Subscribe, at: float, clock: float) -> None:
        self.epoch = message.afresh
        self.has_cursors = bool(message.seen)
        self.at, self.clock = at, int(clock * MICROS)
        self.made = at - (clock - message.made / MICROS) if message.made > 0 else at  # maybe by an earlier numbering
        self.settled_at = FOREVER
        self.filters: list[tuple[dict[str, float], Filter]] = [({}, message.filter)]

    def filter_at(self, log: str, offset: int) -> Filter:
        wanted = self.filters[0][1]
        for cursors, later in self.filters[1:]:
            if cursors.get(log, 0) <= offset:
                wanted = later
        return wanted


class Node:
    """One broker, which may be down. `is_durable` says whether it has a disk."""

    def __init__(self, world: World, name: str, is_durable: bool) -> None:
        self.world, self.name, self.is_durable = world, name, is_durable
        self.is_up = False
        self.life = 0
        self.skew = world.rng.uniform(-SKEW / 2, SKEW / 2)
        self.failing = 0.0  # until when the disk stores nothing
        self.links: dict[str, tuple[Link, int]] = {}
        self.heard: dict[str, float] = {}
        self.connections: dict[str, Connection] = {}

    @property
    def clock(self) -> float:
        return EPOCH + self.world.now + self.skew

    # --- life ---

    def begin(self) -> None:
        self.is_up = True
        self.life += 1
        if self.life == 1 or not self.is_durable:
            self.disk = Disk(Origin(self.name, self.life))
            self.world.disks[str(self.disk.origin)] = self.disk
        self.links, self.heard, self.connections = {}, {}, {}
        self._unsynced: list[Append] = []
        self._published: dict[int, Publish] = {}
        self._settling: dict[int, Numbering] = {}
        strategy = make_strategy(self.world.strategy)
        router = AdvertisingRouter(strategy) if self.world.advertises else Router(strategy)
        disk, room = self.disk, self.world.tail * EVENT_SIZE
        log = OwnLog(disk.origin.log, disk.synced, disk.latest, room, is_whole=not self.is_durable)
        self.core = BrokerCore(self.name, router, self.world.sweep, disk.stored, log, skew=SKEW)
        self.do(Tick(), self.name)
        self._beat(self.life)

    def crash(self, damage: int = 0) -> None:
        self.is_up = False
        if self.is_durable:
            self.disk.crash(damage)
        for link in self.world.links_of(self.name):
            link.cut()
        for client in self.world.clients:
            client.lose(self.name)

    def _is_alive(self, life: int) -> bool:
        return self.is_up and life == self.life

    def _beat(self, life: int) -> None:
        """Let neighbours hear something, and cut links over which nothing came for a lease."""
        if not self._is_alive(life):
            return
        for neighbour in list(self.links):
            if self.world.now - self.heard[neighbour] > LEASE:
                self.lapse(neighbour)
            else:
                self._send(neighbour, Ping())
        self.world.after(HEARTBEAT, self._beat, life)

    def lapse(self, neighbour: str) -> None:
        link, session = self.links[neighbour]
        link.cut(back=self.world.rng.uniform(0.2, 2))
        self.link_down(neighbour, session)

    # --- what it does ---

    def do(self, message: Message, sender: str) -> None:
        self.perform(self.core.handle(message, sender, self.clock))

    def perform(self, effects: list[Effect]) -> None:
        after, rng = self.world.after, self.world.rng
        for effect in effects:
            match effect:
                case Send(to, message):
                    self._send(to, message)
                case Append():
                    self.disk.reserve(effect, self.world.now)
                    self._unsynced.append(effect)
                    after(rng.uniform(0, 0.3), self._sync, self.life)
                case ReadLog():
                    after(rng.uniform(0, 0.3), self._read, self.life, effect)
                case Wake(at):
                    after(max(0.0, at - self.clock) + 1e-6, self._wake, self.life)  # not before, by rounding
                case Part(neighbour) if neighbour in self.links:
                    self.lapse(neighbour)

    def _send(self, to: str, message: Message) -> None:
        if to in self.links:
            link, session = self.links[to]
            link.send(self.name, session, message)
        elif to in self.connections:
            self._note(message)
            self.connections[to].send(message)
        elif isinstance(message, Stored):
            self._note(message)

    def _note(self, message: Message) -> None:
        """Note what a client is promised."""
        if isinstance(message, Stored) and message.request in self._published:
            refused = {(one.source, one.id) for one in message.refused}
            for event in self._published.pop(message.request).events:
                if (event.source, event.id) not in refused and not self.disk.acknowledge(event):
                    self.world.blame(f"{self.name} acknowledges {event.id}, and has not stored it")
        elif isinstance(message, Accepted) and message.request in self._settling:
            self._settling.pop(message.request).settled_at = self.world.now

    def _sync(self, life: int) -> None:
        """Store what was appended until now; a disk that fails stores nothing."""
        if not self._is_alive(life):
            return
        unsynced, self._unsynced = self._unsynced, []
        for what in unsynced:
            if (what.events or what.repeats) and self.world.now < self.failing:
                self.do(NotAppended(what, "the disk is full"), self.name)
            else:
                self.disk.append(what)
                self.do(Appended(what), self.name)

    def _read(self, life: int, what: ReadLog) -> None:
        if self._is_alive(life):
            self.do(LogRead(what.number, self.disk.read(what.terms, what.end)), self.name)

    def _wake(self, life: int) -> None:
        if self._is_alive(life):
            self.do(Tick(), self.name)

    # --- links ---

    def link_up(self, link: Link, neighbour: str, session: int) -> None:
        if neighbour in self.links:
            self.link_down(neighbour, self.links[neighbour][1])
        self.links[neighbour], self.heard[neighbour] = (link, session), self.world.now
        self.do(LinkUp(neighbour), self.name)

    def link_down(self, neighbour: str, session: int) -> None:
        if self.is_up and neighbour in self.links and self.links[neighbour][1] == session:
            del self.links[neighbour]
            self.do(LinkDown(neighbour), self.name)

    def receive(self, sender: str, message: Message) -> None:
        self.heard[sender] = self.world.now
        if not isinstance(message, Ping):
            self.do(message, sender)

    # --- clients ---

    def connected(self, connection: Connection) -> None:
        if connection.client in self.connections:
            self.do(Gone(connection.client), self.name)
        self.connections[connection.client] = connection

    def disconnected(self, connection: Connection) -> None:
        if self._is_alive(connection.life) and self.connections.get(connection.client) is connection:
            del self.connections[connection.client]
            self.do(Gone(connection.client), self.name)

    def hear(self, client: str, message: Message) -> None:
        if isinstance(message, Publish):
            self._published[message.request] = message
        elif isinstance(message, Subscribe):
            self._note_numbering(client, message)
        self.do(message, client)

    def _note_numbering(self, client: str, message: Subscribe) -> None:
        """Note for the checker where a numbering starts, and from where on it has another filter."""
        known = self.core.clients.get(client)
        before = None if known is None else known.subscriptions.get(message.name)
        if before is None or not before.goes_on_with(message):
            numbering = Numbering(message, self.world.now, self.clock)
            self.world.numberings[message.afresh] = numbering
            if message.settled:
                self._settling[message.request] = numbering
        elif before.filter != message.filter:
            self.do(Took(()), client)  # one that comes back is given what waits for it, still by the filter before
            feeds = self.core.recovery.feeds
            given = self._places((client, message.name)).items()
            over = [text for text, disk in self.world.disks.items() if feeds.roster.is_over(disk.origin)]
            cursors = {**{str(one): offset for one, offset in given}, **dict.fromkeys(over, FOREVER)}
            self.world.numberings[before.epoch].filters.append((cursors, message.filter))

    def _places(self, key: tuple[str, str]) -> dict[Origin, int]:
        """Return the offset in each log below which a reader is given nothing more, whatever its client knows."""
        feeds = self.core.recovery.feeds
        if feeds.replaying.picks(key):
            return {}
        found = [feeds.roster.of(key, origin) for origin in feeds.roster.origins(key)]
        return {feed.origin: feed.cursor for feed in found if feed is not None}

    def leave(self, client: str, name: str, life: int) -> None:
        """End a subscription of a client that is elsewhere by now."""
        if self._is_alive(life) and client not in self.connections and client in self.core.clients:
            self.do(Unsubscribe(name), client)
            self.do(Gone(client), self.name)

    @property
    def unfinished(self) -> list[str]:
        """The feeds of readers that are here and of origins that are up, and which are not LIVE."""
        feeds = self.core.recovery.feeds
        up = {node.core.origin for node in self.world.nodes.values()}
        missing = [f"{self.name} does not know {origin}" for origin in sorted(up - feeds.roster.main.keys())]
        return missing + [
            f"{feed} at {self.name}"
            for origin in up & feeds.roster.main.keys()
            for feed in feeds.roster.all(origin)
            if not feed.is_live and (feed.reader is None or feeds.readers[feed.reader].takes)
        ]
