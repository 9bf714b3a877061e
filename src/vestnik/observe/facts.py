"""Facts about one broker, in the order in which they happened.

A broker is told a message and returns effects. `facts_of` makes facts of both, and is the only place that looks at
them: every observer of a broker is a fold over facts. A fact is about a whole batch, so facts cost little; if nobody
observes, none are made. The core itself reports what only it knows: `Observed` in `broker/effects`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias, get_args

from msgspec import Struct

from vestnik.broker.effects import (
    Append,
    Appended,
    Drained,
    Effect,
    Full,
    Gone,
    LinkDown,
    LinkUp,
    LogRead,
    NotAppended,
    Observed,
    Send,
)
from vestnik.model.events import Event
from vestnik.wire.messages import (
    Announce,
    Answer,
    Delivery,
    Message,
    NodeId,
    Notify,
    Publish,
    Refusal,
    Refused,
    Took,
)
from vestnik.wire.origins import PageRead, Routed

# --- events come ---


class Stored(Struct, frozen=True):
    """Events of a local client are in the log, accepted at a `time` in microseconds. One without a seq is held.

    `packed` is each of them as the log has it, if that is known.
    """

    client: NodeId
    events: tuple[Event, ...]
    time: int
    packed: tuple[bytes, ...] = ()


class NotStored(Struct, frozen=True):
    """Events of a local client could not be stored. If that is `unknown`, they may be on disk.

    `packed` is each of them as it was to be stored, if that is known.
    """

    client: NodeId
    events: tuple[Event, ...]
    reason: str
    unknown: bool
    packed: tuple[bytes, ...] = ()


class PublicationRefused(Struct, frozen=True):
    """Some events of a publication were refused: of those that could be read, the `events`."""

    client: NodeId
    events: tuple[Event, ...]
    refusals: tuple[Refusal, ...]


class RequestRefused(Struct, frozen=True):
    """Something else that a local client asked for was refused."""

    client: NodeId
    reason: str


class Passed(Struct, frozen=True):
    """Live events came from a neighbour; events of brokers about their clients, too."""

    sender: NodeId
    events: tuple[Event, ...]


class PageTaken(Struct, frozen=True):
    """A page of a log came, for subscriptions here. The events were accepted at these `times`."""

    sender: NodeId
    events: tuple[Event, ...]
    times: tuple[int, ...]


# --- events go ---


class Forwarded(Struct, frozen=True):
    """Live events went to a neighbour."""

    to: NodeId
    routed: Routed


class Given(Struct, frozen=True):
    """Notifications of events and gaps went to a local client."""

    client: NodeId
    deliveries: tuple[Delivery, ...]


class GivenAgain(Struct, frozen=True):
    """A local client asked for notifications that it misses. It was told the last number of each numbering."""

    client: NodeId
    last: tuple[tuple[int, int], ...]
    deliveries: tuple[Delivery, ...]


class Said(Struct, frozen=True):
    """Another message went to a neighbour or a client; `kind` is the name of its type."""

    to: NodeId
    kind: str


# --- clients ---


class ClientHere(Struct, frozen=True):
    """A client has connected."""

    client: NodeId


class ClientTook(Struct, frozen=True):
    """The application of a client has taken what it was given."""

    client: NodeId


Fact: TypeAlias = (
    Stored | NotStored | PublicationRefused | RequestRefused | Passed | PageTaken
    | Forwarded | Given | GivenAgain | Said
    | ClientHere | ClientTook | Gone | Full | Drained | LinkUp | LinkDown
    | Observed
)  # fmt: skip


class Observer(Protocol):
    """Anything that folds over facts."""

    def take(self, facts: Sequence[Fact], now: float) -> None:
        """Take in what happened at one time, in order."""


def facts_of(message: Message, sender: NodeId, effects: Sequence[Effect]) -> list[Fact]:
    """Return what happened when a broker was told a message by `sender`, and wants this done."""
    make = OF_MESSAGES.get(type(message))
    facts: list[Fact] = [] if make is None else make(message, sender)
    for effect in effects:
        kind = type(effect)
        if kind is Send:
            to, said = effect.to, effect.message  # type: ignore[union-attr]  # it is a Send
            if type(said) is Notify:
                facts.append(Given(to, said.deliveries))
            else:
                facts.append(_sent(to, said))
        elif kind in OBSERVED:
            facts.append(effect)  # type: ignore[arg-type]  # it is Observed
        elif kind is Append and effect.refused:  # type: ignore[union-attr]  # it is an Append
            facts.append(_refused(message, effect))  # type: ignore[arg-type]
    return facts


def _sent(to: NodeId, message: Message) -> Fact:
    kind = type(message)
    if kind is Routed:
        return Forwarded(to, message)  # type: ignore[arg-type]  # it is a Routed
    match message:
        case Answer(last, kept):
            return GivenAgain(to, last, kept)
        case Refused(reason=reason):
            return RequestRefused(to, reason)
    return Said(to, kind.__name__)


def _refused(message: Message, append: Append) -> Fact:
    given = message.events if isinstance(message, Publish) else ()
    keys = {(refusal.source, refusal.id) for refusal in append.refused}
    events = tuple([event for event in given if (event.source, event.id) in keys])
    return PublicationRefused(append.client, events, append.refused)


def _stored(message: Appended, sender: NodeId) -> list[Fact]:
    what = message.what
    return [Stored(what.client, what.events, what.time, what.packed)] if what.events else []


def _not_stored(message: NotAppended, sender: NodeId) -> list[Fact]:
    what = message.what
    return [NotStored(what.client, what.events, message.reason, message.unknown, what.packed)] if what.events else []


def _passed(message: Routed | Announce, sender: NodeId) -> list[Fact]:
    return [Passed(sender, message.events)]


def _page_taken(message: LogRead | PageRead, sender: NodeId) -> list[Fact]:
    if isinstance(message, PageRead) and message.path:
        return []  # it is for another broker
    page = message.page
    return [PageTaken(sender, page.events, page.times)]


def _itself(message: Any, sender: NodeId) -> list[Fact]:
    return [message]


OBSERVED: Final = frozenset(get_args(Observed))
OF_MESSAGES: Final[dict[type[Message], Callable[[Any, NodeId], list[Fact]]]] = {
    Appended: _stored,
    NotAppended: _not_stored,
    Routed: _passed,
    Announce: _passed,
    LogRead: _page_taken,
    PageRead: _page_taken,
    Took: lambda message, sender: [ClientTook(sender)],
    **dict.fromkeys((Gone, Full, Drained, LinkUp, LinkDown), _itself),
}
