"""The tables of one broker: what it knows, what it tells, and to whom an event goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.work import together
from vestnik.routing.advertisements import Gated
from vestnik.routing.hierarchical import Hierarchical
from vestnik.routing.propagation import EACH, OPERATION, Leases, Propagation, Source, expired, shift
from vestnik.routing.reductions import Entry, Strategy
from vestnik.wire.messages import AdminA, AdminS, Interest, NodeId

Told: TypeAlias = tuple[NodeId, AdminS | AdminA]
"""A message for a neighbour."""

MANY: Final = 2_000
"""Filters of a neighbour by which a log is read. To index more of them would take longer than it saves."""
REMEMBERED: Final = 64
"""Answers of the matcher for which it is remembered where events go."""
REMEMBERED_SOURCES: Final = 100_000
"""Subscriptions that these answers have together, or those of one answer more: some 5 MB."""


class Targets(NamedTuple):
    """Where an event goes: neighbours, and subscriptions of local clients."""

    neighbours: Sequence[NodeId]
    subscriptions: Sequence[Source]


class Expired(NamedTuple):
    """The subscriptions of local clients that have expired, and the neighbours of which something has.

    Subscriptions are given with the filter: one may have another by now, which has not expired.
    """

    subscriptions: list[tuple[Source, Filter]]
    neighbours: set[NodeId]


class Router:
    """One table, of subscriptions. Advertisements are recorded for whoever asks, and restrict nothing."""

    def __init__(self, strategy: Strategy, leases: Leases = Leases()) -> None:  # noqa: B008  # a frozen value
        self._strategy = strategy
        self.leases = leases
        self.subscriptions = Propagation(strategy, leases)
        self.advertised: dict[Source, Filter] = {}  # by local clients
        self._advertised_until: dict[Source, float] = {}
        self._idle_until: dict[Source, float] = {}  # subscriptions that want nothing, and are in no table
        self._flooded: set[NodeId] = set()  # the neighbours to which every event goes
        # Where events go, by the neighbour that sent them, or "" for clients, and the entries that were found.
        self._remembered: dict[tuple[NodeId, tuple[Entry, ...]], Targets] = {}
        self._remembered_at = 0  # how often the table had changed
        self._remembered_sources = 0

    @property
    def neighbours(self) -> list[NodeId]:
        return list(self.subscriptions.neighbours)

    def connect(self, neighbour: NodeId) -> None:
        self.subscriptions.connect(neighbour)
        if self._strategy.floods(neighbour):
            self._flooded.add(neighbour)

    def disconnect(self, neighbour: NodeId) -> None:
        self.subscriptions.disconnect(neighbour)
        self._flooded.discard(neighbour)

    def floods(self, neighbour: NodeId) -> bool:
        """Whether every event goes to a neighbour."""
        return neighbour in self._flooded

    @property
    def hearing(self) -> list[Filter]:
        """The filters by which somebody gets events of the infrastructure."""
        return [*(entry.filter for entry in self.subscriptions.reserved), *([Filter.all()] if self._flooded else ())]

    def subscribe(self, source: Source, wanted: Filter, expiry: float) -> None:
        """A local client subscribes, or renews its subscription."""
        self.subscriptions.add(self._entry(source, wanted), source, expiry)
        if not wanted.region:
            self._idle_until[source] = expiry

    def unsubscribe(self, source: Source, wanted: Filter) -> None:
        self.subscriptions.remove(self._entry(source, wanted), source)
        if not wanted.region:
            self._idle_until.pop(source, None)

    def advertise(self, source: Source, offered: Filter, expiry: float) -> None:
        """A local client says what it is going to publish."""
        self.advertised[source] = offered
        self._advertised_until[source] = expiry

    def unadvertise(self, source: Source) -> None:
        self.advertised.pop(source, None)
        self._advertised_until.pop(source, None)

    def lapsing(self, now: float) -> list[Source]:
        """Return the advertisements of local clients whose lease has ended."""
        return [source for source, expiry in self._advertised_until.items() if expiry <= now]

    def conforms(self, client: NodeId) -> Callable[[Event], bool]:
        """Whether a local client may publish an event; `anything` where it may publish any."""
        return anything

    def tests(self, client: NodeId) -> int:
        """How many tests on values there are that an event of a client, or of a neighbour, may have to pass."""
        return self.subscriptions.tests

    def load(self, client: NodeId) -> int:
        """How many steps it may take to route an event of a client: tests on values, and subscriptions that want it."""
        return self.tests(client) + self.subscriptions.held

    def take(self, sender: NodeId, message: AdminS | AdminA, now: float) -> None:
        """A neighbour tells what changed. Additions come first, so that nothing is missed in between."""
        if isinstance(message, AdminS):
            source = Source(sender)
            for interest in message.add:
                self.subscriptions.add(_entry_of(interest), source, self._until(interest, now))
            for interest in message.remove:
                self.subscriptions.remove(_entry_of(interest), source)

    def expire(self, now: float) -> Expired:
        """Drop what has expired, and heal what neighbours were told."""
        latest = now + self.leases.length
        for source in expired(self._advertised_until, now, latest):
            self.unadvertise(source)
        gone = self.subscriptions.expire(now)
        for entry, source in gone:
            self.subscriptions.remove(entry, source)
        idle = expired(self._idle_until, now, latest)
        for source in idle:
            del self._idle_until[source]
        self.subscriptions.audit(now)
        lapsed = [*((s, entry.filter) for entry, s in gone if s.name), *((s, Filter.none()) for s in idle)]
        return Expired(lapsed, {source.node for _, source in gone if not source.name})

    def shift(self, by: float) -> None:
        """The clock was set: all leases end so much later by it."""
        self.subscriptions.shift(by)
        shift(self._advertised_until, by)
        shift(self._idle_until, by)

    def flush(self, now: float) -> Iterator[Told]:
        """What is to be told to neighbours since the last time."""
        for neighbour, update in self.subscriptions.flush(now):
            yield neighbour, AdminS(*update)

    def route(self, events: Sequence[Event], sender: NodeId) -> list[tuple[int, Targets]]:
        """Return the places of the events from `sender` that go anywhere, and where each goes.

        Events that the same entries want have one object as their targets, most times also in later calls.
        """
        routed: list[tuple[int, Targets]] = []
        known: dict[int, Targets] = {}  # by what was found
        each = self.subscriptions.matching(events)
        for place, found in enumerate(each):
            if found or self._flooded:
                targets = known.get(id(found))
                if targets is None:
                    targets = known[id(found)] = self._recall(found, sender)
                routed.append((place, targets))
        return routed

    def _recall(self, found: tuple[Entry, ...], sender: NodeId) -> Targets:
        """Return where an event goes that just these entries want: as before, if the table has not changed since."""
        remembered, changes = self._remembered, self.subscriptions.changes
        if changes != self._remembered_at:
            self._forget()
            self._remembered_at = changes
        key = sender if sender in self.subscriptions.neighbours else "", found
        targets = remembered.get(key)
        if targets is None:
            if len(remembered) >= REMEMBERED or self._remembered_sources >= REMEMBERED_SOURCES:
                self._forget()
            targets = remembered[key] = self.wanting(found, sender)
            self._remembered_sources += len(found) + len(targets.subscriptions)
        return targets

    def _forget(self) -> None:
        self._remembered.clear()
        self._remembered_sources = 0

    def targets(self, event: Event, sender: NodeId) -> Targets:
        """Where an event from `sender` goes."""
        return self.wanting(self.subscriptions.matching([event])[0], sender)

    def wanted_by(self, neighbour: NodeId) -> tuple[Filter, ...]:
        """Return filters that match at least what goes to a neighbour."""
        wanted = dict.fromkeys([entry.filter for entry in self.subscriptions.of(neighbour)])
        return (Filter.all(),) if neighbour in self._flooded or len(wanted) > MANY else tuple(wanted)

    def wanting(self, found: Iterable[Entry], sender: NodeId) -> Targets:
        """Where an event from `sender` goes that just these entries want."""
        table, nodes, subscriptions = self.subscriptions, self._flooded.copy(), []
        for entry in found:
            for source in table.sources(entry):
                node, name = source
                if name:
                    subscriptions.append(source)
                else:
                    nodes.add(node)
        if len(subscriptions) > 1:
            subscriptions.sort()
        return Targets([n for n in table.neighbours if n in nodes and n != sender] if nodes else [], subscriptions)

    def _until(self, interest: Interest, now: float) -> float:
        """How long a neighbour is believed: no longer than any lease lasts."""
        return now + min(interest.lease, self.leases.length)

    def _entry(self, source: Source, wanted: Filter) -> Entry:
        return Entry(wanted, f"{source.node}/{source.name}" if self._strategy.tagged else "")


class AdvertisingRouter(Router):
    """A router with a second table, of advertisements; subscriptions go only towards those that they overlap."""

    def __init__(self, strategy: Strategy, leases: Leases = Leases()) -> None:  # noqa: B008  # a frozen value
        gated = Gated(strategy)
        super().__init__(gated, leases)
        self._gates = gated.gates
        self.advertisements = Propagation(strategy.inner if isinstance(strategy, Hierarchical) else strategy, leases)

    def connect(self, neighbour: NodeId) -> None:
        super().connect(neighbour)
        self.advertisements.connect(neighbour)
        with together(OPERATION + EACH * len(self.subscriptions)):
            for entry in self.advertisements.of(neighbour):
                self.subscriptions.note(neighbour, self._gates[neighbour].open(entry))

    def disconnect(self, neighbour: NodeId) -> None:
        self.advertisements.disconnect(neighbour)
        super().disconnect(neighbour)
        del self._gates[neighbour]

    def advertise(self, source: Source, offered: Filter, expiry: float) -> None:
        if source in self.advertised and self.advertised[source] != offered:
            self.unadvertise(source)
        super().advertise(source, offered, expiry)
        self.advertisements.add(self._entry(source, offered), source, expiry)

    def unadvertise(self, source: Source) -> None:
        if source in self.advertised:
            self.advertisements.remove(self._entry(source, self.advertised[source]), source)
        super().unadvertise(source)

    def wanted_by(self, neighbour: NodeId) -> tuple[Filter, ...]:
        """Return a filter for everything: entries may have been released that want what was offered before."""
        return (Filter.all(),)

    def tests(self, client: NodeId) -> int:
        return super().tests(client) + sum([source.node == client for source in self.advertised])

    def conforms(self, client: NodeId) -> Callable[[Event], bool]:
        offers = [offered for source, offered in self.advertised.items() if source.node == client]
        return lambda event: any(offered.matches(event) for offered in offers)

    def take(self, sender: NodeId, message: AdminS | AdminA, now: float) -> None:
        super().take(sender, message, now)
        if isinstance(message, AdminA):
            for interest in message.add:
                self._offer(_entry_of(interest), sender, self._until(interest, now))
            for interest in message.remove:
                self._withdraw(_entry_of(interest), sender)

    def expire(self, now: float) -> Expired:
        silent: set[NodeId] = set()
        for entry, source in self.advertisements.expire(now):
            if source.name:
                self.advertisements.remove(entry, source)
            else:
                self._withdraw(entry, source.node)
                silent.add(source.node)
        gone = super().expire(now)
        self.advertisements.audit(now)
        return Expired(gone.subscriptions, gone.neighbours | silent)

    def shift(self, by: float) -> None:
        super().shift(by)
        self.advertisements.shift(by)

    def flush(self, now: float) -> Iterator[Told]:
        for neighbour, update in self.advertisements.flush(now):
            yield neighbour, AdminA(*update)
        yield from super().flush(now)

    def _offer(self, entry: Entry, sender: NodeId, expiry: float) -> None:
        if self.advertisements.add(entry, Source(sender), expiry) and sender in self._gates:
            with together(OPERATION + len(self.subscriptions)):
                self.subscriptions.note(sender, self._gates[sender].open(entry))

    def _withdraw(self, entry: Entry, sender: NodeId) -> None:
        if self.advertisements.remove(entry, Source(sender)) and sender in self._gates:
            with together(OPERATION + len(self.subscriptions)):
                self.subscriptions.note(sender, self._gates[sender].close(entry))


def anything(event: Event) -> bool:
    return True


def _entry_of(interest: Interest) -> Entry:
    return Entry(interest.filter, interest.tag)
