"""A history over a lake: the past that brokers have forgotten, for whoever wants it replayed."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Self

from msgspec import structs

from vestnik.broker.core import OwnLog
from vestnik.broker.effects import Append, Look, Seen
from vestnik.client.arguments import check_text
from vestnik.client.connect import default_url
from vestnik.errors import VestnikError
from vestnik.lake.layout import Lake
from vestnik.lake.manifest import Manifest
from vestnik.lake.replay import replayed
from vestnik.model.events import Event
from vestnik.server.leafing import unseen
from vestnik.services.embedded import Embedded
from vestnik.transport.addresses import read_address
from vestnik.wire.messages import Taken
from vestnik.wire.origins import ENDLESS, Cover, Origin, ReadTerms, Slice, Span
from vestnik.wire.packing import pack
from vestnik.wire.pages import pages
from vestnik.wire.replays import Replay

PLACES: Final = 1 << 32
"""More than there are events in an answer. A position is a version of the lake and a place in what it answers."""


class LakeStore:
    """The store of a broker that answers from a lake, and takes nothing."""

    is_durable = False
    position = 0

    def __init__(self, folder: str | PathLike[str]) -> None:
        self._lake = Lake(folder)
        self._tasks: set[asyncio.Task[None]] = set()
        self._found: tuple[Any, list[Taken]] | None = None  # what was found last: its rest is often asked for

    @property
    def log(self) -> OwnLog:
        """The log with which the broker starts: a new one for each life."""
        return OwnLog(time.time_ns() // 1000, is_whole=False, is_history=True)

    def append(self, what: Append, done: Callable[[Append, str], None]) -> None:
        done(what, "a history takes no publications")

    def read(self, terms: ReadTerms, end: int, answer: Callable[[Slice], None]) -> None:
        """Answer with a page of the version that is the latest when it is asked for first."""
        task = asyncio.ensure_future(self._read(terms, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, terms: ReadTerms, answer: Callable[[Slice], None]) -> None:
        try:
            page = await asyncio.to_thread(self._page, terms)
        except (VestnikError, OSError) as error:
            page = Slice(terms.start, (), terms.start, Span(0, 1), f"the lake cannot be read: {error}")
        answer(page)

    def _page(self, terms: ReadTerms) -> Slice:
        is_rest = PLACES <= terms.start < ENDLESS
        version = self._lake.version(terms.start // PLACES) if is_rest else self._lake.latest()
        base = version.version * PLACES
        if terms.pick is not None:
            picked = replayed(self._lake, terms.filters, structs.replace(terms.pick, most=None), version)
            picked = picked[-(terms.pick.bound or len(picked)) :]
            return Slice(base, _events(picked), base, None, "", _times(picked))
        found = self._all(terms, version)
        first = max(0, terms.start - base - 1) if is_rest else 0
        part: tuple[Taken, ...] = next(pages(found[first : first + terms.limit], lambda one: one.event), ())
        upto = base + 1 + first + len(part)
        offsets = tuple(range(base + 1 + first, upto))
        return Slice(
            terms.start,
            _events(part),
            upto,
            None,
            "",
            _times(part),
            sum(len(pack(one.event)) for one in part),
            offsets,
            covers=_covers(version),
        )

    def _all(self, terms: ReadTerms, version: Manifest) -> list[Taken]:
        """Return what is wanted of a version, in order."""
        key = version.version, terms.filters, terms.since
        if self._found is None or self._found[0] != key:
            replay = Replay(all=True) if terms.since is None else Replay(since=terms.since)
            self._found = key, list(replayed(self._lake, terms.filters, replay, version))
        return self._found[1]

    def review(self, what: Look, answer: Callable[[Seen], None]) -> None:
        answer(unseen(what, "a history has no journal; ask the brokers that took the events"))

    def taken(self, lost: list[str]) -> Iterator[tuple[int, Event]]:
        """All events of the lake, with the times at which they were taken. Nothing is `lost` of these."""
        for taken in replayed(self._lake, "TRUE", Replay(all=True)):
            yield taken.time, taken.event

    async def close(self) -> None:
        await asyncio.gather(*self._tasks)


def _covers(version: Manifest) -> tuple[Cover, ...]:
    """Return the parts of logs that are in a version of the lake; none if some of them could not be taken in."""
    if version.quarantine:
        return ()
    logs = [(broker, log) for broker, log in version.journals.items() if log]
    return tuple([Cover(Origin(broker, int(log)), Span(0, version.read[broker] + 1)) for broker, log in logs])


def _events(taken: Sequence[Taken]) -> tuple[Event, ...]:
    return tuple([one.event for one in taken])


def _times(taken: Sequence[Taken]) -> tuple[int, ...]:
    return tuple([one.time for one in taken])


class LakeHistory:
    """Enter it to let it run: a broker of its own, neighbour of the one at `join`, with the lake in `folder` for its
    past. Nobody else is its client, and it wants nothing.

    What it has is part of every replay and `fetch`, each event once; it sees each new version of the lake. How it
    routes, and who waits for what, is as with a History.
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        join: str | None = None,
        name: str | None = None,
        routing: str | None = None,
        advertisements: bool | None = None,
        tls_cert: Path | None = None,
        tls_key: Path | None = None,
        tls_ca: Path | None = None,
        timeout: float | None = 10.0,
    ) -> None:
        check_text("the name of a history", name)
        self.name = name or f"lake-{secrets.token_hex(8)}"
        self._store = LakeStore(folder)
        self._embedded = Embedded(
            self.name,
            read_address(join or default_url()),
            routing=routing,
            advertisements=advertisements,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_ca=tls_ca,
            timeout=timeout,
        )

    async def __aenter__(self) -> Self:
        await self._embedded.start(self._store)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._embedded.stop()
        await self._store.close()
