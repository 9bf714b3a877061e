"""What runs a broker core or a client session: hands it what arrives, and performs what it wants done.

A host is one life of its node. A node that crashes loses its host and all that was in it; a broker's next one is given
what was stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple, Protocol

from vestnik.broker.core import OwnLog
from vestnik.broker.effects import (
    CYCLE,
    Append,
    Appended,
    Effect,
    LogRead,
    NotAppended,
    Note,
    Part,
    ReadLog,
    Send,
    Tick,
    Wake,
)
from vestnik.broker.stored import StoredEvent
from vestnik.model.events import Event
from vestnik.observe.client_records import records_of
from vestnik.observe.facts import Fact, Stored, facts_of
from vestnik.observe.recorder import event_records
from vestnik.recovery.pages import LogEntry, LogView, read_page
from vestnik.session.acts import Act, Alarm, Say
from vestnik.session.session import Session
from vestnik.sim.kernel import Kernel
from vestnik.sim.links import Channel
from vestnik.trace.records import AnyRecord, Dropped, Sent, Vanished
from vestnik.wire.messages import Accepted, Announce, Answer, Message, NodeId, Notify, Publish, Refused, Unknown
from vestnik.wire.origins import PageRead, ReadTerms, Routed, Slice, Span

TAIL: Final = 16 * 1024
"""Bytes of events that a broker keeps in memory: little, so that readers read disks, too."""
EVERYTHING: Final = 1 << 62
"""A number beyond all that an application was given."""


class Core(Protocol):
    """All that the simulator needs of a broker."""

    def handle(self, message: Message, sender: NodeId, now: float) -> Sequence[Effect]: ...


class Entry(NamedTuple):
    """An event that is stored at its offset, when it was accepted, and who published it."""

    offset: int
    time: int
    client: NodeId
    event: Event
    packed: bytes


class Disk(LogView):
    """What a broker has stored, in order of offset. It outlives crashes. While it `fails`, nothing can be stored."""

    def __init__(self) -> None:
        self.entries_stored: list[Entry] = []
        self.next = 1  # no offset before it is given again
        self.fails = False

    @property
    def begin(self) -> int:
        return 1

    @property
    def start(self) -> int:
        return 1

    @property
    def holes(self) -> tuple[Span, ...]:
        return ()

    @property
    def log(self) -> OwnLog:
        """The log with which the next life of its broker starts."""
        latest = self.entries_stored[-1].time if self.entries_stored else 0
        return OwnLog(next=self.next, latest=latest, room=TAIL, is_whole=False)

    def stored(self) -> Iterator[StoredEvent]:
        return (StoredEvent.of(entry.client, entry.event) for entry in self.entries_stored)

    def append(self, what: Append) -> None:
        for offset, (event, packed) in enumerate(zip(what.events, what.packed, strict=True), what.first):
            self.entries_stored.append(Entry(offset, what.time, what.client, event, packed))

    def entries(self, span: Span) -> Iterator[LogEntry]:
        first = bisect_left(self.entries_stored, span.first, key=lambda entry: entry.offset)
        for entry in islice(self.entries_stored, first, None):
            if entry.offset >= span.end:
                return
            if entry.event.seq is not None:
                yield LogEntry(entry.offset, entry.time, entry.packed)

    def offset_since(self, time: int) -> int:
        place = bisect_left(self.entries_stored, time, key=lambda entry: entry.time)
        return self.entries_stored[place - 1].offset + 1 if place else 1

    def why(self, gap: Span) -> str:
        return "it was dropped"

    def read(self, terms: ReadTerms, end: int) -> Slice:
        return read_page(self, terms, end)


class World:
    """What all hosts share: time, and whoever observes."""

    def __init__(self, kernel: Kernel, record: Callable[[AnyRecord], None], *, all_sent: bool) -> None:
        self.kernel = kernel
        self.record = record
        self.all_sent = all_sent
        self.sent: dict[type[Message], int] = {}

    def observe(self, broker: NodeId, facts: Sequence[Fact]) -> None:
        """Record what a broker alone knows: what it accepted, and what it dropped. Clients tell what they are given."""
        for fact in facts:
            if isinstance(fact, Stored | Note):
                for record in event_records(fact, broker, self.kernel.now):
                    self.record(record)

    def note_sent(self, sender: NodeId, receiver: NodeId, message: Message) -> None:
        keys = tuple([(event.source, event.id) for event in events_in(message)])
        self.record(Sent(self.kernel.now, sender, receiver, type(message).__name__, keys))

    def drop(self, node: NodeId, message: Message, reason: str) -> None:
        """What a message carries goes no further."""
        for event in events_in(message):
            self.record(Dropped(self.kernel.now, node, event, reason))

    def drop_on_way(self, channel: Channel, message: Message) -> None:
        self.drop(channel.sender, message, "lost on a link")
        if not events_in(message):
            self.record(Vanished(self.kernel.now, channel.sender, channel.receiver, type(message).__name__))


def events_in(message: Message) -> list[Event]:
    match message:
        case Routed(events=events) | Publish(events) | Announce(events):
            return list(events)
        case Notify(deliveries) | Answer(kept=deliveries):
            return [event for delivery in deliveries for event in delivery.events]
        case PageRead(page=page):
            return list(page.events)
    return []


class Host(ABC):
    """A node that is up."""

    def __init__(self, name: NodeId, world: World) -> None:
        self.name = name
        self.is_up = True
        self._world = world
        self._kernel = world.kernel
        self._alarms: set[float] = set()

    @abstractmethod
    def take(self, message: Message, sender: NodeId) -> None:
        """Handle what arrives."""

    @abstractmethod
    def wake(self) -> None:
        """Do what is due."""

    def _wake_at(self, time: float) -> None:
        if time not in self._alarms:
            self._alarms.add(time)
            self._kernel.wake(time, self._ring, time)

    def _ring(self, time: float) -> None:
        self._alarms.discard(time)
        if self.is_up:
            self.wake()


class BrokerHost(Host):
    """`channels` lead to its neighbours and its clients; storing takes `disk_delay()` seconds; `part` ends a link.

    Its last argument is whether to make the link again.
    """

    def __init__(
        self,
        name: NodeId,
        world: World,
        core: Core,
        disk: Disk,
        disk_delay: Callable[[], float],
        part: Callable[[NodeId, NodeId, bool], None],
    ) -> None:
        super().__init__(name, world)
        self.core = core
        self._part = part
        self.disk = disk
        self.channels: dict[NodeId, Channel] = {}
        self._disk_delay = disk_delay
        self._disk_free_at = 0.0
        self._handle = core.handle

    def take(self, message: Message, sender: NodeId) -> None:
        """Hand the core a message and do what it wants done."""
        world, channels = self._world, self.channels
        sent = world.sent
        effects = self._handle(message, sender, self._kernel.now)
        world.observe(self.name, facts_of(message, sender, effects))
        for effect in effects:
            if effect.__class__ is not Send:
                self._perform(effect)
                continue
            going = effect.message
            channel = channels.get(effect.to)
            if channel is None:
                world.drop(self.name, going, "there is no link")
                continue
            kind = going.__class__
            sent[kind] = sent.get(kind, 0) + 1
            if world.all_sent:
                world.note_sent(self.name, effect.to, going)
            channel.send(going)

    def wake(self) -> None:
        self.take(Tick(), self.name)

    def _perform(self, effect: Effect) -> None:
        now = self._kernel.now
        match effect:
            case Append():
                self.disk.next = max(self.disk.next, effect.end)
                self._disk_free_at = max(self._disk_free_at, now + self._disk_delay())
                self._kernel.at(self._disk_free_at, self._stored, effect)
            case ReadLog():
                self._kernel.at(now + self._disk_delay(), self._read, effect)
            case Wake(at):
                self._wake_at(at)
            case Part(neighbour, code=code):
                self._part(self.name, neighbour, code != CYCLE)

    def _read(self, what: ReadLog) -> None:
        if self.is_up:
            self.take(LogRead(what.number, self.disk.read(what.terms, what.end)), self.name)

    def _stored(self, what: Append) -> None:
        if not self.is_up:
            return
        if self.disk.fails:
            self.take(NotAppended(what, "the disk has failed"), self.name)
            return
        self.disk.append(what)
        self.take(Appended(what), self.name)


class ClientHost(Host):
    """A client, with the way to its broker while it is connected. While it is paused, it takes nothing."""

    def __init__(self, name: NodeId, world: World, session: Session) -> None:
        super().__init__(name, world)
        self.session = session
        self.channel: Channel | None = None
        self.is_paused = False
        self._untaken: list[tuple[Message, Channel | None]] = []

    def take(self, message: Message, sender: NodeId) -> None:
        if self.is_paused:
            self._untaken.append((message, self.channel))
        else:
            self._hear(message)

    def unpause(self) -> None:
        """Take what has come over the connection that there is."""
        self.is_paused = False
        untaken, self._untaken = self._untaken, []
        for message, channel in untaken:
            if channel is self.channel:
                self._hear(message)

    def _hear(self, message: Message) -> None:
        self.perform(self.session.handle(message, self._kernel.now))
        if isinstance(message, Notify | Answer | Accepted | Unknown | Refused):  # which may hand something over
            self.perform(self.session.took(dict.fromkeys(self.session.subscribed, EVERYTHING)))

    def wake(self) -> None:
        if self.channel is not None:
            self.perform(self.session.wake(self._kernel.now))

    def perform(self, acts: Iterable[Act]) -> None:
        """Do what the session wants done. What it says while it is not connected is lost."""
        record, now = self._world.record, self._kernel.now
        for act in acts:
            match act:
                case Say(message):
                    self._say(message)
                case Alarm(at):
                    self._wake_at(at)
                case _:
                    for one in records_of(act, self.name, now):
                        record(one)

    def _say(self, message: Message) -> None:
        if self.channel is None:
            return
        world, kind = self._world, message.__class__
        world.sent[kind] = world.sent.get(kind, 0) + 1
        if world.all_sent:
            world.note_sent(self.name, self.channel.receiver, message)
        self.channel.send(message)
