"""A broker as a process: listens, joins its neighbours, and ends when it is told to."""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, Self

from vestnik.broker.core import BrokerCore
from vestnik.broker.stored import StoredEvent
from vestnik.errors import CannotListen, InvalidAccess, InvalidSetting, NotAccepted
from vestnik.journal.folders import JOURNAL, Kind, kind_of, name_in, put_name
from vestnik.journal.reports import Recovery
from vestnik.logs import emit
from vestnik.model.events import Event
from vestnik.routing.propagation import Leases
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.server.access import Access
from vestnik.server.door import Door
from vestnik.server.engine import Store
from vestnik.server.handshake import Parting
from vestnik.server.host import NEIGHBOUR, BrokerHost
from vestnik.server.joins import FINAL, Join
from vestnik.server.memory import MemoryStore
from vestnik.server.settings import Settings
from vestnik.server.store import JournalStore
from vestnik.server.tracing import TraceFile
from vestnik.transport import tls
from vestnik.transport.addresses import Address
from vestnik.transport.ends import End, Receiver
from vestnik.transport.listening import Listener
from vestnik.transport.tcp import TURN, address, dial, listen
from vestnik.wire.origins import Origin

LOG: Final = logging.getLogger(__name__)

LINKED_WITHIN: Final = 3.0
"""Seconds in which whoever asks for a link hears what came of it, if that is known by then."""
LOOK_EVERY: Final = 0.02
DISK_WITHIN: Final = 0.3
"""Seconds for which a broker that has to leave waits for its disk, at least."""
TAKEN_WITHIN: Final = 0.3
"""Seconds in which clients and neighbours have to take what was sent before the broker leaves."""


class Past(Store, Protocol):
    """The store of a history."""

    def taken(self, lost: list[str]) -> Iterable[tuple[int, Event]]:
        """All events that it has, with the times at which they came; what is `lost` is told in words."""


class Broker:
    """Enter it to let it run.

    When it is left, it waits for its disk, after `leave_within` not for long. It syncs events before it acknowledges
    them, so nothing of these is lost.

    One that does not listen is for clients in its own process, and for neighbours that it joins. One that is a
    `history` stores nothing else, and does not announce what its own client wants; that store is not closed by it.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        listens: bool = True,
        history: Past | None = None,
    ) -> None:
        self.settings = settings
        self._history = history
        self._listens = listens
        self._deadline: float | None = None  # by the steady clock
        self.address = ""  # where it listens
        self._server: Listener | None = None
        self._joins: dict[Address, Join] = {}
        self._keeping: dict[Address, asyncio.Task[Parting]] = {}
        self._journal: JournalStore | None = None
        self._trace: TraceFile | None = None
        self._dialling: ssl.SSLContext | None = None
        self.reloaded: Callable[[], None] = lambda: None  # called when certificates were read again

    async def __aenter__(self) -> Self:
        settings = self.settings
        door = Door(None if settings.access is None else Access.read(settings.access), settings.limits)
        listening = self._secure()
        kind = AdvertisingRouter if settings.advertisements else Router
        leases = Leases(settings.lease, settings.lease / 4, grace=max(2 * settings.sweep, settings.lease / 2))
        router = kind(make_strategy(settings.routing), leases)
        stored: Iterable[StoredEvent] = ()
        if settings.data is not None:
            self._journal = _journal(settings.data, settings)
            for folder, recovery in self._journal.recoveries.items():
                _tell_recovery(folder, recovery)
            stored = self._journal.stored()
        memory = MemoryStore(time.time_ns() // 1000)
        store = self._history or self._journal or memory
        if settings.trace is not None:
            self._trace = TraceFile(settings.trace, settings.name)
            self._trace.begin(Origin(settings.name, store.log.id), time.time())
            stored = self._trace.complete(stored)
        announces = self._history is None
        core = BrokerCore(
            settings.name,
            router,
            settings.sweep,
            stored,
            store.log,
            announces=announces,
            limits=settings.recovery_limits,
        )
        memory.look_at(core.recovery.tail)
        for lost in self._journal.unread if self._journal is not None else ():
            fields = {"folder": settings.data, "first": lost.first, "last": lost.last, "reason": lost.reason}
            emit(LOG, logging.WARNING, "journal.unreadable", "stored events cannot be read", **fields)
        takes_clients = settings.role != "router"
        self.host = BrokerHost(
            core,
            settings.way_of_routing,
            store,
            takes_clients=takes_clients,
            trace=self._trace,
            stored=store.taken,
            links=self,
            door=door,
            heartbeat=settings.heartbeat,
            fsync=None if self._journal is None else self._journal.fsync,
        )
        if self._listens:
            try:
                self._server = await listen(
                    self.host,
                    *settings.listen,
                    tls=listening,
                    largest=settings.limits.stranger_bytes,
                    opening=settings.limits.strangers,
                )
            except OSError as error:
                await self.__aexit__()
                raise CannotListen(str(settings.listen), _why_not(error)) from None
            self.address = address(self._server.address)
            emit(LOG, logging.INFO, "broker.listening", f"listening on {self.address}", address=self.address)
        for at in settings.join:
            self._join(at)
        return self

    async def link(self, at: Address) -> str:
        """Be a neighbour of the broker there from now on; NotAccepted where that one will not be.

        One that does not answer is tried again and again.
        """
        name = self.settings.name
        if at in self._joins:
            return f"{name} has a link to {at}, or tries to make it"
        self._join(at)
        join = self._joins[at]
        with suppress(TimeoutError):
            async with asyncio.timeout(LINKED_WITHIN):
                while not join.is_up(self.host) and join.failed is None:
                    await asyncio.sleep(LOOK_EVERY)
        if join.is_up(self.host):
            return f"{name} is linked with the broker at {at}"
        code, reason = join.failed or Parting("", f"no answer for {LINKED_WITHIN:g} seconds")
        if code in FINAL:
            self.unlink(at)
            raise NotAccepted(f"a link from {name} to {at}", reason)
        return f"{name} cannot make a link to {at} yet ({reason}), and tries on: vestnik link remove {at} ends that"

    def unlink(self, at: Address) -> str:
        """Be a neighbour of the broker there no more; NotAccepted where it was not joined by this one."""
        if self._joins.pop(at, None) is None:
            made = f"it made links to {', '.join(map(str, self._joins))}" if self._joins else "it made none at all"
            raise NotAccepted(f"end the link to {at}", f"{self.settings.name} made no such link; {made}")
        self._keeping.pop(at).cancel()
        return f"{self.settings.name} ends the link to {at}"

    def _secure(self) -> ssl.SSLContext | None:
        """How this broker is connected to; it connects to its neighbours in the same way."""
        cert, key, ca = self.settings.tls_cert, self.settings.tls_key, self.settings.tls_ca
        if cert is None or key is None:
            return None
        listening, self._dialling = tls.listening(cert, key, ca), tls.dialling(ca, cert, key)
        return listening

    def reload(self) -> None:
        """Read the certificates and the access file again. What is wrong with them is said, and all stays as it was."""
        try:
            access = None if self.settings.access is None else Access.read(self.settings.access)
            listening = self._secure()
            self.reloaded()
        except (InvalidSetting, InvalidAccess) as error:
            reason = str(error)
            emit(LOG, logging.WARNING, "access.kept", "certificates and access stay as they were", reason=reason)
            return
        if self._server is not None:
            self._server.secure(listening)
        if access is not None:
            self.host.admit_by(access)
        emit(LOG, logging.INFO, "access.reloaded", "certificates and access were read again")

    def leave_within(self, seconds: float) -> None:
        """Let the process end so soon: the broker will be left by then, and does not wait for its disk any longer."""
        self._deadline = time.monotonic() + seconds

    async def __aexit__(self, *_: object) -> None:
        began, guests = time.monotonic(), self.host.guests
        links = sum(guest.is_broker for guest in guests)
        emit(LOG, logging.INFO, "shutdown.began", "shutting down", clients=len(guests) - links, links=links)
        if self._server is not None:
            await self._server.close()
        for task in self._keeping.values():
            task.cancel()
        await asyncio.gather(*self._keeping.values(), return_exceptions=True)
        await _taken(self.host.close())
        if self._journal is not None:
            within = None if self._deadline is None else max(DISK_WITHIN, self._deadline - time.monotonic())
            try:
                await self._journal.close(within)
            except TimeoutError:
                waited = {"seconds": within, "folder": self.settings.data}
                emit(LOG, logging.WARNING, "store.abandoned", "the disk is not waited for any longer", **waited)
        if self._trace is not None:
            self._trace.close()
        store = self._history or self._journal
        stored = {"position": store.position} if store is not None and store.is_durable else {}
        fields = {"seconds": round(time.monotonic() - began, 3), "taken": self.host.counts.taken, **stored}
        emit(LOG, logging.INFO, "shutdown.ended", "the broker has ended", **fields)

    @property
    def missing(self) -> list[Address]:
        """The neighbours that it is to join and is not linked with."""
        return [at for at, join in self._joins.items() if not join.is_up(self.host)]

    @property
    def failure(self) -> str:
        """Why it can store nothing any more, until it is started again; empty if it can."""
        return "" if self._journal is None else self._journal.failure

    def _join(self, at: Address) -> None:
        """Make a link to the broker there, and keep it."""

        async def connect(receiver: Receiver) -> End:
            return await dial(receiver, *at, tls=self._dialling, bounds=NEIGHBOUR, turn=TURN)

        self._joins[at] = join = Join(str(at), connect)
        self._keeping[at] = asyncio.create_task(join.keep(self.host))


def _tell_recovery(folder: Path, found: Recovery) -> None:
    level, what = logging.INFO, "the journal was read"
    fields: dict[str, Any] = {"folder": folder, "records": found.records, "last": found.last}
    if not found.is_clean:
        level, what = logging.WARNING, "the journal was read, and some of it is lost"
        fields["lost"] = sum(gap.last - gap.first + 1 for gap in found.lost)
        fields["reason"] = "; ".join(found.problems)
    if found.rebuilt:
        fields["rebuilt"] = ", ".join(found.rebuilt)
    emit(LOG, level, "journal.recovered", what, **fields)


async def _taken(ends: Iterable[End]) -> None:
    """Wait until what was sent to others is out, or TAKEN_WITHIN is over."""
    waiting = [asyncio.ensure_future(end.over()) for end in ends]
    if waiting:
        _, late = await asyncio.wait(waiting, timeout=TAKEN_WITHIN)
        for task in late:
            task.cancel()


def _journal(folder: Path, settings: Settings) -> JournalStore:
    try:
        if (wrong := _other_than_brokers(folder)) is not None:
            raise InvalidSetting("data", f"{folder} is {wrong}")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (known := name_in(folder)) not in ("", settings.name):
            reason = f"{folder} is the folder of the broker {known}: go on by that name, or choose another folder"
            raise InvalidSetting("name", reason)
        store = JournalStore(folder / JOURNAL, settings.retention(), settings.retain_latest_by)
        put_name(folder, settings.name)
        return store
    except OSError as error:
        raise InvalidSetting("data", f"{folder} cannot be used: {error.strerror or error}") from None


def _other_than_brokers(folder: Path) -> str | None:
    """Return what a folder is that no broker can use, and what to do; None if one can."""
    match kind_of(folder):
        case Kind.HISTORY:
            return "the folder of a history: its segments are not in a journal; choose another folder for the broker"
        case Kind.PART:
            return f"inside the data folder of a broker: name {folder.parent}, or choose another folder"
        case _:
            return None


def _why_not(error: OSError) -> str:
    """Why one cannot listen somewhere, and what to do."""
    match error.errno:
        case errno.EADDRINUSE:
            return "the port is in use, maybe by another broker; choose another, or 0 for any that is free"
        case errno.EACCES:
            return "this user may not use that port; choose one above 1023"
        case errno.EADDRNOTAVAIL:
            return "this machine has no such address"
        case _:
            return error.strerror or str(error)
