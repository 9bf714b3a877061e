"""What a broker wants done: it does nothing itself.

Whoever runs a broker performs its effects in order. `Append` comes back to it as `Appended`, `ReadLog` as `LogRead`,
`Look` as `Seen`, and `Consult` as `Consulted`. An effect that is `Observed` asks for nothing: it informs observers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.messages import Gap, Inquiry, Message, NodeId, Page, Refusal, Review
from vestnik.wire.origins import ReadTerms, Slice
from vestnik.wire.replays import Replay

CYCLE: Final = "cycle"
"""The code of a link that is not wanted, because its ends reach each other without it."""


class Send(Struct, frozen=True):
    """Send a message to a neighbour or a local client."""

    to: NodeId
    message: Message


class Append(Struct, frozen=True):
    """Store events that a local client published, after all that came before. It comes back as `Appended`, in order.

    They have consecutive offsets from `first` on, the same `time` in microseconds, and are `packed` already. What has
    no seq yet is not to go further before its time. There may be no events, if it is only asked whether earlier ones
    are stored. `request` and `refused` are for the answer to the client. A request that `repeats` events which were
    accepted before waits until these are stored, too.
    """

    client: NodeId
    events: tuple[Event, ...]
    request: int = 0
    refused: tuple[Refusal, ...] = ()
    repeats: bool = False
    first: int = 0
    time: int = 0
    packed: tuple[bytes, ...] = ()

    @property
    def end(self) -> int:
        """The offset after the last of them."""
        return self.first + len(self.events)


class ReadLog(Struct, frozen=True):
    """Read a page of what was stored here below offset `end`. It comes back as `LogRead` with the same number."""

    number: int
    terms: ReadTerms
    end: int


class Look(Struct, frozen=True):
    """Find a page of what was stored here, for a local client. It comes back as `Seen`."""

    client: NodeId
    review: Review


class Wake(Struct, frozen=True):
    """Hand the broker a `Tick` at time `at` or soon after."""

    at: float


class Part(Struct, frozen=True):
    """End the link to a neighbour, for a reason, in a sentence and as the `code` of a Goodbye.

    A link that closes a cycle is not to be made again; any other is.
    """

    neighbour: NodeId
    reason: str
    code: str


class Consult(Struct, frozen=True):
    """Answer what a client of the broker `origin` asks. It comes back as `Consulted`."""

    origin: NodeId
    inquiry: Inquiry


# --- what only the broker knows, for observers ---


class Note(Struct, frozen=True):
    """Something happened to an event: it was dropped, and why."""

    event: Event
    client: NodeId
    reason: str


class SubscriptionMade(Struct, frozen=True):
    """A subscription of a local client began here, with the numbering `epoch`.

    One that is `resumed` was there before, here or at another broker. It reads logs from the cursors in `seen` on, and
    others from what they accepted `since` a time in microseconds; or it begins with a `replay`.
    """

    client: NodeId
    name: str
    filter: Filter
    epoch: int = 0
    resumed: bool = False
    replay: Replay | None = None
    since: int = 0
    seen: tuple[tuple[str, int], ...] = ()


class SubscriptionChanged(Struct, frozen=True):
    """A subscription of a local client has another filter."""

    client: NodeId
    name: str
    filter: Filter


class SubscriptionEnded(Struct, frozen=True):
    """A subscription of a local client is over, for a reason. It had come to the cursors in `seen`."""

    client: NodeId
    name: str
    reason: str
    seen: tuple[tuple[str, int], ...] = ()


class OfferMade(Struct, frozen=True):
    """A local client advertises something under a name, or something else than before."""

    client: NodeId
    name: str
    filter: Filter


class OfferEnded(Struct, frozen=True):
    """A local client advertises nothing under a name any more."""

    client: NodeId
    name: str


class GapTold(Struct, frozen=True):
    """A subscription of a local client was told of a gap."""

    client: NodeId
    name: str
    gap: Gap


Observed: TypeAlias = (
    Note | SubscriptionMade | SubscriptionChanged | SubscriptionEnded | OfferMade | OfferEnded | GapTold
)
Effect: TypeAlias = Send | Append | ReadLog | Look | Wake | Part | Consult | Observed
Tell: TypeAlias = Callable[[float], list[Effect]]
"""Tells neighbours at a time what they have to know by then."""


# --- what the world tells a broker, beside the messages that arrive ---


class LinkUp(Message, frozen=True):
    """There is a link to a neighbour now. It knows nothing of this broker yet."""

    neighbour: NodeId


class LinkDown(Message, frozen=True):
    """A link is gone, and what was on its way."""

    neighbour: NodeId


class Joining(Message, frozen=True):
    """The broker at an address is to be a neighbour, and is not linked."""

    at: str


class Joined(Message, frozen=True):
    """The broker at an address is linked now, or reached in another way, or is not to be a neighbour any more."""

    at: str


class Gone(Message, frozen=True):
    """A local client is not connected any more. What it has a lease for lasts as long as that, all else ends."""

    client: NodeId


class Full(Message, frozen=True):
    """A local client does not take what it is sent as fast as it comes."""

    client: NodeId


class Drained(Message, frozen=True):
    """It has taken all of it."""

    client: NodeId


class Tick(Message, frozen=True):
    """Time has passed."""


class ClockSet(Message, frozen=True):
    """The clock is so many seconds ahead of what it would be. What lasts is to last as if it were not."""

    by: float


class LogRead(Message, frozen=True):
    """This is the page."""

    number: int
    page: Slice


class Seen(Message, frozen=True):
    """A page of what is stored from position `first` to `last`, or the reason why there is none.

    `journal` is which journal it is of, where that is known.
    """

    what: Look
    first: int
    last: int
    page: Page
    reason: str = ""
    journal: str = ""


class Consulted(Message, frozen=True):
    """This is the answer, or the reason why there is none."""

    what: Consult
    data: Any
    reason: str = ""


class NotAppended(Message, frozen=True):
    """This could not be stored. If it is `unknown`, it may be there in the next life."""

    what: Append
    reason: str
    unknown: bool = False


class Appended(Message, frozen=True):
    """This is stored."""

    what: Append
