"""A table of interests, and what each neighbour was told of it.

An entry is there for its sources: neighbours, and subscriptions of local clients. A neighbour is told a reduction of
the entries that have a source other than itself. Every source holds its entry for a lease, which renewals extend; what
a neighbour was told is extended with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from vestnik.matching import Matcher
from vestnik.model.events import Event
from vestnik.model.reserved import reaches
from vestnik.model.times import FOREVER
from vestnik.model.work import together
from vestnik.routing.reductions import NO_CHANGE, Change, Entry, Net, Reduction, Strategy, add_all
from vestnik.wire.messages import Interest, NodeId

Key = TypeVar("Key")

EACH: Final = 50
"""Steps for each entry, if all of a table are compared because a link came up."""
OPERATION: Final = 5_000
"""Steps that the comparisons of one entry with the others of a table may cost. Beyond it, complex filters are told as
they are: a neighbour hears more than it has to, and nothing is missed."""


class Source(NamedTuple):
    """A neighbour, or with `name` one subscription of a local client."""

    node: NodeId
    name: str = ""


class Leases(NamedTuple):
    """For how long entries last unless renewed.

    Renewals of local clients are passed on when that gains `slack` or more; so clients that want the same do not renew
    it one after another at all brokers. Those of neighbours are passed on as they come.

    Entries of neighbours last `grace` longer, so that the broker of a client can tell first that a lease has ended.
    """

    length: float = FOREVER
    slack: float = 0.0
    grace: float = 0.0


class Update(NamedTuple):
    """What to tell a neighbour."""

    add: tuple[Interest, ...]
    remove: tuple[Interest, ...]


class Propagation:
    """One table of a broker."""

    def __init__(self, strategy: Strategy, leases: Leases) -> None:
        self._strategy = strategy
        self._leases = leases
        self._sources: dict[Entry, dict[Source, float]] = {}  # with the time at which each gives the entry up
        self.changes = 0  # how often a source or a neighbour has come or gone
        self.held = 0  # how many sources hold an entry, over all entries
        self._nodes: dict[Entry, dict[NodeId, int]] = {}  # how many of them are at each node
        self._reductions: dict[NodeId, Reduction] = {}
        self._told: dict[NodeId, dict[Entry, float]] = {}  # with the time until which the neighbour believes it
        self._pending: dict[NodeId, Net] = {}
        self._extended: dict[Entry, float] = {}  # with what must be gained for neighbours to be told
        self._matcher: Matcher[Entry] = Matcher()
        self._tests = 0  # of the matcher
        self._unfiled: dict[Entry, None] = {}  # came or went since the last event
        self.reserved: dict[Entry, None] = {}  # that let in events of the infrastructure

    def __len__(self) -> int:
        return len(self._sources)

    def __iter__(self) -> Iterator[tuple[Entry, dict[Source, float]]]:
        return iter(self._sources.items())

    @property
    def neighbours(self) -> Iterable[NodeId]:
        return self._reductions

    def reduction(self, neighbour: NodeId) -> Reduction:
        return self._reductions[neighbour]

    def told(self, neighbour: NodeId) -> dict[Entry, float]:
        """What a neighbour was told, and until when it believes it. Whoever corrupts a broker changes it."""
        return self._told[neighbour]

    def nodes(self, entry: Entry) -> Iterable[NodeId]:
        return self._nodes.get(entry, ())

    def of(self, node: NodeId) -> list[Entry]:
        """What a node wants."""
        return [entry for entry, nodes in self._nodes.items() if node in nodes]

    def matching(self, events: Sequence[Event]) -> list[tuple[Entry, ...]]:
        """For each event the entries that want it; most answers that are equal are one object."""
        if self._unfiled:
            self._file()
        return self._matcher.match_each(events)

    @property
    def tests(self) -> int:
        """How many tests on values the filters have that an index does not settle: patterns, lists and the like."""
        if self._unfiled:
            self._file()
        return self._tests

    def _file(self) -> None:
        for entry in self._unfiled:
            if entry in self._sources:
                self._matcher.add(entry, entry.filter)
            elif entry in self._matcher:
                self._matcher.remove(entry)
        self._unfiled.clear()
        self._tests = self._matcher.tests

    def sources(self, entry: Entry) -> dict[Source, float]:
        return self._sources[entry]

    def connect(self, neighbour: NodeId) -> None:
        """A new neighbour, which knows nothing yet."""
        self.changes += 1
        reduction = self._reductions[neighbour] = self._strategy.reduction(neighbour)
        self._told[neighbour] = {}
        others = [entry for entry, nodes in self._nodes.items() if len(nodes) > 1 or neighbour not in nodes]
        with together(OPERATION + EACH * len(others)):
            self._note(neighbour, add_all(reduction, others))

    def disconnect(self, neighbour: NodeId) -> None:
        """A neighbour is gone, and with it what it wanted."""
        self.changes += 1
        del self._reductions[neighbour], self._told[neighbour]
        self._pending.pop(neighbour, None)
        for entry in self.of(neighbour):
            self.remove(entry, Source(neighbour))

    def add(self, entry: Entry, source: Source, expiry: float) -> bool:
        """Enter or renew; whether the node of `source` is new to the entry. What wants nothing is not entered."""
        if not entry.filter.region:
            return False
        sources = self._sources.setdefault(entry, {})
        known = source in sources
        slack = self._leases.slack if known and source.name else 0.0
        self._extended[entry] = min(slack, self._extended.get(entry, slack))
        sources[source] = expiry
        if known:
            return False
        self.held += 1
        self.changes += 1
        nodes = self._nodes.setdefault(entry, {})
        nodes[source.node] = nodes.get(source.node, 0) + 1
        if nodes[source.node] > 1:
            return False
        if len(nodes) == 1:
            self._unfiled[entry] = None
            if reaches(entry.filter):
                self.reserved[entry] = None
        with together(OPERATION + len(self)):
            for neighbour in self._concerned(source.node, nodes):
                self._note(neighbour, self._reductions[neighbour].add(entry))
        return True

    def remove(self, entry: Entry, source: Source) -> bool:
        """Give up what a source wants, if it does; whether its node is gone from the entry."""
        sources = self._sources.get(entry, {})
        if source not in sources:
            return False
        del sources[source]
        self.held -= 1
        self.changes += 1
        nodes = self._nodes[entry]
        nodes[source.node] -= 1
        if nodes[source.node]:
            return False
        concerned = self._concerned(source.node, nodes)
        del nodes[source.node]
        if not nodes:
            del self._sources[entry], self._nodes[entry]
            self._extended.pop(entry, None)
            self._unfiled[entry] = None
            self.reserved.pop(entry, None)
        with together(OPERATION + len(self)):
            for neighbour in concerned:
                self._note(neighbour, self._reductions[neighbour].remove(entry))
        return True

    def note(self, neighbour: NodeId, change: Change) -> None:
        """Take in a change of what a neighbour should know that came about otherwise."""
        self._note(neighbour, change)

    def _concerned(self, node: NodeId, nodes: dict[NodeId, int]) -> list[NodeId]:
        """The neighbours for which an entry with sources at `nodes` is there because of `node`, one of them, alone."""
        if len(nodes) == 1:
            return [neighbour for neighbour in self._reductions if neighbour != node]
        if len(nodes) == 2:
            return [other for other in nodes if other != node and other in self._reductions]
        return []

    def _note(self, neighbour: NodeId, change: Change) -> None:
        if any(change):
            self._pending.setdefault(neighbour, Net()).take(change)

    def expire(self, now: float) -> list[tuple[Entry, Source]]:
        """What has expired."""
        latest, grace = now + self._leases.length, self._leases.grace
        return [
            (entry, source)
            for entry, held in self._sources.items()
            for source in expired(held, now, latest)
            if source.name or held[source] + grace <= now
        ]

    def shift(self, by: float) -> None:
        """The clock was set: all leases end so much later by it."""
        for sources in self._sources.values():
            shift(sources, by)
        for told in self._told.values():
            shift(told, by)

    def audit(self, now: float) -> None:
        """Make what neighbours were told agree with what they should know, whatever it was."""
        latest = now + self._leases.length
        for neighbour, reduction in self._reductions.items():
            told = self._told[neighbour]
            wanted = dict.fromkeys(reduction.entries())
            for entry in [entry for entry in told if entry not in wanted]:
                del told[entry]
            for entry in wanted:
                if entry not in told:
                    self._note(neighbour, Change(add=(entry,)))
                elif told[entry] > latest:
                    told[entry] = latest

    def flush(self, now: float) -> list[tuple[NodeId, Update]]:
        """What is to be told since the last time."""
        if not self._pending and not self._extended:
            return []
        updates: list[tuple[NodeId, Update]] = []
        for neighbour, told in self._told.items():
            net = self._pending.get(neighbour)
            change = NO_CHANGE if net is None else net.change()
            add = {} if net is None else self._news(neighbour, change, now)
            add |= self._renewals(neighbour, add, now)
            if add or change.remove:
                told |= add
                for entry in change.remove:
                    told.pop(entry, None)
                leased = [Interest(entry.filter, entry.tag, expiry - now) for entry, expiry in add.items()]
                ended = [Interest(entry.filter, entry.tag) for entry in change.remove]
                updates.append((neighbour, Update(tuple(leased), tuple(ended))))
        self._pending.clear()
        self._extended.clear()
        return updates

    def _news(self, neighbour: NodeId, change: Change, now: float) -> dict[Entry, float]:
        """What a change lets a neighbour believe that it did not, or not for as long, and until when it should."""
        told = self._told[neighbour]
        add = {entry: self._until(neighbour, entry, now) for entry in change.add}
        more = {entry: self._until(neighbour, entry, now) for entry in change.more if entry in told}
        return add | {entry: until for entry, until in more.items() if until > told[entry]}

    def _until(self, neighbour: NodeId, told: Entry, now: float) -> float:
        """Until when a neighbour should believe what it is told."""
        latest = now + self._leases.length
        until = 0.0
        for entry in self._reductions[neighbour].reasons(told):
            until = max(until, self._expiry(neighbour, entry))
            if until >= latest:
                return latest
        return until

    def _expiry(self, neighbour: NodeId, entry: Entry) -> float:
        """When the last source other than a neighbour gives up an entry."""
        return max([expiry for source, expiry in self._sources[entry].items() if source.node != neighbour])

    def _renewals(self, neighbour: NodeId, added: dict[Entry, float], now: float) -> dict[Entry, float]:
        """What a neighbour was told that can be believed for longer."""
        reduction, told = self._reductions[neighbour], self._told[neighbour]
        longer: dict[Entry, float] = {}
        for entry, slack in self._extended.items():
            known = reduction.representative(entry)
            if known is not None and known in told and known not in added:
                expiry = min(self._expiry(neighbour, entry), now + self._leases.length)
                if expiry > told[known] and expiry >= told[known] + slack:
                    longer[known] = max(expiry, longer.get(known, expiry))
        return longer


def shift(ends: dict[Key, float], by: float) -> None:
    """Let leases end later."""
    for name in ends:
        ends[name] += by


def expired(held: dict[Source, float], now: float, latest: float) -> list[Source]:
    """Whose lease has ended. One that ends later than any lease can is cut to what it can be."""
    for source, expiry in held.items():
        if expiry > latest:
            held[source] = latest
    return [source for source, expiry in held.items() if expiry <= now]
