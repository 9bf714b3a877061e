"""What runs a broker core or a client session: hands it what arrives, and performs what it wants done.

A host is one life of its node. A node that crashes loses its host and all that was in it; a broker's next one is given
what was stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from vestnik.broker.effects import (
    Append,
    Appended,
    Effect,
    NotAppended,
    Note,
    Part,
    Past,
    Read,
    Send,
    Tick,
    Wake,
)
from vestnik.broker.selection import recollect
from vestnik.model.events import Event
from vestnik.model.times import MICROS
from vestnik.session.acts import Act, Alarm, Done, Hand, Lost, Missing, Say
from vestnik.session.session import Session
from vestnik.sim.kernel import Kernel
from vestnik.sim.links import Channel
from vestnik.trace import records
from vestnik.trace.records import Acknowledged, AnyRecord, Dropped, Notified, Published, Rejected, Sent, Vanished
from vestnik.wire.messages import Addressed, Answer, Forward, Message, NodeId, Notify, Publish, Recall, Recalled, Taken


class Core(Protocol):
    """All that the simulator needs of a broker."""

    def handle(self, message: Message, sender: NodeId, now: float) -> Iterable[Effect]: ...


class Entry(NamedTuple):
    """An event that is stored, when, and who published it."""

    time: float
    client: NodeId
    event: Event


class Disk:
    """What a broker has stored, in order: the position of an entry is its number, from 1. It outlives crashes.

    While it `fails`, nothing can be stored.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.fails = False

    @property
    def position(self) -> int:
        return len(self.entries)

    def stored(self) -> Iterator[Append]:
        return (Append(client, (event,)) for _, client, event in self.entries)

    def recall(self, what: Recall) -> Iterator[Recalled]:
        after, upto = max(what.after, 0), what.upto or self.position
        entries = enumerate(self.entries[after:upto], start=after + 1)
        taken = [Taken(at, int(entry.time * MICROS), entry.event) for at, entry in entries if entry.event.seq]
        return recollect(what, taken, upto)


class World:
    """What all hosts share: time, and whoever observes."""

    def __init__(self, kernel: Kernel, record: Callable[[AnyRecord], None], *, all_sent: bool) -> None:
        self.kernel = kernel
        self.record = record
        self.all_sent = all_sent
        self.sent: dict[type[Message], int] = {}

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
        case Forward(events) | Publish(events):
            return list(events)
        case Notify(deliveries) | Answer(kept=deliveries):
            return [delivery.event for delivery in deliveries if delivery.event is not None]
        case Addressed(body=Recalled(taken=taken)):
            return [one.event for one in taken]
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
    """`channels` lead to its neighbours and its clients; storing takes `disk_delay()` seconds; `part` ends a link."""

    def __init__(
        self,
        name: NodeId,
        world: World,
        core: Core,
        disk: Disk,
        disk_delay: Callable[[], float],
        part: Callable[[NodeId, NodeId], None],
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
        for effect in self._handle(message, sender, self._kernel.now):
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
        self.take(Tick(self.disk.position), self.name)

    def _perform(self, effect: Effect) -> None:
        world, now = self._world, self._kernel.now
        match effect:
            case Append():
                self._disk_free_at = max(self._disk_free_at, now + self._disk_delay())
                self._kernel.at(self._disk_free_at, self._stored, effect)
            case Read():
                self._kernel.at(now + self._disk_delay(), self._read, effect)
            case Wake(at):
                self._wake_at(at)
            case Part(neighbour):
                self._part(self.name, neighbour)
            case Note(event, _, reason):
                world.record(Dropped(now, self.name, event, reason))

    def _read(self, what: Read) -> None:
        if self.is_up:
            for found in self.disk.recall(what.recall):
                self.take(Past(what, found), self.name)

    def _stored(self, what: Append) -> None:
        """What is stored is published, if it need not wait for its time."""
        now = self._kernel.now
        if not self.is_up:
            return
        if self.disk.fails:
            self.take(NotAppended(what, "the disk has failed"), self.name)
            return
        for event in what.events:
            self.disk.entries.append(Entry(now, what.client, event))
            if event.seq is not None:
                self._world.record(Published(now, what.client, event))
        self.take(Appended(what), self.name)


class ClientHost(Host):
    """A client, with the way to its broker while it is connected."""

    def __init__(self, name: NodeId, world: World, session: Session) -> None:
        super().__init__(name, world)
        self.session = session
        self.channel: Channel | None = None

    def take(self, message: Message, sender: NodeId) -> None:
        self.perform(self.session.handle(message, self._kernel.now))

    def wake(self) -> None:
        if self.channel is not None:
            self.perform(self.session.wake(self._kernel.now))

    def perform(self, acts: Iterable[Act]) -> None:
        """Do what the session wants done. What it says while it is not connected is lost."""
        world, now = self._world, self._kernel.now
        for act in acts:
            match act:
                case Hand(event, numbers, replayed):
                    world.record(Notified(now, self.name, event, numbers, replayed))
                case Say(message):
                    self._say(message)
                case Alarm(at):
                    self._wake_at(at)
                case Done(Publish(events), reason, refused):
                    reasons = {refusal.id: refusal.reason for refusal in refused}
                    for event in events:
                        if reason or event.id in reasons:
                            world.record(Rejected(now, self.name, event, reason or reasons[event.id]))
                        else:
                            world.record(Acknowledged(now, self.name, event))
                case Lost(name, first, last):
                    world.record(records.Lost(now, self.name, name, first, last))
                case Missing(name, reason):
                    world.record(records.Missing(now, self.name, name, reason))

    def _say(self, message: Message) -> None:
        if self.channel is None:
            return
        world, kind = self._world, message.__class__
        world.sent[kind] = world.sent.get(kind, 0) + 1
        if world.all_sent:
            world.note_sent(self.name, self.channel.receiver, message)
        self.channel.send(message)
