"""The recent past of one broker, to answer why.

Noting costs little: events are kept packed, mostly as the log has packed them, and are searched when somebody asks.
Objects that were kept for so long would cost more when they are freed than all else that is done with an event. The
chronicle has the last `EVENTS` events, or fewer if they are large or went to very many clients, and the last `OTHERS`
of everything else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias, get_args

from msgspec import Raw
from msgspec.structs import replace

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
from vestnik.wire.messages import Delivery, Gap, NodeId
from vestnik.wire.origins import Routed
from vestnik.wire.packing import Carried, Carrying, pack, unpack

EVENTS: Final = 5_000
OTHERS: Final = 1_000
BYTES: Final = 32 * 1024 * 1024
"""Memory for events and numbers. A single message that takes more is remembered until the next one comes."""
EVENT: Final = 100
"""Bytes that an event takes beside those of its packed form."""
NUMBER: Final = 64
"""Bytes of a number that a notification has in one subscription."""

Carrier: TypeAlias = Stored | NotStored | PublicationRefused | Passed | PageTaken
"""Facts of events that came."""
Numbers: TypeAlias = tuple[tuple[int, int], ...]
"""Numberings, and the number in each."""


class Came(NamedTuple):
    """Events came, of which a fact without them tells; each is packed."""

    fact: Carrier
    packed: Sequence[bytes]


class Turn(NamedTuple):
    """The facts of one time about this number of `events`, which take `size` bytes."""

    at: float
    came: Sequence[Came]
    given: Sequence[Given]
    forwarded: Sequence[Forwarded]
    dropped: Sequence[Note]
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
        came: list[Came] = []
        given: list[Given] = []
        forwarded: list[Forwarded] = []
        dropped: list[Note] = []
        packed_once = PackedOnce()
        size = 0
        for fact in facts:
            kind = type(fact)
            if kind is Given:
                given.append(_packed(fact, packed_once))  # type: ignore[arg-type]  # it is Given
            elif kind in CARRIERS:
                came.append(_came_with(fact, packed_once))  # type: ignore[arg-type]  # it is a Carrier
            elif kind is Forwarded:
                forwarded.append(_packed_on(fact, packed_once))  # type: ignore[arg-type]  # it is Forwarded
            elif kind is Note:
                dropped.append(fact)  # type: ignore[arg-type]
            elif kind in NOTICED:
                self._notice(fact, now)
        here: list[bytes] = []
        for one in came:
            here += one.packed
        runs: dict[int, Sequence[bytes | Raw]] = {}
        for to in given:
            for run in to.deliveries:
                runs[id(run.carried)] = run.packed
                size += NUMBER * len(run.numbers)
        read = list(chain.from_iterable(runs.values()))
        count = max(len(here), len(read))  # what is given has come, or was read from memory
        if count:
            size += max(sum(map(len, here)), sum(map(len, read))) + EVENT * count
            self._keep(Turn(now, came, given, forwarded, dropped, count, size))

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
        named = Named(id)
        for turn in self._turns:
            for seen in _seen(turn, named):
                if source is None or seen.event.source == source:
                    found.append(_followed(seen, turn, named))
        return found


CARRIERS: Final = frozenset(get_args(Carrier))
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


class PackedOnce:
    """The events of one turn that were not packed. Those that came, and went to many clients, are kept once."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}  # by the event, which a fact of the turn has
        self._runs: dict[int, tuple[Raw, ...]] = {}  # by the events

    def all(self, events: Sequence[Event]) -> list[bytes]:
        """Return each event packed."""
        known = self._known
        return [known.get(id(event)) or known.setdefault(id(event), pack(event)) for event in events]

    def carried(self, by: Carrying) -> tuple[Carried, ...]:
        """Return what something carries, packed: one object for what is carried to many."""
        if by.is_packed:
            return by.carried
        events = by.events
        packed = self._runs.get(id(events))
        if packed is None:
            packed = self._runs[id(events)] = tuple(map(Raw, self.all(events)))
        return packed


def _came_with(fact: Carrier, packed_once: PackedOnce) -> Came:
    is_packed = isinstance(fact, Stored | NotStored) and fact.packed
    packed = fact.packed if is_packed else packed_once.all(fact.events)  # type: ignore[union-attr]
    return Came(replace(fact, events=()), packed)


def _packed(fact: Given, packed_once: PackedOnce) -> Given:
    """Return a fact whose events are packed, as live ones are, and stay so: who is given them may unpack them."""
    deliveries = [Delivery(packed_once.carried(one), one.numbers, one.replayed, one.gap) for one in fact.deliveries]
    return Given(fact.client, tuple(deliveries))


def _packed_on(fact: Forwarded, packed_once: PackedOnce) -> Forwarded:
    """Return a fact whose events are packed, and stay so."""
    return Forwarded(fact.to, Routed(fact.routed.origin, packed_once.carried(fact.routed)))


class Named:
    """Finds events by their id. It looks once through events that many are sent."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._key = name.encode(errors="surrogatepass")
        self._found: dict[int, list[tuple[int, Event]]] = {}  # by the packed events, which a turn has

    def among(self, packed: Sequence[bytes | Raw]) -> list[tuple[int, Event]]:
        """Return the events that have the id, each with its place."""
        found = self._found.get(id(packed))
        if found is None:
            has_key = [(place, unpack(one)) for place, one in enumerate(packed) if self._key in bytes(one)]
            found = self._found[id(packed)] = [(place, event) for place, event in has_key if event.id == self._name]
        return found

    def places(self, event: Event, carrying: Carrying) -> list[int]:
        """Return the places at which an event is carried."""
        return [place for place, found in self.among(carrying.packed) if found.source == event.source]


def _seen(turn: Turn, named: Named) -> Iterator[Sighting]:
    """Yield the events of an id that came, and then those that were read from memory."""
    here: set[Pair] = set()
    for fact, carried in turn.came:
        for place, event in named.among(carried):
            here.add((event.source, event.id))
            yield _came(turn.at, fact, place, event)
    for given in turn.given:
        for one in given.deliveries:
            for _, read in named.among(one.packed):
                if (read.source, read.id) not in here:
                    here.add((read.source, read.id))
                    yield Sighting(turn.at, given.client, read, False, fate="replayed")


def _came(at: float, fact: Carrier, place: int, event: Event) -> Sighting:
    match fact:
        case Stored(client, _, time):
            return Sighting(at, client, event, True, fate="held" if event.seq is None else "", accepted=time / MICROS)
        case NotStored(client, _, reason, unknown):
            return Sighting(at, client, event, True, fate="unknown" if unknown else "refused", reason=reason)
        case PublicationRefused(client, _, refusals):
            pair = event.source, event.id
            reasons = [refusal.reason for refusal in refusals if (refusal.source, refusal.id) == pair]
            return Sighting(at, client, event, True, fate="refused", reason=reasons[0])
        case PageTaken(sender, _, times):
            accepted = times[place] / MICROS if times else None
            return Sighting(at, sender, event, False, fate="replayed", accepted=accepted)
        case Passed(sender):
            return Sighting(at, sender, event, False)


def _followed(seen: Sighting, turn: Turn, named: Named) -> Sighting:
    """Return a sighting with what was done about the event."""
    if seen.fate in ("refused", "unknown"):
        return seen
    event = seen.event
    notified: list[tuple[NodeId, Numbers]] = []
    onward = [one.to for one in turn.forwarded if named.places(event, one.routed)]
    for given in turn.given:
        for one in given.deliveries:
            notified += [(given.client, one.part(place, place + 1).numbers) for place in named.places(event, one)]
    for note in turn.dropped:
        if (note.event.source, note.event.id) == (event.source, event.id):
            seen = seen._replace(fate="dropped", reason=note.reason)
    return seen._replace(onward=tuple(onward), notified=tuple(notified))
