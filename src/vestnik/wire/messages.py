"""What brokers and clients say to each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.packing import Carried, Carrying
from vestnik.wire.replays import Replay

NodeId: TypeAlias = str
"""The name of a broker or of a client."""


class Interest(Struct, frozen=True, array_like=True):
    """A filter that a neighbour is told about, and for how many seconds it is to be believed.

    `tag` tells apart equal filters of different subscriptions, for strategies that keep one entry for each.
    """

    filter: Filter
    tag: str = ""
    lease: float = float("inf")


class Refusal(Struct, frozen=True, array_like=True):
    """Why an event was not taken. Of what could not be read, the source or the id may be empty.

    If it is `unknown`, the event may have been stored all the same.
    """

    id: str
    reason: str
    source: str = ""
    unknown: bool = False


class Message(Struct, frozen=True, array_like=True):
    """Anything that is sent. Tags are what the kinds of message go by on the wire."""


# --- when a connection is made, and when it ends ---


class Hello(Message, frozen=True, tag=1):
    """The first message: who speaks, in which version. A broker also says how it routes, and whom it is linked with.

    By its `life`, a number that no other has, it is known again when it connects again. A broker that leaves out
    `routing` asks for it: Welcome answers, and the broker is not let in until it says Hello with a routing. `lease` is
    the broker's in seconds; brokers of earlier releases leave it out.
    """

    version: int
    name: NodeId
    is_broker: bool = False
    token: str = ""
    routing: str = ""
    brokers: tuple[NodeId, ...] = ()
    life: int = 0
    lease: float = 0.0


class Welcome(Message, frozen=True, tag=2):
    """The answer to Hello; to a broker, with its own `life`, how it routes, and its `lease` in seconds.

    `durable` says whether what is published here outlives a crash of the broker.
    """

    version: int
    name: NodeId
    durable: bool = False
    life: int = 0
    routing: str = ""
    lease: float = 0.0


class Goodbye(Message, frozen=True, tag=3):
    """The last message, with the reason in a word and in a sentence."""

    code: str
    reason: str


class Ping(Message, frozen=True, tag=4):
    """Are you there? Answered by Pong."""


class Pong(Message, frozen=True, tag=5):
    pass


# --- between neighbours ---


class Announce(Message, frozen=True, tag=16):
    """Events of brokers about subscriptions and advertisements, from a broker to its neighbour. No log has them."""

    events: tuple[Event, ...]


class AdminS(Message, frozen=True, tag=17):
    """Changes of what the sender wants to be forwarded. What is there already is renewed by being added again."""

    add: tuple[Interest, ...] = ()
    remove: tuple[Interest, ...] = ()


class AdminA(Message, frozen=True, tag=18):
    """Changes of what may be published beyond the sender."""

    add: tuple[Interest, ...] = ()
    remove: tuple[Interest, ...] = ()


class Taken(Struct, frozen=True, array_like=True, gc=False):
    """An event that a broker accepted: at which offset, and when."""

    position: int
    time: int
    event: Event


class Unread(Struct, frozen=True, array_like=True):
    """What a broker took at the positions `first` to `last` and cannot be read, and why.

    What was `dropped` was not to be kept any longer; all else should be there. Where it is a record that is no event,
    `time` is when it was stored, and `payload` is its bytes.
    """

    first: int
    last: int
    reason: str
    dropped: bool = False
    time: int | None = None
    payload: bytes = b""


class Page(Struct, frozen=True, array_like=True):
    """What a broker took, up to position `after`: the positions, when it was taken, and the events, packed as an array.

    `vestnik.wire.leaves` opens it.
    """

    after: int
    positions: tuple[int, ...] = ()
    times: tuple[int, ...] = ()
    packed: bytes = b"\x90"
    unread: tuple[Unread, ...] = ()


class Inquiry(Message, frozen=True, tag=24):
    """What a client of another broker asks about, by its name and the number of its request. Answered by Finding."""

    client: NodeId
    number: int
    kind: str
    about: dict[str, Any]


class Finding(Message, frozen=True, tag=25):
    """The answer to Inquiry: plain data, or the reason why there is none."""

    client: NodeId
    number: int
    data: Any
    reason: str = ""


class WhatIsOpen(Message, frozen=True, tag=21):
    """Send the subscriptions and advertisements that are open at your clients and match the filter, as events.

    Answered by Opened with the same number.
    """

    number: int
    filter: Filter


class Opened(Message, frozen=True, tag=22):
    """A page of the answer to WhatIsOpen; there may be `more`."""

    number: int
    events: tuple[Event, ...]
    more: bool = False


class Addressed(Message, frozen=True, tag=19):
    """A message for one broker, wherever it is."""

    to: NodeId
    origin: NodeId
    body: Inquiry | Finding | WhatIsOpen | Opened


# --- from a client to its broker ---


class Request(Message, frozen=True, kw_only=True):
    """The broker answers, naming the number of the request. One without a number is not answered."""

    request: int = 0


class Publish(Request, frozen=True, tag=32):
    """Events. Answered by Stored. Those that could not be read are `refused` where the message arrives."""

    events: tuple[Event, ...]
    refused: tuple[Refusal, ...] = ()


NO_PAST: Final = -1
"""The time at which a subscription was made whose client has no right to the past."""


class Subscribe(Request, frozen=True, tag=33):
    """Subscribe under a name, renew the subscription of that name, or change its filter in place.

    `epoch` is the numbering that the client follows; it has everything up to number `last`. If the broker knows neither
    it nor `afresh`, it numbers `afresh`, from 1 on; a client never uses one for two. The subscription then starts at
    the cursors in `seen`: for each log, as "broker/log", the offset below which the client has everything. Without
    cursors it starts with what is to be replayed. Logs without a cursor are read from what they accepted since the
    subscription was `made`, in microseconds, as the first broker said; 0 if there was none, and NO_PAST for a client
    that gets nothing from before, also if its filter changes. At most `window` notifications are sent that were not
    taken yet.
    If it is to be `settled`, it is answered when all brokers within reach know of it. A client that `adopts` has
    forgotten the numbering that the broker may know, and goes on with it if the filter is the same.
    """

    name: str
    filter: Filter
    lease: float = float("inf")
    window: int = 1000
    epoch: int = 0
    afresh: int = 0
    replay: Replay | None = None
    last: int = 0
    seen: tuple[tuple[str, int], ...] = ()
    settled: bool = False
    adopts: bool = False
    made: int = 0


class Unsubscribe(Request, frozen=True, tag=34):
    name: str


class Advertise(Request, frozen=True, tag=35):
    """Say under a name what is going to be published, renew it, or change it.

    If it is to be `settled`, it is answered when the subscriptions of all brokers within reach have come that it
    concerns. A client that `replays` it also answers for its past: the broker asks with Recall.
    """

    name: str
    filter: Filter
    lease: float = float("inf")
    settled: bool = False
    replays: bool = False


class Unadvertise(Request, frozen=True, tag=36):
    name: str


class Position(Struct, frozen=True, array_like=True):
    """All up to number `after` of a subscription has come, and the application has taken all up to number `taken`."""

    name: str
    epoch: int
    after: int
    taken: int = 0


class Fetch(Request, frozen=True, tag=38):
    """Past events, and no others. Answered by Fetched, page by page: after each page the client asks with FetchMore."""

    filter: Filter
    replay: Replay


class FetchMore(Request, frozen=True, tag=42):
    """Send the next page of the answer to the Fetch with this request number."""


class Review(Request, frozen=True, tag=41):
    """What the client's own broker took behind one position and up to another, a page of it. Answered by Reviewed.

    Without `after` it begins with the first that is kept, without `upto` it ends with the last; with `most`, a page is
    of no more events than that.
    """

    filter: Filter
    after: int = -1
    upto: int = 0
    most: int = 0


class Question(Request, frozen=True, tag=39):
    """Ask a broker about itself, or to change something, as whoever administers it does. Answered by Report.

    `about` is plain data. Without `to` it is the client's own broker that is asked.
    """

    kind: str
    about: dict[str, Any] = {}
    to: NodeId = ""


class Malformed(Request, frozen=True):
    """A Subscribe or Advertise whose filter could not be read. Answered by Refused; it does not travel itself."""

    reason: str


class Ask(Message, frozen=True, tag=37):
    """Is there anything after these positions? Answered by Answer, after Unknown for each that is not known.

    The client repeats what its application has taken. A Took may be lost, and no other follows if the window is full.
    """

    positions: tuple[Position, ...]


class Took(Message, frozen=True, tag=40):
    """The application has taken everything up to `after` of these positions: there is room for more."""

    positions: tuple[Position, ...]


class Recalled(Message, frozen=True, tag=43):
    """The answer to Recall: the next events, or none after the last one. With a `reason`, the others cannot be had."""

    number: int
    events: tuple[Event, ...] = ()
    reason: str = ""


# --- from a broker to its client ---


class Gap(Struct, frozen=True, array_like=True, gc=False):
    """Events of a log that will not come: those at offsets from `first` on that are below `end`, and why.

    `log` is the log as "broker/log", or empty if it is not about one. Nobody knows how many of them were wanted. If the
    gap `rewinds`, the log has lost its end: it gives the offsets from `first` on to other events, which will come.
    """

    log: str
    first: int
    end: int
    reason: str
    rewinds: bool = False


class Delivery(Struct, Carrying, frozen=True, array_like=True, gc=False, eq=False):
    """Consecutive notifications: events of one broker, or of none, in order; or one gap instead.

    `numbers` has the numberings of the subscriptions that are given them, and the number of the first in each. Numbers
    start at 1 and have no gaps.
    """

    carried: tuple[Carried, ...]
    numbers: tuple[tuple[int, int], ...]
    replayed: bool = False
    gap: Gap | None = None

    @property
    def count(self) -> int:
        """How many notifications these are."""
        return len(self.carried) or 1

    @property
    def event(self) -> Event | None:
        """The first event; None for a gap."""
        return self.events[0] if self.carried else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Delivery):
            return NotImplemented
        return (self.events, self.numbers, self.replayed, self.gap) == (
            other.events,
            other.numbers,
            other.replayed,
            other.gap,
        )

    def __hash__(self) -> int:
        return hash((self.numbers, self.replayed, self.gap))

    def part(self, start: int, end: int) -> Delivery:
        """Return the notifications from one place to another."""
        numbers = tuple([(epoch, first + start) for epoch, first in self.numbers])
        return Delivery(self.carried[start:end], numbers, self.replayed, self.gap)

    def each(self) -> Iterator[Delivery]:
        """Yield the notifications one by one. Each has the same object of its event as this one."""
        if self.count == 1:
            yield self
        else:
            yield from [self.part(place, place + 1) for place, _ in enumerate(self.events)]


def split(deliveries: Sequence[Delivery], most: int) -> tuple[tuple[Delivery, ...], tuple[Delivery, ...]]:
    """Return the first `most` notifications, and the others."""
    room = most
    for place, one in enumerate(deliveries):
        if one.count > room:
            head, rest = tuple(deliveries[:place]), tuple(deliveries[place + 1 :])
            if not room:
                return head, (one, *rest)
            return (*head, one.part(0, room)), (one.part(room, one.count), *rest)
        room -= one.count
    return tuple(deliveries), ()


def each_of(deliveries: Iterable[Delivery]) -> Iterator[Delivery]:
    """Yield notifications one by one."""
    for one in deliveries:
        yield from one.each()


def count_of(deliveries: Iterable[Delivery]) -> int:
    """Return how many notifications there are."""
    count = 0
    for one in deliveries:
        count += len(one.carried) or 1
    return count


class Notify(Message, frozen=True, tag=64):
    """Notifications. `logs` is the id of the log of each broker whose events these are."""

    deliveries: tuple[Delivery, ...]
    logs: tuple[tuple[NodeId, int], ...] = ()


class Answer(Message, frozen=True, tag=65):
    """The answer to Ask: the last number given out in each numbering, and what there is of those asked for, in order.

    The others are lost. A page of a longer answer names the number at which it ends instead of the last, and speaks of
    the numbers that follow number `after`: the page before it may not have come.
    """

    last: tuple[tuple[int, int], ...]
    kept: tuple[Delivery, ...] = ()
    logs: tuple[tuple[NodeId, int], ...] = ()
    after: int = 0


class Unknown(Message, frozen=True, tag=66):
    """What was asked about is not known: the client should subscribe again."""

    position: Position


class Accepted(Message, frozen=True, tag=67):
    """The answer to a request that is fulfilled. It lasts for `lease` seconds unless renewed.

    Of a subscription it names the numbering, and its last number. A client that has everything up to that has also
    `seen` everything it wants below these offsets, by "broker/log". Up to number `taken` its application has taken
    them. `made` is when the subscription was made, in microseconds. The broker says the same without a request now and
    then. Of what was to be settled it says which brokers do not know of it: they are `missing`, each in words.
    """

    request: int
    lease: float = float("inf")
    epoch: int = 0
    last: int = 0
    seen: tuple[tuple[str, int], ...] = ()
    taken: int = 0
    made: int = 0
    missing: tuple[str, ...] = ()


class Refused(Message, frozen=True, tag=68):
    """The answer to a request that is not fulfilled. A publication that is `unknown` may have been stored."""

    request: int
    reason: str
    unknown: bool = False


class Fetched(Message, frozen=True, tag=71):
    """A page of the answer to Fetch; there may be `more`. `lost` says in words what could not be found."""

    request: int
    events: tuple[Event, ...]
    lost: tuple[str, ...] = ()
    more: bool = False


class Recall(Message, frozen=True, tag=74):
    """Which past events does the client choose to answer a replay with? Answered by Recalled, a page at a time.

    `name` is that of the advertisement that the client replays, `filter` is what is wanted of it. The page starts
    after the first `skip` events of the answer.
    """

    number: int
    name: str
    filter: Filter
    replay: Replay
    skip: int = 0


class Reviewed(Message, frozen=True, tag=73):
    """The answer to Review: a page, whose journal it is of, the `first` position that is kept and the `last` durable.

    `journal` is another where the broker has begun another, or empty where it does not say. The page may be empty and
    not the end: behind `page.after` there is more up to what was asked for.
    """

    request: int
    broker: NodeId
    first: int
    last: int
    page: Page
    journal: str = ""


class Report(Message, frozen=True, tag=72):
    """The answer to Question, as plain data."""

    request: int
    data: Any


class Stored(Message, frozen=True, tag=69):
    """The answer to Publish: all events are stored, but those refused. Duplicates were stored before."""

    request: int
    refused: tuple[Refusal, ...] = ()
