"""What one broker did lately, for whoever asks why.

To note something costs next to nothing: what was handled is kept as it was, and looked through when somebody asks. Of
events, the last `EVENTS` are remembered, and fewer if they are large or went to very many; of all else, the last
`OTHERS`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from vestnik.broker.effects import (
    Append,
    Appended,
    Drained,
    Effect,
    Full,
    Gone,
    Lapsed,
    LinkDown,
    LinkUp,
    LogRead,
    NotAppended,
    Note,
    Send,
    Tick,
)
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.footprint import footprint
from vestnik.model.times import FOREVER
from vestnik.wire.messages import (
    Announce,
    Message,
    NodeId,
    Notify,
    Publish,
    Refused,
    Subscribe,
    Unsubscribe,
)
from vestnik.wire.origins import PageRead, Routed

EVENTS: Final = 5_000
OTHERS: Final = 1_000
BYTES: Final = 32 * 1024 * 1024
"""Memory for events and numbers. A single message that takes more is remembered until the next one comes."""
NUMBER: Final = 64
"""Bytes of a number that a notification has in one subscription."""
SAMPLE: Final = 8
"""Events of a message of which the memory is estimated."""


class Handled(NamedTuple):
    """A message that carried this number of `events`, of about `size` bytes, and what the broker did."""

    at: float
    sender: NodeId
    message: Message
    effects: Sequence[Effect]
    events: int
    size: int


class Sighting(NamedTuple):
    """What became of an event that was here: it was taken from a local client, or came from a neighbour.

    It went `onward` to neighbours, and to clients with these numberings and numbers; or it did not, for a reason.
    """

    at: float
    sender: NodeId
    event: Event
    taken: bool
    onward: tuple[NodeId, ...] = ()
    notified: tuple[tuple[NodeId, tuple[tuple[int, int], ...]], ...] = ()
    fate: str = ""  # dropped, refused, held, or unknown if it may be stored
    reason: str = ""


class Happening(NamedTuple):
    """Something that happened to a neighbour or a client."""

    at: float
    node: NodeId
    what: str


class Made(NamedTuple):
    """A subscription has had its filter since then; one that is `resumed` was there before, and not known here."""

    at: float
    filter: Filter
    leased: bool
    resumed: bool


class Ended(NamedTuple):
    """A subscription is over."""

    at: float
    client: NodeId
    name: str
    made: Made
    reason: str


class Chronicle:
    def __init__(self, now: float) -> None:
        self.begun = now
        self.since = now  # from when on events are remembered
        self.made: dict[NodeId, dict[str, Made]] = {}
        self.ended: deque[Ended] = deque(maxlen=OTHERS)
        self.links: deque[Happening] = deque(maxlen=OTHERS)
        self.clients: deque[Happening] = deque(maxlen=OTHERS)
        self.taken = self.passed = self.sent = 0  # events from clients and from neighbours, notifications
        self._handled: deque[Handled] = deque()
        self._count = 0
        self._size = 0

    def note(self, message: Message, sender: NodeId, effects: Sequence[Effect], now: float) -> None:
        """A broker was handed a message, and wants this done."""
        if isinstance(message, Appended):
            self.taken += len(message.what.events)
            self._keep(message, sender, effects, now, message.what.events)
        elif isinstance(message, Routed):
            self.passed += len(message.events)
            self._keep(message, sender, effects, now, message.events)
        elif isinstance(message, Publish):
            for effect in effects:
                if isinstance(effect, Append) and effect.refused:
                    self._keep(message, sender, effects, now, message.events)
        else:
            self._noticed(message, sender, effects, now)
            events = [event for event, _ in _events(message, effects)]
            if events and not any(isinstance(effect, Send) and effect.message is message for effect in effects):
                self._keep(message, sender, effects, now, events)  # it is not for another broker

    def _keep(
        self, message: Message, sender: NodeId, effects: Sequence[Effect], now: float, events: Sequence[Event]
    ) -> None:
        count = len(events)
        size = _size(events)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Notify):
                deliveries = effect.message.deliveries
                self.sent += len(deliveries)
                size += NUMBER * sum([len(delivery.numbers) for delivery in deliveries])
        self._handled.append(Handled(now, sender, message, effects, count, size))
        self._count += count
        self._size += size
        while (self._count > EVENTS or self._size > BYTES) and len(self._handled) > 1:
            oldest = self._handled.popleft()
            self.since = oldest.at
            self._count -= oldest.events
            self._size -= oldest.size

    def came(self, client: NodeId, now: float) -> None:
        """A client has connected."""
        self.clients.append(Happening(now, client, "connected"))

    def _noticed(self, message: Message, sender: NodeId, effects: Sequence[Effect], now: float) -> None:
        match message:
            case Subscribe(name, wanted, lease):
                made = self.made.get(sender, {})
                refused = any(isinstance(effect, Send) and isinstance(effect.message, Refused) for effect in effects)
                if not refused and (name not in made or made[name].filter != wanted):
                    resumed = name not in made and message.epoch != 0
                    self.made.setdefault(sender, made)[name] = Made(now, wanted, lease < FOREVER, resumed)
            case Unsubscribe(name):
                self._end(sender, name, "unsubscribed", now)
            case Gone(client):
                self.clients.append(Happening(now, client, "disconnected"))
                for name in [name for name, made in self.made.get(client, {}).items() if not made.leased]:
                    self._end(client, name, "its client disconnected, and it had no lease", now)
            case Full(client):
                self.clients.append(Happening(now, client, "did not take what it was sent"))
            case Drained(client):
                self.clients.append(Happening(now, client, "took all that it was sent"))
            case LinkUp(neighbour):
                self.links.append(Happening(now, neighbour, "up"))
            case LinkDown(neighbour):
                self.links.append(Happening(now, neighbour, "down"))
            case Tick():
                for effect in effects:
                    if isinstance(effect, Lapsed):
                        self._end(effect.client, effect.name, "its lease ended: it was not renewed", now)

    def _end(self, client: NodeId, name: str, reason: str, now: float) -> None:
        named = self.made.get(client, {})
        if name in named:
            self.ended.append(Ended(now, client, name, named.pop(name), reason))
        if not named:
            self.made.pop(client, None)

    # --- asked about ---

    def sightings(self, id: str, source: str | None = None) -> list[Sighting]:
        """What became of the events with this id, in order."""
        found: list[Sighting] = []
        for handled in self._handled:
            for event, taken in _events(handled.message, handled.effects):
                if event.id == id and (source is None or event.source == source):
                    found.append(_sighting(handled, event, taken))
        return found


def _events(message: Message, effects: Sequence[Effect]) -> Iterator[tuple[Event, bool]]:
    """The events in a message, and whether a local client published them; then those that had waited for it."""
    events = list(_carried(message))
    yield from events
    here = {(event.source, event.id) for event, _ in events}
    for effect in effects:
        if isinstance(effect, Send) and isinstance(effect.message, Notify):
            for delivery in effect.message.deliveries:
                if delivery.event is not None and (delivery.event.source, delivery.event.id) not in here:
                    yield delivery.event, False


def _size(events: Sequence[Event]) -> int:
    """Return the bytes that events take, roughly; of many, by a sample that nobody who publishes can foresee."""
    if not events:
        return 0
    step = -(-len(events) // SAMPLE)
    sample = events[hash(events[0]) % step :: step]
    return sum(map(footprint, sample)) * len(events) // len(sample)


def _carried(message: Message) -> Iterator[tuple[Event, bool]]:
    match message:
        case Appended(what) | NotAppended(what):
            yield from [(event, True) for event in what.events]
        case Publish(events):
            yield from [(event, True) for event in events]
        case Routed(_, events) | Announce(events):
            yield from [(event, False) for event in events]
        case LogRead(page=page) | PageRead(path=(), page=page):
            yield from [(event, False) for event in page.events]


def _sighting(handled: Handled, event: Event, taken: bool) -> Sighting:
    at, sender, message, effects = handled[:4]
    seen = Sighting(at, sender, event, taken)
    key = event.source, event.id
    match message:
        case Publish():
            refused = [
                r for effect in effects if isinstance(effect, Append) for r in effect.refused if (r.source, r.id) == key
            ]
            return seen._replace(fate="refused", reason=refused[0].reason) if refused else seen._replace(fate="taken")
        case NotAppended(what, reason, unknown):
            return seen._replace(sender=what.client, fate="unknown" if unknown else "refused", reason=reason)
        case Appended(what):
            seen = seen._replace(sender=what.client, fate="held" if event.seq is None else "")
        case Routed() | Announce():
            pass
        case _:
            seen = seen._replace(fate="replayed")
    onward: list[NodeId] = []
    notified: list[tuple[NodeId, tuple[tuple[int, int], ...]]] = []
    for effect in effects:
        match effect:
            case Send(to, Routed(_, events)) if any((e.source, e.id) == key for e in events):
                onward.append(to)
            case Send(to, Notify(deliveries)):
                notified += [(to, d.numbers) for d in deliveries if d.event and (d.event.source, d.event.id) == key]
            case Note(dropped, _, reason) if (dropped.source, dropped.id) == key:
                seen = seen._replace(fate="dropped", reason=reason)
    return seen._replace(onward=tuple(onward), notified=tuple(notified))
