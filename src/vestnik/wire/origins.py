"""What brokers say about logs: who is reachable, how far each log was sent, and pages of the past.

A log is what the clients of one broker published, in the order in which the broker accepted it. An event is addressed
by its origin, a log, and its offset there, which is the `seq` of the event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.messages import Message, NodeId
from vestnik.wire.packing import Carried, Carrying
from vestnik.wire.replays import Replay

ENDLESS: Final = (1 << 63) - 1
"""The end of a span of which nobody knows the end."""
PLACES: Final = 0
"""The limit of a read that only asks where the last events begin, to read them page by page afterwards."""


class Origin(NamedTuple):
    """A log: the broker that keeps it, and the id of the log. A later log of the same broker has a greater id.

    The past for which a client answers goes by a name of its own in the place of a broker: "broker/client/name". Names
    of brokers have no slash.
    """

    broker: NodeId
    log: int

    def __str__(self) -> str:
        return f"{self.broker}/{self.log}"

    @classmethod
    def parse(cls, text: str) -> Origin:
        """Read "broker/log"; ValueError if it is not that."""
        broker, slash, log = text.rpartition("/")
        if not (broker and slash and log.isascii() and log.isdigit()):
            raise ValueError(f"{text!r} is not a log: write broker/log, such as b1/1")
        return cls(broker, int(log))

    @classmethod
    def of_client(cls, broker: NodeId, client: NodeId, name: str) -> Origin:
        """Return the origin of the past for which a client of a broker answers, under the name of an advertisement."""
        return cls(f"{broker}/{client}/{name}", 1)

    @property
    def is_of_client(self) -> bool:
        return "/" in self.broker

    @property
    def title(self) -> str:
        """The broker, or the client that answers for it, in words."""
        if not self.is_of_client:
            return self.broker
        broker, _, rest = self.broker.partition("/")
        client, _, name = rest.rpartition("/")
        return f"the history {name} of client {client} at {broker}"


class Span(NamedTuple):
    """The offsets from `first` on that are below `end`."""

    first: int
    end: int


class Offer(NamedTuple):
    """An advertisement at an origin. Each time it is made it has another `number`."""

    number: int
    filter: Filter


class ReadTerms(Struct, frozen=True, array_like=True):
    """What to read of a log: events from offset `start` on that match any of the filters, at most `limit` of them.

    With `since`, reading starts after the last event that was accepted before that time. With `pick`, what the replay
    picks of the events before that place is read instead: the last ones, or the latest by a key. If the limit is 0, the
    slice only says where the last ones begin. The origin may leave out of a read that `is_shared` what nobody wants in
    the direction from which the request came.
    """

    start: int
    filters: tuple[Filter, ...]
    limit: int
    since: int | None = None
    pick: Replay | None = None
    is_shared: bool = False


class Placed(NamedTuple):
    """An event in a log: its offset there, and when it was accepted."""

    offset: int
    accepted: int
    event: Event

    @property
    def time(self) -> int:
        """The time of the event; if it has none, when it was accepted."""
        return self.accepted if self.event.time is None else self.event.time


class Cover(NamedTuple):
    """A part of a log of which a history has everything that was asked for."""

    origin: Origin
    span: Span


class Slice(Struct, frozen=True, array_like=True):
    """A part of a log: reading started at offset `first`, and all below `upto` that was wanted is here.

    The log no longer has the events in the `gap`, for a `reason`; the gap comes before the events. Without a gap, it
    says what a pick had to leave out. `times` are when the events were accepted, `size` is their bytes. The log of a
    history has copies of events, whose seq is that of another log: their `offsets` here are said beside them. Of what
    was picked there may be `more` in another slice. If the log has grown while the slice was read, `end` is where it
    ended before. A history also says which parts of other logs it `covers`.
    """

    first: int
    events: tuple[Event, ...]
    upto: int
    gap: Span | None = None
    reason: str = ""
    times: tuple[int, ...] = ()
    size: int = 0
    offsets: tuple[int, ...] = ()
    more: bool = False
    end: int = 0
    covers: tuple[Cover, ...] = ()

    @property
    def first_offset(self) -> int | None:
        """The offset of the first event; None if there is no event."""
        if not self.events:
            return None
        return self.offsets[0] if self.offsets else self.events[0].seq or 0

    @property
    def average_size(self) -> int:
        """The bytes of an event here, on average."""
        return self.size // len(self.events) if self.events else 0

    def placed(self) -> list[Placed]:
        """Return the events with their offsets and times."""
        offsets = self.offsets or [event.seq or 0 for event in self.events]
        return list(map(Placed, offsets, self.times, self.events))


class PackedSlice(Slice, frozen=True):
    """A slice of a log in memory: it has the events packed as well. It is not sent."""

    packed: Sequence[bytes] = ()


class OriginHere(Message, frozen=True, tag=26):
    """An origin can be reached through the sender, and clients there advertise these offers.

    The log of a `history` has copies of past events, and nothing new.
    """

    origin: Origin
    offers: frozenset[Offer] = frozenset()
    history: bool = False


class OriginGone(Message, frozen=True, tag=27):
    """An origin cannot be reached through the sender any more."""

    origin: Origin


class OriginOffers(Message, frozen=True, tag=28):
    """The offers at an origin have changed to these."""

    origin: Origin
    offers: frozenset[Offer]


class Routed(Message, Carrying, frozen=True, eq=False, tag=29):
    """Live events of one origin, in the order of their offsets."""

    origin: Origin
    carried: tuple[Carried, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Routed):
            return NotImplemented
        return (self.origin, self.events) == (other.origin, other.events)

    def __hash__(self) -> int:
        return hash((self.origin, len(self.carried)))


class Frontiers(Message, frozen=True, tag=30):
    """Everything below these offsets that the receiver asked for was sent before."""

    offsets: tuple[tuple[Origin, int], ...]


class FetchPage(Message, frozen=True, tag=31):
    """Read a part of the log of an origin. `path` is the brokers between, in order from the one that asks.

    `feed` is the same in all requests of one reader that catches up: by it the origin sees who makes progress.
    """

    origin: Origin
    request: int
    terms: ReadTerms
    feed: int = 0
    path: tuple[NodeId, ...] = ()


class PageRead(Message, frozen=True, tag=23):
    """The answer to FetchPage. Everything below `edge` was routed by the origin before this was sent."""

    origin: Origin
    request: int
    page: Slice
    edge: int
    path: tuple[NodeId, ...] = ()
