"""The recent past of one broker, to answer why.

Noting costs next to nothing: facts are kept as they are, and searched when somebody asks. The chronicle has the last
`EVENTS` events, or fewer if they are large or went to very many clients, and the last `OTHERS` of everything else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from vestnik.broker.effects import (
    Drained,
    Full,
    GapTold,
    Gone,
    LinkDown,
    LinkUp,
    Note,
    SubscriptionChanged,
    SubscriptionEnded,
    SubscriptionMade,
)
from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.footprint import footprint
from vestnik.model.times import MICROS
from vestnik.observe.facts import (
    ClientHere,
    Fact,
    Forwarded,
    Given,
    NotStored,
    PageTaken,
    Passed,
    PublicationRefused,
    Stored,
)
from vestnik.wire.messages import Gap, NodeId, each_of

EVENTS: Final = 5_000
OTHERS: Final = 1_000
BYTES: Final = 32 * 1024 * 1024
"""Memory for events and numbers. A single message that takes more is remembered until the next one comes."""
NUMBER: Final = 64
"""Bytes of a number that a notification has in one subscription."""
SAMPLE: Final = 8
"""Events of a message of which the memory is estimated."""

Numbers: TypeAlias = tuple[tuple[int, int], ...]
"""Numberings, and the number in each."""


class Turn(NamedTuple):
    """Facts of one time about this number of `events`, of about `size` bytes."""

    at: float
    facts: Sequence[Fact]
    events: int
    size: int


class Sighting(NamedTuple):
    """An event that was here: a local client published it, or it came from a neighbour.

    It went `onward` to neighbours, and to clients with these numberings and numbers; or it did not, for a reason. It
    was `accepted` by the broker that took it at this time, if that is known.
    """

    at: float
    sender: NodeId
    event: Event
    taken: bool
    onward: tuple[NodeId, ...] = ()
    notified: tuple[tuple[NodeId, Numbers], ...] = ()
    fate: str = ""  # dropped, refused, held, replayed, or unknown if it may be stored
    reason: str = ""
    accepted: float | None = None


class Happening(NamedTuple):
    """Something that happened to a neighbour or a client."""

    at: float
    node: NodeId
    what: str


class Made(NamedTuple):
    """A subscription has had its filter since then; one that is `resumed` was there before, and not known here."""

    at: float
    filter: Filter
    resumed: bool


class Ended(NamedTuple):
    """A subscription is over."""

    at: float
    client: NodeId
    name: str
    made: Made
    reason: str


class Told(NamedTuple):
    """A subscription was told of a gap."""

    at: float
    client: NodeId
    name: str
    gap: Gap


class Chronicle:
    """The facts that a broker remembers. `made` are the subscriptions that there are, `ended` those that are over."""

    def __init__(self, now: float) -> None:
        self.begun = now
        self.since = now  # from when on events are remembered
        self.made: dict[NodeId, dict[str, Made]] = {}
        self.ended: deque[Ended] = deque(maxlen=OTHERS)
        self.links: deque[Happening] = deque(maxlen=OTHERS)
        self.clients: deque[Happening] = deque(maxlen=OTHERS)
        self.gaps: deque[Told] = deque(maxlen=OTHERS)
        self._turns: deque[Turn] = deque()
        self._count = 0
        self._size = 0

    def take(self, facts: Sequence[Fact], now: float) -> None:
        """Remember what happened."""
        count = size = 0
        given: list[Event] = []
        for fact in facts:
            kind = type(fact)
            if kind in CARRIERS:
                events = fact.events  # type: ignore[union-attr]  # it carries events
                count += len(events)
                size += _size(events)
            elif kind is Given:
                for one in fact.deliveries:  # type: ignore[union-attr]  # it is Given
                    size += NUMBER * len(one.numbers)
                    given += one.events
            elif kind in NOTICED:
                self._notice(fact, now)
        if count:
            self._keep(Turn(now, facts, count, size))
        elif given:  # they were read from memory
            self._keep(Turn(now, facts, len(given), size + _size(given)))

    def _keep(self, turn: Turn) -> None:
        self._turns.append(turn)
        self._count += turn.events
        self._size += turn.size
        while (self._count > EVENTS or self._size > BYTES) and len(self._turns) > 1:
            oldest = self._turns.popleft()
            self.since = oldest.at
            self._count -= oldest.events
            self._size -= oldest.size

    def _notice(self, fact: Fact, now: float) -> None:
        match fact:
            case SubscriptionMade(client, name, wanted, resumed=resumed):
                self.made.setdefault(client, {})[name] = Made(now, wanted, resumed)
            case SubscriptionChanged(client, name, wanted):
                self.made.setdefault(client, {})[name] = Made(now, wanted, False)
            case SubscriptionEnded(client, name, reason):
                self._end(client, name, reason, now)
            case GapTold(client, name, gap):
                self.gaps.append(Told(now, client, name, gap))
            case ClientHere(client):
                self.clients.append(Happening(now, client, "connected"))
            case Gone(client):
                self.clients.append(Happening(now, client, "disconnected"))
            case Full(client):
                self.clients.append(Happening(now, client, "did not take what it was sent"))
            case Drained(client):
                self.clients.append(Happening(now, client, "took all that it was sent"))
            case LinkUp(neighbour):
                self.links.append(Happening(now, neighbour, "up"))
            case LinkDown(neighbour):
                self.links.append(Happening(now, neighbour, "down"))

    def _end(self, client: NodeId, name: str, reason: str, now: float) -> None:
        named = self.made.get(client, {})
        if name in named:
            self.ended.append(Ended(now, client, name, named.pop(name), reason))
        if not named:
            self.made.pop(client, None)

    # --- asked about ---

    def sightings(self, id: str, source: str | None = None) -> list[Sighting]:
        """Return what became of the events with this id, in order."""
        found: list[Sighting] = []
        for turn in self._turns:
            for seen in _seen(turn, id):
                if source is None or seen.event.source == source:
                    found.append(_followed(seen, turn))
        return found


CARRIERS: Final = frozenset({Stored, NotStored, PublicationRefused, Passed, PageTaken})
NOTICED: Final = frozenset(
    {
        SubscriptionMade,
        SubscriptionChanged,
        SubscriptionEnded,
        GapTold,
        ClientHere,
        Gone,
        Full,
        Drained,
        LinkUp,
        LinkDown,
    }
)


def _size(events: Sequence[Event]) -> int:
    """Return the bytes that events take, roughly; of many, by a sample that nobody who publishes can foresee.

    An event of very many values counts as all the memory that there is: looking at them would hold up others.
    """
    sample = events
    if len(events) > SAMPLE:
        step = -(-len(events) // SAMPLE)
        sample = events[hash(events[0]) % step :: step]
    size = 0
    for event in sample:
        found = footprint(event)
        if found is None:
            return BYTES
        size += found
    return size if sample is events else size * len(events) // len(sample)


def _seen(turn: Turn, id: str) -> Iterator[Sighting]:
    """Yield the events of an id that came, and then those that were read from memory."""
    here: set[Pair] = set()
    for fact in turn.facts:
        for place, event in _carried(fact):
            if event.id == id:
                here.add((event.source, event.id))
                yield _came(turn.at, fact, place, event)
    for given in [fact for fact in turn.facts if isinstance(fact, Given)]:
        for read in [event for one in given.deliveries for event in one.events if event.id == id]:
            if (read.source, read.id) not in here:
                here.add((read.source, read.id))
                yield Sighting(turn.at, given.client, read, False, fate="replayed")


def _carried(fact: Fact) -> Iterator[tuple[int, Event]]:
    if isinstance(fact, Stored | NotStored | PublicationRefused | Passed | PageTaken):
        yield from enumerate(fact.events)


def _came(at: float, fact: Fact, place: int, event: Event) -> Sighting:
    match fact:
        case Stored(client, _, time):
            return Sighting(at, client, event, True, fate="held" if event.seq is None else "", accepted=time / MICROS)
        case NotStored(client, _, reason, unknown):
            return Sighting(at, client, event, True, fate="unknown" if unknown else "refused", reason=reason)
        case PublicationRefused(client, _, refusals):
            key = event.source, event.id
            reasons = [refusal.reason for refusal in refusals if (refusal.source, refusal.id) == key]
            return Sighting(at, client, event, True, fate="refused", reason=reasons[0])
        case PageTaken(sender, _, times):
            accepted = times[place] / MICROS if times else None
            return Sighting(at, sender, event, False, fate="replayed", accepted=accepted)
        case Passed(sender):
            return Sighting(at, sender, event, False)
    raise AssertionError(f"{type(fact).__name__} carries no events")


def _followed(seen: Sighting, turn: Turn) -> Sighting:
    """Return a sighting with what was done about the event."""
    if seen.fate in ("refused", "unknown"):
        return seen
    key = seen.event.source, seen.event.id
    onward: list[NodeId] = []
    notified: list[tuple[NodeId, Numbers]] = []
    for fact in turn.facts:
        match fact:
            case Forwarded(to, events) if any((e.source, e.id) == key for e in events):
                onward.append(to)
            case Given(client, deliveries):
                each = [(one.event, one.numbers) for one in each_of(deliveries)]
                notified += [(client, numbers) for event, numbers in each if event and (event.source, event.id) == key]
            case Note(dropped, _, reason) if (dropped.source, dropped.id) == key:
                seen = seen._replace(fate="dropped", reason=reason)
    return seen._replace(onward=tuple(onward), notified=tuple(notified))
