"""What brokers and clients say to each other."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from msgspec import Struct

from vestnik.model.events import Event
from vestnik.model.filters import Filter
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


class Forward(Message, frozen=True, tag=16):
    """Events, from a broker to its neighbour."""

    events: tuple[Event, ...]


class AdminS(Message, frozen=True, tag=17):
    """Changes of what the sender wants to be forwarded. What is there already is renewed by being added again."""

    add: tuple[Interest, ...] = ()
    remove: tuple[Interest, ...] = ()


class AdminA(Message, frozen=True, tag=18):
    """Changes of what may be published beyond the sender."""

    add: tuple[Interest, ...] = ()
    remove: tuple[Interest, ...] = ()


class Reach(Message, frozen=True, tag=20):
    """The brokers on the sender's side of the link, and for each a position in what it has taken.

    All up to that position that is wanted here was sent before.
    """

    brokers: tuple[tuple[NodeId, int], ...]


UNBOUND: Final = -1
"""The position behind which is all that there is, and nothing that there is no more."""


class Recall(Message, frozen=True, tag=21):
    """Send again what you took behind one position and up to another, and what matches any of the filters.

    Of that, what `replay` says. Without these positions it is all that there is. Answered by Recalled with the same
    number.
    """

    number: int
    filters: tuple[Filter, ...]
    replay: Replay
    after: int = UNBOUND
    upto: int = 0


class Taken(Struct, frozen=True, array_like=True, gc=False):
    """An event that a broker took: at which position, and when."""

    position: int
    time: int
    event: Event


class Recalled(Message, frozen=True, tag=22):
    """What was recalled, up to position `after`; where that is not `upto`, there is more.

    `more` says that it comes unasked. What there is no more, `lost` says in words.
    """

    number: int
    taken: tuple[Taken, ...]
    after: int
    upto: int
    lost: str = ""
    more: bool = False

    @property
    def is_part(self) -> bool:
        """Whether it is not the end of the answer."""
        return self.more or self.after < self.upto


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


class Addressed(Message, frozen=True, tag=19):
    """A message for one broker, wherever it is."""

    to: NodeId
    origin: NodeId
    body: Forward | Inquiry | Finding | Recall | Recalled


# --- from a client to its broker ---


class Request(Message, frozen=True, kw_only=True):
    """The broker answers, naming the number of the request. One without a number is not answered."""

    request: int = 0


class Publish(Request, frozen=True, tag=32):
    """Events. Answered by Stored. Those that could not be read are `refused` where the message arrives."""

    events: tuple[Event, ...]
    refused: tuple[Refusal, ...] = ()


class Subscribe(Request, frozen=True, tag=33):
    """Subscribe under a name, renew the subscription of that name, or change its filter in place.

    `epoch` is the numbering that the client has seen so far; up to `last` it needs none again. Where the broker knows
    neither it nor `afresh`, it begins the numbering `afresh`, at 1; a client never uses one for two. It begins with
    what each broker took behind the position that is `seen`, or, where none is, with what is to be replayed. What is to
    be replayed, and was not `replayed` to the end, has begun when brokers had come to these positions. The last `keep`
    notifications are kept, so that the client may ask for them again. Where it is to be `settled`, it is answered when
    all brokers know of it that are within reach. A client that `adopts` has forgotten the numbering that the broker may
    know, and goes on with it where the filter is the same.
    """

    name: str
    filter: Filter
    lease: float = float("inf")
    keep: int = 0
    epoch: int = 0
    afresh: int = 0
    replay: Replay | None = None
    last: int = 0
    seen: tuple[tuple[NodeId, int], ...] = ()
    settled: bool = False
    adopts: bool = False
    replayed: bool = False


class Unsubscribe(Request, frozen=True, tag=34):
    name: str


class Advertise(Request, frozen=True, tag=35):
    """Say under a name what is going to be published, renew it, or change it."""

    name: str
    filter: Filter
    lease: float = float("inf")


class Unadvertise(Request, frozen=True, tag=36):
    name: str


class Position(Struct, frozen=True, array_like=True):
    """All up to number `after` of a subscription has come."""

    name: str
    epoch: int
    after: int


class Fetch(Request, frozen=True, tag=38):
    """Past events, and no others. Answered by Fetched."""

    filter: Filter
    replay: Replay


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
    """Is there anything after these positions? Answered by Answer, after Unknown for each that is not known."""

    positions: tuple[Position, ...]


class Took(Message, frozen=True, tag=40):
    """The application has taken all up to these positions: they need not be kept."""

    positions: tuple[Position, ...]


# --- from a broker to its client ---


class Delivery(Struct, frozen=True, array_like=True, gc=False):
    """An event, with the numberings of the subscriptions that wanted it and its number in each.

    Numbers start at 1 and have no gaps. Where events are missing that never got a number, there is none, and `gap` says
    why. What comes `again` may have been seen before, or be older than the subscription.
    """

    event: Event | None
    numbers: tuple[tuple[int, int], ...]
    replayed: bool = False
    gap: str = ""
    again: bool = False


class Notify(Message, frozen=True, tag=64):
    deliveries: tuple[Delivery, ...]


class Answer(Message, frozen=True, tag=65):
    """The answer to Ask: the last number given out in each numbering, and what there is of those asked for, in order.

    The others are lost.
    """

    last: tuple[tuple[int, int], ...]
    kept: tuple[Delivery, ...] = ()


class Last(Message, frozen=True, tag=70):
    """The last number given out in each numbering: a client that lacks some asks for them."""

    last: tuple[tuple[int, int], ...]


class Unknown(Message, frozen=True, tag=66):
    """What was asked about is not known: the client should subscribe again."""

    position: Position


class Accepted(Message, frozen=True, tag=67):
    """The answer to a request that is fulfilled. It lasts for `lease` seconds unless renewed.

    Of a subscription it names the numbering, and its last number. With all up to that, the client has `seen` all that
    it wants of what each broker took up to a position; while it is `replaying`, but for what is replayed. Up to number
    `taken` its application has taken them. Where brokers have come within reach, this is said without a request.
    """

    request: int
    lease: float = float("inf")
    epoch: int = 0
    last: int = 0
    seen: tuple[tuple[NodeId, int], ...] = ()
    taken: int = 0
    replaying: bool = False


class Refused(Message, frozen=True, tag=68):
    """The answer to a request that is not fulfilled. A publication that is `unknown` may have been stored."""

    request: int
    reason: str
    unknown: bool = False


class Fetched(Message, frozen=True, tag=71):
    """The answer to Fetch, or a part of it where there is `more`. What could not be found, `lost` says in words."""

    request: int
    events: tuple[Event, ...]
    lost: tuple[str, ...] = ()
    more: bool = False


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


AnyMessage: TypeAlias = (
    Hello | Welcome | Goodbye | Ping | Pong | Forward | AdminS | AdminA | Addressed | Reach | Publish | Subscribe
    | Unsubscribe | Advertise | Unadvertise | Ask | Took | Fetch | Fetched | Notify | Answer | Last | Unknown | Accepted
    | Refused | Stored | Question | Report | Inquiry | Finding | Review | Reviewed
)  # fmt: skip
"""All that travels."""
