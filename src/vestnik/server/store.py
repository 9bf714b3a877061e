"""What a broker's clients publish, in its journal."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Raw, msgpack

from vestnik.broker.effects import Append
from vestnik.errors import JournalFailed
from vestnik.journal import Entry, GroupCommit, Journal, Settings
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.packing import pack, unpack
from vestnik.wire.replays import Replay, Selection

TAKEN: Final = 1
"""The kind of a record that holds a client and an event that it published."""

Done: TypeAlias = Callable[[Append, str], None]
"""Told what was stored, with an empty reason; or why it could not be."""


class JournalStore:
    """Answers when what it was given is on disk. What nobody waits for is not waited for, unless its source is."""

    is_durable = True

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        self._journal = Journal.open(folder, settings)
        self._commit = GroupCommit(self._journal)
        self._waiting: Counter[str] = Counter()  # sources of which something is on its way to the disk
        self.recovery = self._journal.recovery

    def stored(self) -> Iterator[Append]:
        """All that was stored before."""
        for record in self._journal.read():
            if record.kind == TAKEN:
                client, packed = msgpack.decode(record.payload)
                yield Append(client, (unpack(packed),))

    def taken(self) -> Iterator[tuple[int, Event]]:
        """All events that are stored, with the times at which they were."""
        for record in self._journal.read(until=self._journal.last):
            if record.kind == TAKEN:
                yield record.time, unpack(msgpack.decode(record.payload)[1])

    def append(self, what: Append, done: Done) -> None:
        sources = {event.source for event in what.events}
        waits = bool(what.request) or any(source in self._waiting for source in sources)
        try:
            position = self._journal.append(_entries(what))
        except JournalFailed as error:
            done(what, str(error))
            return
        if not waits:
            done(what, "")
            return
        self._waiting.update(sources)

        def committed(failure: BaseException | None) -> None:
            self._waiting -= Counter(sources)
            done(what, "" if failure is None else str(failure))

        self._commit.when_committed(position, committed)

    async def past(self, wanted: Filter, replay: Replay) -> list[Event]:
        return await asyncio.to_thread(self._select, Selection(wanted, replay), self._journal.last)

    def _select(self, selection: Selection, until: int) -> list[Event]:
        for record in self._journal.read(until=until):
            if record.kind == TAKEN:
                event = unpack(msgpack.decode(record.payload)[1])
                if event.seq is not None:
                    selection.take(event, record.time)
        return selection.events()

    async def close(self) -> None:
        await self._commit.close()
        self._journal.close()


def _entries(what: Append) -> list[Entry]:
    now = time.time_ns() // 1000
    return [(TAKEN, now, msgpack.encode((what.client, Raw(pack(event))))) for event in what.events]
