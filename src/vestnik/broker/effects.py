"""What a broker wants done: it does nothing itself.

Whoever runs a broker performs its effects in order. `Append` comes back to it as `Appended`, `ReadLog` as `LogRead`,
`Look` as `Seen`, and `Consult` as `Consulted`.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from msgspec import Struct

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.messages import Gap, Inquiry, Message, NodeId, Page, Refusal, Review
from vestnik.wire.origins import ReadTerms, Slice

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


class Note(Struct, frozen=True):
    """Tell observers that something happened to an event: it was dropped, and why."""

    event: Event
    client: NodeId
    reason: str


class Lapsed(Struct, frozen=True):
    """Tell observers that the lease of a subscription of a local client has ended."""

    client: NodeId
    name: str
    filter: Filter


class GapTold(Struct, frozen=True):
    """Tell observers that a subscription of a local client was told of a gap."""

    client: NodeId
    name: str
    gap: Gap


class Consult(Struct, frozen=True):
    """Answer what a client of the broker `origin` asks. It comes back as `Consulted`."""

    origin: NodeId
    inquiry: Inquiry


Effect: TypeAlias = Send | Append | ReadLog | Look | Wake | Part | Note | Lapsed | GapTold | Consult


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
