"""A history over a lake: the past that brokers have forgotten, for whoever wants it replayed."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Final, Self

from msgspec import structs

from vestnik.broker.effects import Append, Look, Seen
from vestnik.broker.selection import recollect
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
from vestnik.wire.messages import Recall, Recalled, Taken
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
        self._answered: tuple[Recall, list[Taken]] | None = None  # what was found last: its rest is often asked for

    def append(self, what: Append, done: Callable[[Append, str], None]) -> None:
        done(what, "a history takes no publications")

    def recall(self, what: Recall, answer: Callable[[Recalled], None]) -> None:
        """The past is answered, of the version that is the latest when it is asked for first."""
        task = asyncio.ensure_future(self._recall(what, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _recall(self, what: Recall, answer: Callable[[Recalled], None]) -> None:
        try:
            found = await asyncio.to_thread(self._find, what)
        except (VestnikError, OSError) as error:
            found = [Recalled(what.number, (), what.upto, what.upto, f"the lake cannot be read: {error}")]
        for part in found:
            answer(part)

    def _find(self, what: Recall) -> list[Recalled]:
        if what.after >= 0 and what.upto == 0:
            return [Recalled(what.number, (), what.after, what.after)]
        version = self._lake.version(what.upto // PLACES) if what.upto else self._lake.latest()
        stored = self._all(what, version)
        upto = version.version * PLACES + len(stored)
        return list(recollect(what, [taken for taken in stored if taken.position > what.after], upto))

    def _all(self, what: Recall, version: Manifest) -> list[Taken]:
        """What is wanted of a version, at the positions that it has there."""
        first = structs.replace(what, number=version.version, after=-1, upto=0)
        if self._answered is None or self._answered[0] != first:
            every = structs.replace(what.replay, most=None)  # how many are left out is said
            found = replayed(self._lake, what.filters, every, version)
            base = version.version * PLACES
            self._answered = first, [Taken(base + n, one.time, one.event) for n, one in enumerate(found, start=1)]
        return self._answered[1]

    def review(self, what: Look, answer: Callable[[Seen], None]) -> None:
        answer(unseen(what, "a history has no journal; ask the brokers that took the events"))

    def taken(self, lost: list[str]) -> Iterator[tuple[int, Event]]:
        """All events of the lake, with the times at which they were taken. Nothing is `lost` of these."""
        for taken in replayed(self._lake, "TRUE", Replay(all=True)):
            yield taken.time, taken.event

    async def close(self) -> None:
        await asyncio.gather(*self._tasks)


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
