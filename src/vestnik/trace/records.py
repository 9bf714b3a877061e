"""What can happen in a network of brokers and clients, one record for each.

The first group are the operations of the specification: what clients do, and what is done to them. A checker needs no
others. The second group is what happens inside, for whoever asks why.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.messages import NodeId
from vestnik.wire.replays import Replay


class Record(Struct, frozen=True, tag=True, tag_field="op", omit_defaults=True):
    """Something that happened at time `at`, in seconds."""

    at: float


# --- operations ---


class Subscribed(Record, frozen=True):
    """A client subscribed under a name, or gave the subscription of that name another filter; not a renewal.

    A new one may begin with a `replay` of the past. If its broker recorded it, what any broker accepts `since` a time
    in microseconds is to come, and of logs in `seen` what is at these offsets or later. A subscription that goes on at
    another broker, or in another life of its broker, has the same `since` again.
    """

    client: NodeId
    name: str
    filter: Filter
    replay: Replay | None = None
    since: int | None = None
    seen: tuple[tuple[str, int], ...] = ()


class Unsubscribed(Record, frozen=True):
    """A subscription is over. It was given all that it wanted below the offsets in `seen`, by log, or a gap."""

    client: NodeId
    name: str
    seen: tuple[tuple[str, int], ...] = ()


class Advertised(Record, frozen=True):
    client: NodeId
    name: str
    filter: Filter


class Unadvertised(Record, frozen=True):
    client: NodeId
    name: str


class Published(Record, frozen=True):
    """A client handed an event to its broker, and the broker took it: it is stored, with its stream and seq.

    It was `accepted` at this time in microseconds, if the broker recorded that.
    """

    client: NodeId
    event: Event
    accepted: int | None = None


class Acknowledged(Record, frozen=True):
    """A client was told that an event of its own is stored."""

    client: NodeId
    event: Event


class Rejected(Record, frozen=True):
    """A broker refused a publication."""

    client: NodeId
    event: Event
    reason: str


class Notified(Record, frozen=True):
    """A client was handed an event, for these subscriptions with these numbers; or it was `replayed` to them.

    An event with which another client `answered` a replay is in no log, and need not have been published.
    """

    client: NodeId
    event: Event
    numbers: tuple[tuple[str, int], ...]
    replayed: bool = False
    answered: bool = False


class Lost(Record, frozen=True):
    """A client was told that the notifications with these numbers, both ends included, will not come."""

    client: NodeId
    name: str
    first: int
    last: int


class Missing(Record, frozen=True):
    """A client was told that before the next notification of a subscription some may be missing, and why.

    They are those of a `log` from offset `first` on that are below `end`, if the broker recorded that.
    """

    client: NodeId
    name: str
    reason: str = ""
    log: str = ""
    first: int = 0
    end: int = 0


class Settled(Record, frozen=True):
    """Nothing is on its way, and nothing will happen of itself but renewals."""


# --- inside ---


class Attached(Record, frozen=True):
    """A client is connected to a broker."""

    client: NodeId
    broker: NodeId


class Detached(Record, frozen=True):
    client: NodeId
    broker: NodeId


class Stalled(Record, frozen=True):
    """A client takes no notifications for now."""

    client: NodeId
    broker: NodeId


class Resumed(Record, frozen=True):
    """A client that was stalled takes notifications again."""

    client: NodeId
    broker: NodeId


class Sent(Record, frozen=True):
    """A message went over a link. `kind` is the name of its type; of the events that it carries, sources and ids."""

    sender: NodeId
    receiver: NodeId
    kind: str
    events: tuple[tuple[str, str], ...] = ()


class Dropped(Record, frozen=True):
    """An event went no further at `node`: lost on a link, expired, or shed."""

    node: NodeId
    event: Event
    reason: str


class Vanished(Record, frozen=True):
    """A message that carries no events was lost on a link. `kind` is the name of its type."""

    sender: NodeId
    receiver: NodeId
    kind: str


class Linked(Record, frozen=True):
    one: NodeId
    other: NodeId


class Cut(Record, frozen=True):
    one: NodeId
    other: NodeId


class Crashed(Record, frozen=True):
    node: NodeId


class Restarted(Record, frozen=True):
    """A node is up, for the first time or again. A broker writes this `log`."""

    node: NodeId
    log: str = ""


class Quiet(Record, frozen=True):
    """At a broker nothing has happened `since` a time but renewals. It has all of these `logs` below these offsets."""

    node: NodeId
    since: float
    logs: tuple[tuple[str, int], ...] = ()


class Corrupted(Record, frozen=True):
    """The state of a broker was changed behind its back."""

    node: NodeId
    what: str


AnyRecord: TypeAlias = (
    Subscribed | Unsubscribed | Advertised | Unadvertised | Published | Acknowledged | Rejected | Notified | Lost
    | Missing | Settled | Attached | Detached | Stalled | Resumed
    | Sent | Dropped | Vanished | Linked | Cut | Crashed | Restarted | Quiet | Corrupted
)  # fmt: skip
