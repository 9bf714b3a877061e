"""What brokers and clients say to each other."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from vestnik.model.events import Event
from vestnik.model.filters import Filter

NodeId: TypeAlias = str
"""The name of a broker or of a client."""


class Interest(Struct, frozen=True):
    """A filter that a neighbour is told about, and for how many seconds it is to be believed.

    `tag` tells apart equal filters of different subscriptions, for strategies that keep one entry for each.
    """

    filter: Filter
    tag: str = ""
    lease: float = float("inf")


class Message(Struct, frozen=True):
    """Anything that is sent."""


# --- between neighbours ---


class Forward(Message, frozen=True):
    """Events, from a broker to its neighbour."""

    events: tuple[Event, ...]


class AdminS(Message, frozen=True):
    """Changes of what the sender wants to be forwarded. What is there already is renewed by being added again."""

    add: tuple[Interest, ...] = ()
    remove: tuple[Interest, ...] = ()


class AdminA(Message, frozen=True):
    """Changes of what may be published beyond the sender."""

    add: tuple[Interest, ...] = ()
    remove: tuple[Interest, ...] = ()


class Addressed(Message, frozen=True):
    """A message for one broker, wherever it is."""

    to: NodeId
    origin: NodeId
    body: Message


# --- from a client to its broker ---


class Publish(Message, frozen=True):
    """Events. The broker answers each with Accepted or Refused, naming its id."""

    events: tuple[Event, ...]


class Subscribe(Message, frozen=True):
    """Subscribe under a name, renew the subscription of that name, or change its filter in place.

    The broker keeps the last `keep` notifications, so that the client may ask for them again.
    """

    name: str
    filter: Filter
    lease: float = float("inf")
    keep: int = 0


class Unsubscribe(Message, frozen=True):
    name: str


class Advertise(Message, frozen=True):
    """Say under a name what is going to be published, renew it, or change it."""

    name: str
    filter: Filter
    lease: float = float("inf")


class Unadvertise(Message, frozen=True):
    name: str


class Ask(Message, frozen=True):
    """Is there anything in a subscription after number `after`? Answered by Answer, after Gap for what is not kept."""

    name: str
    after: int


# --- from a broker to its client ---


class Delivery(Struct, frozen=True):
    """An event, with the subscriptions that wanted it and its number in each. Numbers start at 1 and have no gaps."""

    event: Event
    numbers: tuple[tuple[str, int], ...]


class Notify(Message, frozen=True):
    deliveries: tuple[Delivery, ...]


class Answer(Message, frozen=True):
    """The answer to Ask: the last number given out in the subscription, and what is kept of those asked for."""

    name: str
    last: int
    kept: tuple[Delivery, ...] = ()


class Gap(Message, frozen=True):
    """Notifications with these numbers, both ends included, are lost."""

    name: str
    first: int
    last: int


class Accepted(Message, frozen=True):
    """What was asked for is done: `what` is the id of an event, or the name of a subscription or advertisement.

    `begun` says of a subscription that it was not there: its numbers begin at 1.
    """

    what: str
    begun: bool = False


class Refused(Message, frozen=True):
    what: str
    reason: str
