"""The connections of a broker: who is at the other end of each, and what is sent there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final

from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import (
    Drained,
    Full,
    Gone,
    Joined,
    Joining,
    LinkDown,
    LinkUp,
)
from vestnik.observe.chronicle import Chronicle
from vestnik.observe.counts import Counts
from vestnik.observe.facts import Observer
from vestnik.observe.histograms import Histogram
from vestnik.server.access import Access
from vestnik.server.answering import Answering
from vestnik.server.desk import Desk, Links, StoredEvents, nothing
from vestnik.server.door import Denied, Door, Guest
from vestnik.server.engine import Engine, Store
from vestnik.server.handshake import Handshake, Parting
from vestnik.server.hearing import Hearing
from vestnik.server.measures import Measures, Queues
from vestnik.server.names import APART
from vestnik.server.notices import ANSWERS, Notices
from vestnik.server.pacing import Pacing
from vestnik.server.parts import Batches
from vestnik.server.preparations import Preparations
from vestnik.server.presence import Presence
from vestnik.server.settings import HEARTBEAT
from vestnik.server.tracing import TraceFile
from vestnik.transport.ends import CLOSED, UNHANDLED, End
from vestnik.wire.bounds import Bounds
from vestnik.wire.messages import (
    Gap,
    Goodbye,
    Hello,
    Malformed,
    Message,
    NodeId,
    Ping,
    Pong,
    Unadvertise,
    Unsubscribe,
    Welcome,
)

MOST_WAITING = 64 * 1024 * 1024
"""Bytes that wait for a neighbour before its link is ended. When it is there again it asks for what it missed."""

MUCH_UNSENT: Final = 32 * 1024
"""Bytes for one connection that do not wait for the next flush."""

NEIGHBOUR: Final = Bounds(filters=None)
"""The bounds for neighbours, which are trusted."""


class BrokerHost:
    """One broker that runs. `routing` says how it routes: only brokers that do the same are its neighbours."""

    def __init__(
        self,
        core: BrokerCore,
        routing: str,
        store: Store,
        *,
        takes_clients: bool = True,
        trace: TraceFile | None = None,
        stored: StoredEvents = nothing,
        links: Links | None = None,
        door: Door | None = None,
        heartbeat: float = HEARTBEAT,
        fsync: Histogram | None = None,
    ) -> None:
        self.core = core
        self._door = door or Door()
        self._trace = trace
        self.chronicle = Chronicle(time.time())
        self.counts = Counts()
        desk = Desk(core, self.chronicle, self.counts, stored, links, lambda: self.measures.status())
        observers: list[Observer] = [self.chronicle, self.counts, *([] if trace is None else [trace])]
        self.engine = Engine(core, store, desk, self, observers)
        self._loop = asyncio.get_running_loop()
        self.measures = Measures(self._loop, self._queues, fsync, self._look)
        self._notices = Notices(core, self._loop)
        self._guests: dict[End, Guest] = {}
        self._ends: dict[NodeId, End] = {}
        self._is_receiving = False
        self._touched: dict[End, None] = {}  # something was sent to them, and is not out
        self._pacing = Pacing(self._door.limits, self._loop, lambda end: self._presence.heard(end))
        self._presence = Presence(
            self._loop,
            heartbeat,
            self._ping,
            self._refuse,
            self._pacing.is_unheard,
            beats=lambda: self._pacing.forget(self._ends),
        )
        self._batches = Batches()
        self._answering = Answering(self.engine, self._batches, self._answered, self.flush)
        self._hearing = Hearing(core, self.engine, self._door, self._pacing, self._batches)
        self._preparations = Preparations(
            core.router, self.engine.dispatch, self._pacing, self._batches, self._prepared, self._failed
        )
        self._handshake = Handshake(
            core,
            self._door,
            self._presence,
            self._guests,
            self._ends,
            routing,
            is_durable=store.is_durable,
            takes_clients=takes_clients,
        )
        self._congested: set[End] = set()  # neighbours that do not take what they are sent
        if trace is not None:
            trace.watch(core, time.time())
        self.engine.start()

    @property
    def name(self) -> NodeId:
        return self.core.name

    @property
    def guests(self) -> list[Guest]:
        return list(self._guests.values())

    def is_linked(self, end: End) -> bool:
        """Whether a neighbour is at the other end."""
        guest = self._guests.get(end)
        return guest is not None and guest.is_broker

    def close(self) -> list[End]:
        """End all connections, and return them: what was sent may be on its way out."""
        self._presence.close()
        self.measures.close()
        self.engine.close()
        self._preparations.close()
        ends = [*self._guests, *self._presence.strangers]
        for end in ends:
            self._refuse(end, "shutdown", f"{self.name} is shutting down")
        self._notices.close()
        return ends

    def _look(self) -> None:
        if self._trace is not None:
            self._trace.look(time.time())

    def _queues(self) -> Queues:
        waiting = dict.fromkeys((False, True), 0)
        for end, guest in self._guests.items():
            waiting[guest.is_broker] += end.waiting
        return Queues(self.engine.storing, self.engine.dispatch.waiting, waiting[False], waiting[True])

    # --- what the engine wants of the connections ---

    def send(self, to: NodeId, message: Message) -> None:
        end = self._ends.get(to)
        if end is None:
            return
        if type(message) in ANSWERS:
            self._answering.answer(to, end, message)  # type: ignore[arg-type]  # it is an answer
        else:
            self._put(end, message)

    def _put(self, end: End, message: Message) -> None:
        end.send(message)
        self._touched[end] = None
        if end.unsent > MUCH_UNSENT:
            self._flush_end(end)

    def _answered(self, to: NodeId, end: End, answer: Message) -> None:
        self._put(end, answer)
        self._notices.answered(to, answer)

    def part(self, neighbour: NodeId, code: str, reason: str) -> None:
        if neighbour in self._ends:
            self._refuse(self._ends[neighbour], code, reason)

    def gap_told(self, client: NodeId, name: str, gap: Gap) -> None:
        self._notices.gap_told(client, name, gap)

    def go_on(self, node: NodeId) -> None:
        end = self._ends.get(node)
        if end is not None:
            self._hearing.take_turn(end, self._guests[end])
            self.flush()

    def flush(self) -> None:
        """Let out what was sent; while messages are received, that waits for what the others cause."""
        if self._is_receiving:
            return
        if self._trace is not None:
            self._trace.flush()
        touched, self._touched = self._touched, {}
        for end in touched:
            end.flush()
            if self._congested and end in self._congested and end.waiting > MOST_WAITING:
                reason = f"{self._guests[end].name} does not take what it is sent: {end.waiting:,} bytes wait"
                self._refuse(end, "slow", reason)

    def _flush_end(self, end: End) -> None:
        self._flush_trace()
        end.flush()

    def _flush_trace(self) -> None:
        """Write out the trace: it records what is sent before anybody receives it."""
        if self._trace is not None:
            self._trace.flush()

    def admit_by(self, access: Access) -> None:
        """Let others in from now on. Who may do other things than before is sent away, and its sessions end."""
        changed = self._door.admit_by(access)
        for end, guest in list(self._guests.items()):
            if guest.identity is not None and guest.identity.name in changed:
                self._refuse(end, "access", f"what {guest.identity.name} may do has changed")
        for name, client in list(self.core.clients.items()):
            if name.partition(APART)[0] in changed:
                for subscription in list(client.subscriptions):
                    self.engine.take(Unsubscribe(subscription), name)
                for advertisement in list(client.advertisements):
                    self.engine.take(Unadvertise(advertisement), name)
                self.engine.take(Gone(name), self.name)
        self.flush()

    # --- connections ---

    def connected(self, end: End) -> None:
        """Somebody has connected, or was connected to. Where too many have not said who they are, the first is left."""
        strangers = self._presence.strangers
        if len(strangers) >= self._door.limits.strangers:
            self._refuse(strangers[0], "busy", "there are too many who have not said who they are")
        self._presence.came(end)

    def joining(self, at: str) -> None:
        """Note that the broker at an address is to be a neighbour, and is not linked."""
        self.engine.do(Joining(at))

    def joined(self, at: str) -> None:
        """Note that it is linked now, or reached in another way, or is not to be a neighbour any more."""
        self.engine.do(Joined(at))

    async def greet(self, end: End, at: str) -> Parting:
        """Introduce this broker to the one `at` an address, connected by `end`; when that is over, return why."""
        if not self._presence.is_stranger(end):
            return Parting("", CLOSED)  # it was over before this broker could say anything
        try:
            return await self._handshake.greet(end, at)
        except asyncio.CancelledError:
            self._refuse(end, "shutdown", f"{self.name} ends the link")
            raise

    def received(self, end: End, messages: Iterable[Message]) -> None:
        self._presence.heard(end)
        self._is_receiving = True
        try:
            for message in messages:
                guest = self._guests.get(end)
                if guest is not None:
                    if not (self._preparations.begin(end, guest, message) or self._hearing.take(end, guest, message)):
                        self._answer(end, guest, message)
                elif self._presence.is_stranger(end):
                    self._introduced(end, message)
        finally:
            self._is_receiving = False
            self.flush()

    def closed(self, end: End, reason: str, code: str = "") -> None:
        self._congested.discard(end)
        self._pacing.closed(end)
        self._batches.left(end)
        self._answering.left(end)
        self._preparations.left(end)
        guest, at = self._guests.pop(end, None), self._handshake.greeted(end)
        if guest is not None:
            self._door.left(guest)
            self._notices.left(guest, end, code, reason)
        elif self._presence.is_stranger(end) and at is None:
            self._notices.turned_away(end, code, reason)
        self._presence.left(end)
        self._handshake.closed(end, Parting(code, reason))
        if guest is not None and self._ends.get(guest.name) is end:
            del self._ends[guest.name]
            if guest.is_broker:
                if at is not None:
                    self.engine.do(Joining(at))
                self.engine.dispatch.link_down(guest.name)
                self.engine.do(LinkDown(guest.name))
            else:
                self.engine.dispatch.left(guest.name)
                self.engine.do(Gone(guest.name))

    def full(self, end: End) -> None:
        guest = self._guests.get(end)
        if guest is not None:
            self._notices.full(guest)
        if guest is not None and guest.is_broker:
            self._congested.add(end)
        elif guest is not None:
            self._pacing.full(end)  # who does not read is not read from, so that answers do not pile up
            self.engine.do(Full(guest.name))

    def drained(self, end: End) -> None:
        guest = self._guests.get(end)
        self._congested.discard(end)
        if guest is not None:
            self._notices.drained(guest)
        if guest is not None and not guest.is_broker:
            self._pacing.drained(end)
            self.engine.do(Drained(guest.name))

    def _prepared(self, end: End, guest: Guest, message: Message) -> None:
        """Handle a message that took long to prepare, if its sender is still here."""
        if self._guests.get(end) is guest:
            if not self._hearing.take(end, guest, message):
                self._answer(end, guest, message)
            self.flush()

    def _failed(self, end: End) -> None:
        self._close(end, UNHANDLED)

    def _answer(self, end: End, guest: Guest, message: Message) -> None:
        """Take in what is not for the broker core."""
        match message:
            case Ping():
                end.send(Pong())
                self._touched[end] = None
            case Pong():
                pass
            case Goodbye(code, reason):
                self._close(end, reason, code)
            case _:
                self._refuse(end, "role", f"{type(message).__name__} is not for {guest.name} to say")

    # --- who comes in ---

    def _introduced(self, end: End, message: Message) -> None:
        match message:
            case Hello() as hello:
                guest = self._handshake.entrant(hello, end)
                if isinstance(guest, Denied):
                    self._refuse(end, *guest)
                    return
                end.send(self._handshake.welcome(guest))
                if guest.is_broker and not hello.routing:
                    self._touched[end] = None  # it asks how this broker routes, and stays a stranger
                else:
                    self._admit(end, guest)
            case Welcome() as welcome if self._handshake.greeted(end) is not None:
                guest = self._handshake.welcomed(welcome, end)
                if isinstance(guest, Denied):
                    self._refuse(end, *guest)
                    return
                self._admit(end, guest)
            case Goodbye(code, reason):
                self._presence.left(end)  # by itself: it was not turned away
                self._close(end, reason, code)
            case Malformed(reason):
                self._refuse(end, "hello", reason)
            case _:
                self._refuse(end, "hello", f"the first message is Hello, not {type(message).__name__}")

    def _admit(self, end: End, guest: Guest) -> None:
        self._presence.known(end)
        before = self._ends.get(guest.name)
        if before is not None:
            self._refuse(before, "taken-over", f"{guest.name} has connected again")
        self._door.entered(guest)
        end.know(NEIGHBOUR if guest.is_broker else self._door.limits.bounds)
        self._guests[end] = guest
        self._ends[guest.name] = end
        self._touched[end] = None
        self._notices.entered(guest, end)
        if guest.is_broker:
            self.engine.take(LinkUp(guest.name), self.name)
            if (at := self._handshake.greeted(end)) is not None:
                self.engine.take(Joined(at), self.name)
        else:
            self.engine.attached(guest.name)

    # --- what goes out by itself ---

    def _ping(self, end: End) -> None:
        end.send(Ping())
        self._flush_end(end)

    def _refuse(self, end: End, code: str, reason: str) -> None:
        end.send(Goodbye(code, reason))
        self._close(end, reason, code)

    def _close(self, end: End, reason: str, code: str = "") -> None:
        """End a connection once all that was sent is out."""
        self._flush_trace()
        end.close()
        self.closed(end, reason, code)
