"""A broker of the explored world: the real core, with a log on disk or in memory."""

from __future__ import annotations

from typing import NamedTuple

from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.effects import (
    Append,
    Appended,
    ClockSet,
    Effect,
    Gone,
    LinkDown,
    LinkUp,
    LogRead,
    Part,
    ReadLog,
    Send,
    Tick,
    Wake,
)
from vestnik.broker.neighbourhood import REPORT_AFTER
from vestnik.model.events import Event
from vestnik.routing.propagation import Leases
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.sim.explore.names import name_numbers_of_core
from vestnik.sim.explore.settings import JUMP, LEASE, Operation, Settings
from vestnik.sim.hosts import Disk
from vestnik.wire.messages import Message, NodeId
from vestnik.wire.origins import Origin


class Sent(NamedTuple):
    """A message for a node; None if the link to it is to end."""

    to: NodeId
    message: Message | None


class Placed(NamedTuple):
    """An event that a log was given, at an offset."""

    log: str
    offset: int
    event: Event


class BrokerNode:
    """A broker, which may be down. Every other one has no disk: each of its lives has another log."""

    def __init__(self, place: int, settings: Settings) -> None:
        self.name = f"b{place + 1}"
        self._place = place
        self._settings = settings
        self._life = 0
        self.core: BrokerCore | None = None
        self.disk: Disk | None = Disk() if place % 2 == 0 else None
        self.placed: list[Placed] = []  # for the judge
        self._links: set[NodeId] = set()
        self._unsynced: list[Append] = []
        self._reads: list[ReadLog] = []
        self._reports = False  # whether it wants to be woken

    @property
    def moves(self) -> tuple[str, ...]:
        """The moves that the broker makes by itself."""
        if self.core is None:
            return ("start",)
        moves = {"sync": self._unsynced, "read": self._reads, "report": self._reports}
        return tuple([name for name, is_due in moves.items() if is_due])

    @property
    def operations(self) -> tuple[Operation, ...]:
        return ()

    # --- life ---

    def start(self, now: float) -> list[Sent]:
        self._life += 1
        settings = self._settings
        strategy, leases = make_strategy(settings.strategy), Leases(LEASE)
        router = AdvertisingRouter(strategy, leases) if settings.advertisements else Router(strategy, leases)
        log = self.disk.log if self.disk is not None else OwnLog(self._life)
        stored = self.disk.stored() if self.disk is not None else ()
        self.core = BrokerCore(self.name, router, JUMP, stored, log)
        name_numbers_of_core(self.core, self._place, self._life)
        return self._do(Tick(), self.name, now)

    def crash(self, now: float) -> list[Sent]:
        self.core = None
        self._links.clear()
        self._unsynced.clear()
        self._reads.clear()
        self._reports = False
        return []

    # --- what it hears ---

    def hear(self, now: float, sender: NodeId, message: Message) -> list[Sent]:
        return self._do(message, sender, now)

    def link_up(self, now: float, neighbour: NodeId) -> list[Sent]:
        self._links.add(neighbour)
        return self._do(LinkUp(neighbour), self.name, now)

    def link_down(self, now: float, neighbour: NodeId) -> list[Sent]:
        if neighbour not in self._links:
            return []
        self._links.discard(neighbour)
        return self._do(LinkDown(neighbour), self.name, now)

    def lose(self, now: float, client: NodeId) -> list[Sent]:
        """Notice that the connection of a client is gone."""
        return self._do(Gone(client), self.name, now)

    # --- what it does by itself ---

    def sync(self, now: float) -> list[Sent]:
        unsynced, self._unsynced = self._unsynced, []
        return [sent for what in unsynced for sent in self._stored(what, now)]

    def read(self, now: float) -> list[Sent]:
        assert self.disk is not None
        what = self._reads.pop(0)
        return self._do(LogRead(what.number, self.disk.read(what.terms, what.end)), self.name, now)

    def report(self, now: float) -> list[Sent]:
        """Do what is due soon. Longer waits end when leases do: a neighbour answers before that, or its link is cut."""
        self._reports = False
        return self._do(Tick(), self.name, now + REPORT_AFTER)

    def end_leases(self, now: float) -> list[Sent]:
        """Look for what has expired: nothing was renewed."""
        return self._do(Tick(), self.name, now)

    def keep_leases(self, now: float) -> list[Sent]:
        """Let time pass in which everything was renewed."""
        return [] if self.core is None else self._do(ClockSet(JUMP), self.name, now)

    # --- effects ---

    def _do(self, message: Message, sender: NodeId, now: float) -> list[Sent]:
        assert self.core is not None
        return [sent for one in self.core.handle(message, sender, now) for sent in self._perform(one, now)]

    def _perform(self, effect: Effect, now: float) -> list[Sent]:
        match effect:
            case Send(to, message):
                return [Sent(to, message)]
            case Append():
                if self.disk is None:
                    return self._stored(effect, now)
                self.disk.next = max(self.disk.next, effect.end)
                self._unsynced.append(effect)
            case ReadLog():
                self._reads.append(effect)
            case Wake(at):
                self._reports = self._reports or at <= now + REPORT_AFTER
            case Part(neighbour) if neighbour in self._links:
                return [Sent(neighbour, None), *self.link_down(now, neighbour)]
        return []

    def _stored(self, what: Append, now: float) -> list[Sent]:
        assert self.core is not None
        if self.disk is not None:
            self.disk.append(what)
        log = str(self.core.origin)
        self.placed += [Placed(log, what.first + place, event) for place, event in enumerate(what.events)]
        return self._do(Appended(what), self.name, now)

    # --- for the judge ---

    @property
    def origin(self) -> Origin:
        assert self.core is not None
        return self.core.origin

    def unfinished(self, origins: set[Origin]) -> list[str]:
        """Return the logs that are not known, and the feeds that are not LIVE."""
        assert self.core is not None
        roster = self.core.recovery.feeds.roster
        missing = [f"{self.name} does not know {one}" for one in sorted(origins - roster.main.keys())]
        feeds = [feed for one in sorted(origins & roster.main.keys()) for feed in roster.all(one)]
        return missing + [f"{feed} at {self.name} is not LIVE" for feed in feeds if not feed.is_live]
