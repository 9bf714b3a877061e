"""A broker inside a program that joins another: it routes as that one does."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from vestnik.client.arguments import check_text, check_timeout
from vestnik.client.services import ServiceBus
from vestnik.errors import NoBroker, TurnedAway, Unreachable, VestnikError
from vestnik.server.host import NEIGHBOUR
from vestnik.server.joins import FINAL, Join, longer
from vestnik.server.process import Broker, Past
from vestnik.server.settings import DEFAULT_ROUTING, Settings
from vestnik.server.terms import Terms, ask_terms
from vestnik.transport import tls
from vestnik.transport.addresses import Address
from vestnik.transport.ends import Dial, End, Receiver
from vestnik.transport.memory import pair
from vestnik.transport.tcp import TURN, dial
from vestnik.wire.messages import NodeId

HERE: Final = "this process"
LOOK_EVERY: Final = 0.01
ROUTING: Final = "routing"
"""The word with which a broker refuses a neighbour that routes in another way."""
TERMS: Final = frozenset({ROUTING, "lease"})
"""The words with which a broker refuses a neighbour that has other terms."""


class Uplink(NamedTuple):
    """The broker to join: where it is, for people, and how to connect to it."""

    at: str
    dial: Dial


class Embedded:
    """A broker called `name`. With `join` it is linked when it has started: within `timeout` seconds, or never.

    It takes over the lease of the broker that it joins, and how that routes; if `routing` or `advertisements` are
    given, the other must route so. If the other comes back with another routing or lease, this broker starts again,
    as one without a data folder does: its clients connect again by themselves. A history outlives that.
    """

    def __init__(
        self,
        name: NodeId,
        join: Address | Uplink | None,
        *,
        routing: str | None,
        advertisements: bool | None,
        tls_cert: Path | None,
        tls_key: Path | None,
        tls_ca: Path | None,
        timeout: float | None,
    ) -> None:
        check_text("the strategy of routing", routing)
        check_timeout("the timeout of a link", timeout)
        is_given = routing is not None or advertisements is not None
        self._settings = Settings(
            name=name,
            routing=DEFAULT_ROUTING if routing is None else routing,
            advertisements=bool(advertisements),
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_ca=tls_ca,
        )
        self._way = self._settings.way_of_routing if is_given else None
        self._join = join
        self._timeout = timeout
        self._history: Past | None = None
        self._broker: Broker | None = None
        self._link: Join | None = None
        self._failure: VestnikError | None = None  # why the last question was not answered
        self._was_linked = False
        self._running: asyncio.Task[None] | None = None

    @property
    def name(self) -> NodeId:
        return self._settings.name

    async def start(self, history: Past | None = None) -> None:
        """Let it run, with this store if it is a history.

        Raise Unreachable if the broker that it joins does not answer in time; if that refuses, TurnedAway at once.
        """
        self._history = history
        if self._join is None:
            self._broker = await self._made(self._settings)
            return
        uplink = self._join if isinstance(self._join, Uplink) else _over_tcp(self._join, self._settings)
        self._running = asyncio.create_task(self._run(uplink))
        try:
            async with asyncio.timeout(self._timeout):
                await self._until_linked(uplink.at)
        except TimeoutError:
            await self.stop()
            raise self._failure or Unreachable(uplink.at, f"no answer in {self._timeout:g} seconds") from None
        except BaseException:
            await self.stop()
            raise
        self._was_linked = True

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        elif self._broker is not None:
            broker, self._broker = self._broker, None
            await broker.__aexit__()

    @property
    def broker(self) -> Broker:
        """The broker, which is another after a start by another routing. OSError while it is not running."""
        if self._broker is None:
            raise OSError(0, f"the broker {self.name} inside this program is not running")
        return self._broker

    def connect(self, receiver: Receiver, name: str) -> End:
        """Return the other end of a new connection to the broker. OSError while it is not running."""
        return pair(receiver, self.broker.host, (name, self.name))[0]

    def client(self, name: str | None = None) -> ServiceBus:
        """Return a client of the broker, for `async with`."""

        async def reach(receiver: Receiver) -> End:
            return self.connect(receiver, name or "a client in this process")

        return ServiceBus(reach, HERE, name=name)

    async def _run(self, uplink: Uplink) -> None:
        """Run a broker by the terms of the other, and the next one when these have changed."""
        while True:
            broker = self._broker = await self._agreed(uplink)
            self._link = Join(uplink.at, uplink.dial)
            try:
                await self._link.keep(broker.host, until=TERMS)
            finally:
                self._broker = self._link = None
                await broker.__aexit__()

    async def _made(self, settings: Settings) -> Broker:
        return await Broker(settings, listens=False, history=self._history).__aenter__()

    async def _agreed(self, uplink: Uplink) -> Broker:
        """Ask the other for its terms until it answers, and start a broker by them.

        Before the first link, raise what does not change by itself.
        """
        pause = 0.0
        while True:
            try:
                terms = await ask_terms(uplink.dial, uplink.at, self.name)
                return await self._made(self._settings_by(terms, uplink.at))
            except VestnikError as error:
                if not (self._was_linked or _may_pass(error)):
                    raise
                self._failure = error
            pause = longer(pause)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    def _settings_by(self, terms: Terms, at: str) -> Settings:
        if self._way not in (None, terms.way):
            hint = "leave out routing and advertisements to route as it does"
            raise TurnedAway(at, ROUTING, f"it routes by {terms.way}, not by {self._way}; {hint}")
        sweep = min(self._settings.sweep, terms.lease / 4)
        return replace(
            self._settings,
            routing=terms.routing,
            advertisements=terms.advertisements,
            lease=terms.lease,
            sweep=sweep,
            heartbeat=min(self._settings.heartbeat, terms.lease / 3),
        )

    async def _until_linked(self, at: str) -> None:
        """Wait for the link and for what the other says of the network. Raise what keeps it from being made."""
        assert self._running is not None
        while self._broker is None or self._broker.host.core.recovery.meeting.missing:
            if self._running.done():
                await self._running
            if self._link is not None and self._link.failed is not None:
                code, reason = self._link.failed
                self._failure = TurnedAway(at, code, reason) if code else Unreachable(at, reason)
                if not _may_pass(self._failure):
                    raise self._failure
            await asyncio.sleep(LOOK_EVERY)


def _over_tcp(at: Address, settings: Settings) -> Uplink:
    cert, key, ca = settings.tls_cert, settings.tls_key, settings.tls_ca
    context = None if cert is None or key is None else tls.dialling(ca, cert, key)

    async def connect(receiver: Receiver) -> End:
        return await dial(receiver, *at, tls=context, bounds=NEIGHBOUR, turn=TURN)

    return Uplink(str(at), connect)


def _may_pass(error: VestnikError) -> bool:
    """Whether the same attempt may succeed later: the other is not up yet, or takes an earlier link for alive."""
    if isinstance(error, TurnedAway):
        return error.code == "connected" or error.code not in FINAL
    return isinstance(error, Unreachable) and not isinstance(error, NoBroker)
