"""The connections of a broker: who is at the other end, and what they may say.

Whoever connects says Hello first, and is then a client or a neighbour by its name.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine, Iterable, Set
from functools import partial
from typing import Any, Final, NamedTuple

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
from vestnik.server.desk import Desk, Links, StoredEvents, nothing
from vestnik.server.dispatch import LOOK_EVERY
from vestnik.server.door import Denied, Door, Guest, unlike_lease
from vestnik.server.engine import Engine, Store
from vestnik.server.measures import Measures, Queues
from vestnik.server.names import APART
from vestnik.server.notices import ANSWERS, Notices
from vestnik.server.pacing import Pacing
from vestnik.server.parts import Batches
from vestnik.server.preparing import MOST_BYTES_AHEAD, Prepared, preparation_of
from vestnik.server.presence import Presence
from vestnik.server.room import Room
from vestnik.server.settings import HEARTBEAT
from vestnik.server.tracing import TraceFile
from vestnik.transport.ends import CLOSED, UNHANDLED, End
from vestnik.wire.bounds import Bounds
from vestnik.wire.frames import VERSION
from vestnik.wire.messages import (
    Addressed,
    AdminA,
    AdminS,
    Advertise,
    Announce,
    Ask,
    Fetch,
    FetchMore,
    Gap,
    Goodbye,
    Hello,
    Malformed,
    Message,
    NodeId,
    Ping,
    Pong,
    Publish,
    Question,
    Recalled,
    Refused,
    Review,
    Stored,
    Subscribe,
    Took,
    Unadvertise,
    Unsubscribe,
    Welcome,
)
from vestnik.wire.origins import (
    FetchPage,
    Frontiers,
    OriginGone,
    OriginHere,
    OriginOffers,
    PageRead,
    Routed,
)

MOST_WAITING = 64 * 1024 * 1024
"""Bytes that wait for a neighbour before its link is ended. When it is there again it asks for what it missed."""

MUCH_UNSENT: Final = 32 * 1024
"""Bytes for one connection that do not wait for the next flush."""

NEIGHBOUR: Final = Bounds(filters=None)
"""The bounds for neighbours, which are trusted."""

BY_BROKERS: Final = frozenset(
    {Routed, AdminS, AdminA, Announce, Addressed, OriginHere, OriginGone, OriginOffers, Frontiers, FetchPage, PageRead}
)
BY_CLIENTS: Final = frozenset(
    {
        Publish,
        Subscribe,
        Unsubscribe,
        Advertise,
        Unadvertise,
        Fetch,
        FetchMore,
        Review,
        Malformed,
        Ask,
        Took,
        Question,
        Recalled,
    }
)


class Parting(NamedTuple):
    """Why a connection is over, in a word, if somebody said it, and in a sentence."""

    code: str
    reason: str


class Greeting(NamedTuple):
    """A connection that this broker made, to the broker `at` an address; `over` is why it has ended."""

    at: str
    over: asyncio.Future[Parting]


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
        self._routing = routing
        self._store = store
        self._takes_clients = takes_clients
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
        self._greeted: dict[End, Greeting] = {}
        self._is_receiving = False
        self._touched: dict[End, None] = {}  # something was sent to them, and is not out
        self._pacing = Pacing(self._door.limits, self._loop, lambda end: self._presence.heard(end))
        self._presence = Presence(
            self._loop, heartbeat, self._refuse, self._pacing.is_unheard, beats=lambda: self._pacing.forget(self._ends)
        )
        self._preparing: dict[End, asyncio.Task[Prepared]] = {}
        self._room = Room(MOST_BYTES_AHEAD)
        self._batches = Batches()
        self._unanswered: dict[End, list[Message]] = {}  # answers that wait for slow readers
        self._congested: set[End] = set()  # neighbours that do not take what they are sent
        self._life = secrets.randbits(62) + 1
        if trace is not None:
            trace.begin(core, time.time())
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
        for task in self._preparing.values():
            task.cancel()
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
        if isinstance(message, Stored | Refused):
            answer = self._batches.answered(to, message)
            if answer is None:
                return
            message = answer
            if isinstance(message, Stored) and self.engine.answers_wait(to):
                self._answer_later(end, message)
                return
        self._send(to, end, message)

    def _send(self, to: NodeId, end: End, message: Message) -> None:
        end.send(message)
        self._touched[end] = None
        if end.unsent > MUCH_UNSENT:
            self._flush_trace()
            end.flush()
        if type(message) in ANSWERS:
            self._notices.answered(to, message)

    def _answer_later(self, end: End, answer: Message) -> None:
        """Answer a publication of a client that lags itself when slow readers have read on."""
        if not self._unanswered:
            self._loop.call_later(LOOK_EVERY, self._answer)
        self._unanswered.setdefault(end, []).append(answer)

    def _answer(self) -> None:
        """Send the answers for which it is time; the others wait on."""
        unanswered, self._unanswered = self._unanswered, {}
        for end, answers in unanswered.items():
            guest = self._guests.get(end)
            for answer in answers if guest is not None else ():
                assert guest is not None
                if self.engine.answers_wait(guest.name):
                    self._answer_later(end, answer)
                else:
                    self._send(guest.name, end, answer)
        self.flush()

    def part(self, neighbour: NodeId, code: str, reason: str) -> None:
        if neighbour in self._ends:
            self._refuse(self._ends[neighbour], code, reason)

    def gap_told(self, client: NodeId, name: str, gap: Gap) -> None:
        self._notices.gap_told(client, name, gap)

    def go_on(self, node: NodeId) -> None:
        end = self._ends.get(node)
        if end is not None:
            self._take_turn(end, self._guests[end])
            self.flush()

    def flush(self) -> None:
        """Let out what was sent; while messages are received, that waits for what the others cause."""
        if self._is_receiving:
            return
        self._flush_trace()
        touched, self._touched = self._touched, {}
        for end in touched:
            end.flush()
            if end in self._congested and end.waiting > MOST_WAITING:
                reason = f"{self._guests[end].name} does not take what it is sent: {end.waiting:,} bytes wait"
                self._refuse(end, "slow", reason)

    def _flush_trace(self) -> None:
        """Write what the trace has: whoever receives something finds it there."""
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
        over: asyncio.Future[Parting] = self._loop.create_future()
        self._greeted[end] = Greeting(at, over)
        brokers, lease = tuple(self.core.topology.linked()), self.core.router.leases.length
        end.send(Hello(VERSION, self.name, True, "", self._routing, brokers, self._life, lease))
        end.flush()
        try:
            return await over
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
                    preparation = preparation_of(message, guest, end.size, self.core.router, self._room)
                    if preparation is None:
                        self._heard(end, guest, message)
                    else:
                        self._prepare(end, guest, preparation)
                elif self._presence.is_stranger(end):
                    self._introduced(end, message)
        finally:
            self._is_receiving = False
            self.flush()

    def closed(self, end: End, reason: str, code: str = "") -> None:
        self._congested.discard(end)
        self._pacing.closed(end)
        self._batches.left(end)
        if end in self._preparing:
            self._preparing.pop(end).cancel()
        guest = self._guests.pop(end, None)
        if guest is not None:
            self._door.left(guest)
            self._notices.left(guest, end, code, reason)
        elif self._presence.is_stranger(end) and end not in self._greeted:
            self._notices.turned_away(end, code, reason)
        self._presence.left(end)
        greeted = self._greeted.pop(end, None)
        if greeted is not None and not greeted.over.done():
            greeted.over.set_result(Parting(code, reason))
        if guest is not None and self._ends.get(guest.name) is end:
            del self._ends[guest.name]
            if guest.is_broker:
                if greeted is not None:
                    self.engine.do(Joining(greeted.at))
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

    def _prepare(self, end: End, guest: Guest, preparation: Coroutine[Any, Any, Prepared]) -> None:
        """Handle a message once it is prepared; what the same end sends next comes after it."""
        self._pacing.preparing(end)
        task = self._preparing[end] = self._loop.create_task(preparation)
        task.add_done_callback(partial(self._prepared, end, guest))

    def _prepared(self, end: End, guest: Guest, done: asyncio.Task[Prepared]) -> None:
        if self._preparing.get(end) is done:
            del self._preparing[end]
        if done.cancelled():
            return
        try:
            message, release = done.result()
            try:
                if self._guests.get(end) is guest:
                    self._heard(end, guest, message)
                    self.flush()
            finally:
                self.engine.dispatch.when_routed(guest.name, partial(self._routed, end, guest, release))
        except BaseException:
            end.close()
            self.closed(end, UNHANDLED)
            raise

    def _routed(self, end: End, guest: Guest, release: Callable[[], None]) -> None:
        """Free what was kept for a message, and read on, when all its events are routed."""
        if self._batches.is_open(end):
            again = partial(self._routed, end, guest, release)
            if self.engine.dispatch.is_idle(guest.name):  # the rest waits for slow readers
                self._loop.call_later(LOOK_EVERY, again)
            else:
                self.engine.dispatch.when_routed(guest.name, again)
            return
        release()
        self._pacing.prepared(end)

    def _heard(self, end: End, guest: Guest, message: Message) -> None:
        kind = type(message)
        if kind in BY_CLIENTS and not guest.is_broker:
            if isinstance(message, Publish):
                self._pacing.published(guest.name, end, len(message.events))
            permitted = self._door.permitted(message, guest, self.core)
            if not isinstance(permitted, Publish):
                self.engine.take(permitted, guest.name)
                return
            if len(permitted.events) <= self.engine.dispatch.room(guest.name):
                self.engine.take(permitted, guest.name)
            else:
                self._batches.begin(guest.name, end, permitted)
                self._take_turn(end, guest)
        elif kind in BY_BROKERS and guest.is_broker:
            self.engine.dispatch.take(message, guest.name)
            self._take_turn(end, guest)
        elif kind is Ping:
            end.send(Pong())
            self._touched[end] = None
        elif isinstance(message, Goodbye):
            end.close()
            self.closed(end, message.reason, message.code)
        elif kind is not Pong:
            self._refuse(end, "role", f"{kind.__name__} is not for {guest.name} to say")

    def _take_turn(self, end: End, guest: Guest) -> None:
        """Take as much of a batch as there is room for. Without room, read nothing more from this end."""
        dispatch = self.engine.dispatch
        while self._batches.is_open(end) and (room := dispatch.room(guest.name)) > 0:
            self.engine.take(self._batches.take(end, room), guest.name)
        if dispatch.is_behind(guest.name) if guest.is_broker else dispatch.room(guest.name) <= 0:
            self._pacing.behind(end)
        else:
            self._pacing.caught_up(end)

    # --- who comes in ---

    def _introduced(self, end: End, message: Message) -> None:
        match message:
            case Hello() as hello:
                guest = self._entrant(hello, end)
                if isinstance(guest, Denied):
                    self._refuse(end, *guest)
                    return
                end.send(self._welcome(guest))
                if guest.is_broker and not hello.routing:
                    self._touched[end] = None  # it asks how this broker routes, and stays a stranger
                else:
                    self._admit(end, guest)
            case Welcome(version=version, name=name) if end in self._greeted:
                if version != VERSION or name == self.name or name in self._ends:
                    self._refuse(end, "name", f"{self.name} cannot be a neighbour of {name}, version {version}")
                    return
                guest = self._door.neighbour(name, end.certificates, message.life)
                if isinstance(guest, Denied):
                    self._refuse(end, *guest)
                    return
                self._admit(end, guest)
            case Goodbye(code, reason):
                end.close()
                self._presence.left(end)  # by itself: it was not turned away
                self.closed(end, reason, code)
            case Malformed(reason):
                self._refuse(end, "hello", reason)
            case _:
                self._refuse(end, "hello", f"the first message is Hello, not {type(message).__name__}")

    def _welcome(self, guest: Guest) -> Welcome:
        known = VERSION, self.name, self._store.is_durable
        if not guest.is_broker:
            return Welcome(*known)
        return Welcome(*known, self._life, self._routing, self.core.router.leases.length)

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
            if end in self._greeted:
                self.engine.take(Joined(self._greeted[end].at), self.name)
        else:
            self.engine.attached(guest.name)

    def _entrant(self, hello: Hello, end: End) -> Guest | Denied:
        """Who says Hello; or why it is not let in. Who it is comes before all else."""
        if hello.version != VERSION:
            return Denied("version", f"this broker speaks version {VERSION} of the protocol, not {hello.version}")
        guest = self._door.who(hello, end.certificates)
        return guest if isinstance(guest, Denied) else self._unwanted(guest, hello) or guest

    def _unwanted(self, guest: Guest, hello: Hello) -> Denied | None:
        known = self._ends.get(guest.name)
        before = None if known is None else self._guests[known]
        if guest.is_broker and guest.life == self._life:
            return Denied("name", f"that is {self.name} itself, and not another broker")
        if guest.name == self.name:
            return Denied("name", f"this broker is called {self.name}; choose a name of your own")
        if known is not None and before is not None and before.is_broker:
            self._presence.doubt(known)
            if not self._is_known_again(before, guest, hello):
                return Denied("connected", f"{guest.name} is connected already")
        elif guest.is_broker and guest.name in self.core.clients:
            return Denied("name", f"{guest.name} is connected already")
        if guest.is_broker and hello.routing not in ("", self._routing):
            return Denied("routing", f"this broker routes by {self._routing}, not by {hello.routing}")
        if guest.is_broker and (unlike := unlike_lease(self.core.router.leases.length, hello)):
            return unlike
        twice = self.core.topology.linked(without=hello.name).intersection(hello.brokers)
        if twice:
            return Denied("cycle", f"it would close a cycle, and brokers form a tree: {self._known_by(hello, twice)}")
        if not guest.is_broker and not self._takes_clients:
            return Denied("role", f"{self.name} takes no clients")
        return None if known is not None else self._door.crowded(guest, len(self._guests))

    def _known_by(self, hello: Hello, twice: Set[NodeId]) -> str:
        if self.name in twice:
            return f"{hello.name} reaches {self.name} already; leave it out"
        return f"{hello.name} and {self.name} both reach {', '.join(sorted(twice))} already; leave it out"

    def _is_known_again(self, before: Guest, guest: Guest, hello: Hello) -> bool:
        """Whether it is a neighbour that was here before, and does not know of its link any more."""
        return guest.is_broker and guest.life == before.life != 0 and self.name not in hello.brokers

    def _refuse(self, end: End, code: str, reason: str) -> None:
        end.refuse(code, reason)
        self.closed(end, reason, code)
