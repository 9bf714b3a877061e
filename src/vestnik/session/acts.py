"""What a client session wants done: it does nothing itself."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from vestnik.model.events import Event
from vestnik.wire.messages import Message, Recall, Refusal, Request


class Say(Struct, frozen=True, gc=False):
    """Send a message to the broker."""

    message: Message


class Hand(Struct, frozen=True, gc=False):
    """Hand an event to the application, for these subscriptions with these numbers. Numbers have no gaps."""

    event: Event
    numbers: tuple[tuple[str, int], ...]
    replayed: bool = False


class Lost(Struct, frozen=True):
    """Tell the application that notifications with these numbers are lost, both ends included."""

    name: str
    first: int
    last: int


class Missing(Struct, frozen=True):
    """Tell the application that before the next notification some may be missing, nobody knows how many, and why."""

    name: str
    reason: str


class Passed(Struct, frozen=True):
    """Acknowledge a number for which there is nothing to hand over: its event was handed over before."""

    name: str


class Over(Struct, frozen=True):
    """Tell the application that a subscription is over, which the broker had accepted, and why."""

    name: str
    reason: str


class Done(Struct, frozen=True):
    """Tell the application that the broker has done what it asked for, or refused it for a reason.

    `refused` are single events of a publication. If a publication is `unknown`, it may have been stored. Brokers that
    do not know of what was to be settled are `missing`.
    """

    what: Request
    reason: str = ""
    refused: tuple[Refusal, ...] = ()
    unknown: bool = False
    missing: tuple[str, ...] = ()


class Found(Struct, frozen=True):
    """Tell the application what past events there are, and in words what could not be found."""

    request: int
    events: tuple[Event, ...]
    lost: tuple[str, ...] = ()


class Told(Struct, frozen=True):
    """Tell the application what a broker says of itself."""

    request: int
    data: Any


class AskApplication(Struct, frozen=True):
    """Ask the application which past events it answers a replay with, and send the broker Recalled."""

    recall: Recall


class Alarm(Struct, frozen=True):
    """Call `wake` at this time or soon after."""

    at: float


Act: TypeAlias = Say | Hand | Lost | Missing | Passed | Over | Done | Found | Told | AskApplication | Alarm
