"""The handshake: a peer says Hello first. The broker lets it in as a client or a neighbour, or says why not.

A broker that this one connects to is greeted with Hello, and answers with Welcome.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Set
from typing import NamedTuple

from vestnik.broker.core import BrokerCore
from vestnik.server.door import Denied, Door, Guest, unlike_lease
from vestnik.server.presence import Presence
from vestnik.transport.ends import End
from vestnik.wire.frames import VERSION
from vestnik.wire.messages import Hello, NodeId, Welcome


class Parting(NamedTuple):
    """Why a connection is over, in a word, if somebody said it, and in a sentence."""

    code: str
    reason: str


class Greeting(NamedTuple):
    """A connection that this broker made, to the broker `at` an address; `over` is why it has ended."""

    at: str
    over: asyncio.Future[Parting]


class Handshake:
    """Decides who is let in at one broker, where the `guests` are. `routing` says how the broker routes."""

    def __init__(
        self,
        core: BrokerCore,
        door: Door,
        presence: Presence,
        guests: Mapping[End, Guest],
        ends: Mapping[NodeId, End],
        routing: str,
        *,
        is_durable: bool,
        takes_clients: bool,
    ) -> None:
        self._core = core
        self._door = door
        self._presence = presence
        self._guests = guests
        self._ends = ends
        self._routing = routing
        self._is_durable = is_durable
        self._takes_clients = takes_clients
        self._greeted: dict[End, Greeting] = {}
        self._life = secrets.randbits(62) + 1

    # --- brokers that this one connects to ---

    async def greet(self, end: End, at: str) -> Parting:
        """Introduce this broker to the one `at` an address; when the connection is over, return why."""
        over: asyncio.Future[Parting] = asyncio.get_running_loop().create_future()
        self._greeted[end] = Greeting(at, over)
        brokers = tuple(self._core.topology.linked())
        end.send(Hello(VERSION, self._core.name, True, "", self._routing, brokers, self._life, self._lease))
        end.flush()
        return await over

    def greeted(self, end: End) -> str | None:
        """Return the address to which this broker made a connection; None if the other side made it."""
        greeting = self._greeted.get(end)
        return None if greeting is None else greeting.at

    def closed(self, end: End, parting: Parting) -> None:
        greeting = self._greeted.pop(end, None)
        if greeting is not None and not greeting.over.done():
            greeting.over.set_result(parting)

    def welcomed(self, welcome: Welcome, end: End) -> Guest | Denied:
        """Return the broker that was greeted; or why it cannot be a neighbour."""
        own, name = self._core.name, welcome.name
        if welcome.version != VERSION or name == own or name in self._ends:
            return Denied("name", f"{own} cannot be a neighbour of {name}, version {welcome.version}")
        return self._door.neighbour(name, end.certificates, welcome.life)

    # --- who comes in ---

    def entrant(self, hello: Hello, end: End) -> Guest | Denied:
        """Return the guest that says Hello; or why it is not let in. Its identity is checked first."""
        if hello.version != VERSION:
            return Denied("version", f"this broker speaks version {VERSION} of the protocol, not {hello.version}")
        guest = self._door.who(hello, end.certificates)
        return guest if isinstance(guest, Denied) else self._unwanted(guest, hello) or guest

    def welcome(self, guest: Guest) -> Welcome:
        """Return the answer to a guest that is let in."""
        known = VERSION, self._core.name, self._is_durable
        return Welcome(*known, self._life, self._routing, self._lease) if guest.is_broker else Welcome(*known)

    def _unwanted(self, guest: Guest, hello: Hello) -> Denied | None:
        own = self._core.name
        known = self._ends.get(guest.name)
        before = None if known is None else self._guests[known]
        if guest.is_broker and guest.life == self._life:
            return Denied("name", f"that is {own} itself, and not another broker")
        if guest.name == own:
            return Denied("name", f"this broker is called {own}; choose a name of your own")
        if known is not None and before is not None and before.is_broker:
            self._presence.doubt(known)
            if not self._is_known_again(before, guest, hello):
                return Denied("connected", f"{guest.name} is connected already")
        elif guest.is_broker and guest.name in self._core.clients:
            return Denied("name", f"{guest.name} is connected already")
        if guest.is_broker and hello.routing not in ("", self._routing):
            return Denied("routing", f"this broker routes by {self._routing}, not by {hello.routing}")
        if guest.is_broker and (unlike := unlike_lease(self._lease, hello)):
            return unlike
        twice = self._core.topology.linked(without=hello.name).intersection(hello.brokers)
        if twice:
            return Denied("cycle", f"it would close a cycle, and brokers form a tree: {self._known_by(hello, twice)}")
        if not guest.is_broker and not self._takes_clients:
            return Denied("role", f"{own} takes no clients")
        return None if known is not None else self._door.crowded(guest, len(self._guests))

    def _known_by(self, hello: Hello, twice: Set[NodeId]) -> str:
        own = self._core.name
        if own in twice:
            return f"{hello.name} reaches {own} already; leave it out"
        return f"{hello.name} and {own} both reach {', '.join(sorted(twice))} already; leave it out"

    def _is_known_again(self, before: Guest, guest: Guest, hello: Hello) -> bool:
        """Whether it is a neighbour that was here before, and does not know of its link any more."""
        return guest.is_broker and guest.life == before.life != 0 and self._core.name not in hello.brokers

    @property
    def _lease(self) -> float:
        return self._core.router.leases.length
