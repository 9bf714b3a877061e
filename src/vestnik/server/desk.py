"""Answers what a broker is asked, and does what it is told to by whoever administers it.

| kind | about | answer |
| --- | --- | --- |
| status | | what there is to see at a glance |
| clients | name | its clients, with their subscriptions and advertisements |
| event | id, source, client, given | what became of an event here |
| history | | what is stored: how much, from when to when, of which types, and what is lost |
| stored | id | the events of that id that are stored |
| link.add, link.remove | address | make or end a link |
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeAlias

from vestnik.broker.core import BrokerCore
from vestnik.errors import NotAccepted
from vestnik.model.cloudevents import to_cloudevent
from vestnik.model.events import Event
from vestnik.observe import inspection
from vestnik.observe.chronicle import Chronicle
from vestnik.observe.counts import Counts
from vestnik.transport.addresses import Address, read_address

FOUND = 10
"""StoredEvents events of one id that are given back."""
MOST_TYPES = 100


class Links(Protocol):
    """Whoever makes links to neighbours."""

    async def link(self, at: Address) -> str:
        """Make a link and keep it; what comes of it, in words. NotAccepted where it cannot be."""

    def unlink(self, at: Address) -> str:
        """End a link and keep it no longer; NotAccepted where there is none."""


Timed: TypeAlias = Iterable[tuple[int, Event]]
"""Events that were stored, in order, each with the time at which that was, in microseconds."""
StoredEvents: TypeAlias = Callable[[list[str]], Timed]
"""Gives all that is stored, and adds in words what of it is lost."""
Answer: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any]]


def nothing(_: list[str]) -> Timed:
    return ()


class Desk:
    """Answers questions. `stored` yields what is stored, if anything, and `measured` returns measurements."""

    def __init__(
        self,
        core: BrokerCore,
        chronicle: Chronicle,
        counts: Counts,
        stored: StoredEvents = nothing,
        links: Links | None = None,
        measured: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self._core = core
        self._chronicle = chronicle
        self._counts = counts
        self._taken = stored
        self._links = links
        self._measured = measured
        self._answers: dict[str, Answer] = {
            "status": self._status,
            "clients": self._clients,
            "event": self._event,
            "history": self._history,
            "stored": self._stored,
            "link.add": self._link,
            "link.remove": self._unlink,
        }

    async def answer(self, kind: str, about: dict[str, Any]) -> Any:
        """Plain data. NotAccepted where there is no such kind; TypeError or ValueError where `about` is wrong."""
        if kind not in self._answers:
            raise NotAccepted(f"question {kind}", f"{self._core.name} answers {', '.join(self._answers)}")
        return await self._answers[kind](about)

    async def _status(self, about: dict[str, Any]) -> Any:
        seen = inspection.status(self._core, self._chronicle.begun, self._counts)
        return {**seen, **self._measured(), "now": time.time()}

    async def _clients(self, about: dict[str, Any]) -> Any:
        return inspection.clients(self._core, **about)

    async def _event(self, about: dict[str, Any]) -> Any:
        return inspection.event(self._core, self._chronicle, **about)

    async def _history(self, about: dict[str, Any]) -> Any:
        return await asyncio.to_thread(lambda: history(self._taken))

    async def _stored(self, about: dict[str, Any]) -> Any:
        return await asyncio.to_thread(lambda: with_id(self._taken([]), str(about["id"])))

    async def _link(self, about: dict[str, Any]) -> Any:
        return {"said": await self._linking().link(read_address(str(about["address"])))}

    async def _unlink(self, about: dict[str, Any]) -> Any:
        return {"said": self._linking().unlink(read_address(str(about["address"])))}

    def _linking(self) -> Links:
        if self._links is None:
            raise NotAccepted("link", f"{self._core.name} is not made for other links")
        return self._links


def history(stored: StoredEvents) -> dict[str, Any]:
    """How many there are, from when to when they were stored, how many of each type; and in words what is lost."""
    lost: list[str] = []
    times: list[int] = []
    types: Counter[str] = Counter()
    sources: set[str] = set()
    for at, event in stored(lost):
        if event.seq is not None:
            times = [*times[:1], at]
            types[event.type] += 1
            sources.add(event.source)
    return {
        "events": types.total(),
        "first": times[0] if times else None,
        "last": times[-1] if times else None,
        "sources": len(sources),
        "types": dict(types.most_common(MOST_TYPES)),
        "lost": lost,
    }


def with_id(taken: Timed, id: str) -> list[dict[str, Any]]:
    """The last events with this id, each with the time at which it was stored."""
    found = deque(((at, event) for at, event in taken if event.id == id and event.seq is not None), maxlen=FOUND)
    return [{"at": at / 1e6, "event": to_cloudevent(event)} for at, event in found]
