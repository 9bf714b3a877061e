"""A stored event, as the next life of its broker reads it."""

from __future__ import annotations

from msgspec import Raw, Struct

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.wire.messages import NodeId
from vestnik.wire.packing import UNREADABLE, outline, pack, unpack


class StoredEvent(Struct, frozen=True, gc=False):
    """An event that a client published. It stays packed: a start needs the names of many, and few events.

    One that is `waiting` for its time has no seq yet. It was `accepted` at this time in microseconds, if that is known.
    """

    client: NodeId
    source: str
    id: str
    waiting: bool
    packed: bytes | Raw
    accepted: int | None = None

    @classmethod
    def read(cls, client: NodeId, packed: bytes | Raw, accepted: int | None = None) -> StoredEvent:
        """Return the event that was packed; raise one of UNREADABLE if it has no source or no id."""
        found = outline(packed)
        return cls(client, found.source, found.id, found.seq is None, packed, accepted)

    @classmethod
    def of(cls, client: NodeId, event: Event) -> StoredEvent:
        return cls(client, event.source, event.id, event.seq is None, pack(event))

    @property
    def pair(self) -> Pair:
        return self.source, self.id

    @property
    def event(self) -> Event | None:
        """The event itself; None if what is stored is no event after all."""
        try:
            return unpack(self.packed)
        except UNREADABLE:
            return None
