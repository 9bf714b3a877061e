"""What waits for its time, apart from the journal: that may be dropped without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import msgpack

from vestnik.broker.effects import Append
from vestnik.broker.stored import StoredEvent
from vestnik.errors import JournalFailed
from vestnik.journal import Journal, Register
from vestnik.model.events import Event
from vestnik.wire.packing import pack_taken, split_taken


class Held:
    """What was taken and has no seq yet, by source and id.

    An event is put down here before it is in the journal, and leaves when the journal has it with its seq for good. So
    after a crash it may be here and be released. It is not held then: the journal says so among what was stored last.
    """

    def __init__(self, folder: Path, *, fsync: bool = True) -> None:
        self._register = Register.open(folder, fsync=fsync)
        self.recovery = self._register.recovery

    def settled(self, recent: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
        """What is held, and then what the journal says; when it has said all, what is not held leaves."""
        held = dict(self._register)
        for value in list(held.values()):
            yield StoredEvent.read(*split_taken(value))
        for one in recent:
            if one.waiting:
                held[_name(one)] = pack_taken(one.client, bytes(one.packed))
            elif held:
                held.pop(_name(one), None)
            yield one
        for name in self._register.keys() - held.keys():
            del self._register[name]
        for name in held.keys() - self._register.keys():
            self._register[name] = held[name]
        self.sync()

    def hold(self, what: Append) -> None:
        """Put down what has no seq."""
        for event in what.events:
            if event.seq is None:
                self._register[_name(event)] = pack_taken(what.client, event)

    def released(self, events: Iterable[Event]) -> list[Event]:
        """Those of the events that are held, and have their seq now."""
        if not self._register:
            return []
        due = [event for event in events if event.not_before is not None and event.seq is not None]
        return [event for event in due if _name(event) in self._register]

    def drop(self, events: Iterable[Event]) -> None:
        """They are held no more. Where that cannot be written, the next life finds it out again."""
        with suppress(JournalFailed):
            for event in events:
                self._register.pop(_name(event), None)

    @property
    def last(self) -> int:
        return self._register.last

    @property
    def committed(self) -> int:
        return self._register.committed

    def sync(self) -> int:
        """Make durable what has changed, as of a log."""
        return self._register.sync() if self.committed < self.last else self.committed

    def close(self) -> None:
        self._register.close()


class Whole:
    """A journal and what is held apart from it, as one log.

    What is held is synced behind the journal, so that with every position that is committed it is durable, too.
    """

    def __init__(self, journal: Journal, held: Held) -> None:
        self._journal = journal
        self._held = held
        self.committed = journal.committed

    @property
    def last(self) -> int:
        return self._journal.last

    def sync(self) -> int:
        position = self._journal.sync()
        self._held.sync()
        self.committed = position
        return position


def _name(event: Event | StoredEvent) -> bytes:
    return msgpack.encode((event.source, event.id))
