"""How the rules over traces can be cut, so that no one needs to hold a whole trace.

A slice of a trace is a trace: some of its records, in their order. A rule is cut by an owner, as by the event or by the
client: whether it is broken for an owner depends on the records of that owner and on the life of the network, which is
small. So each slice is held to the rules as a whole trace is, and what it says of its own owners is what is wrong with
the trace. Of others it may say what is not so, since their records are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple, TypeAlias, get_args

from vestnik.model.events import Event
from vestnik.trace.files import EVENTFUL
from vestnik.trace.records import AnyRecord, Sent
from vestnik.verify.causality import causal
from vestnik.verify.due import due
from vestnik.verify.histories import History
from vestnik.verify.kept import acknowledged, kept
from vestnik.verify.liveness import liveness
from vestnik.verify.order import fifo, numbers, streams
from vestnik.verify.presence import losses, presence
from vestnik.verify.publications import admission
from vestnik.verify.repeats import repeats
from vestnik.verify.replays import replays
from vestnik.verify.safety import ALWAYS, eventual_safety
from vestnik.verify.timely import timely
from vestnik.verify.violations import Violation

LIFE: Final = frozenset({kind for kind in get_args(AnyRecord) if kind not in EVENTFUL and kind is not Sent})
"""The records that tell of no events: they are the life of the network and belong to every slice."""

Owner: TypeAlias = tuple[str | None, ...]
"""The source and id of an event; a client; or a place, the stream of an event and its number there."""


class Demands(NamedTuple):
    """What a trace is held to."""

    settling: float | None = None
    since: float = ALWAYS
    advertisements: bool = False
    stored: bool = False


class Cut(NamedTuple):
    """Rules that are cut alike, and whose a violation of them is."""

    rules: Callable[[History, Demands], Iterator[Violation]]
    owner: Callable[[Violation], Owner]


def judged(cut: Cut, history: History, demands: Demands, owners: Collection[Owner]) -> Iterator[Violation]:
    """What is wrong with a slice, as far as it is about its own."""
    return (violation for violation in cut.rules(history, demands) if cut.owner(violation) in owners)


def by_event(history: History, demands: Demands) -> Iterator[Violation]:
    yield from eventual_safety(history, demands.since)
    yield from repeats(history, demands.since)
    yield from timely(history, demands.since)
    yield from liveness(history, demands.since, advertisements=demands.advertisements)
    if demands.stored:
        yield from acknowledged(history, demands.since)
        yield from due(history, demands.since)
    if demands.advertisements:
        yield from admission(history, demands.since)


def by_client(history: History, demands: Demands) -> Iterator[Violation]:
    for rule in (fifo, numbers, presence, losses):
        yield from rule(history, demands.since)
    if demands.stored:
        yield from kept(history, demands.since, advertisements=demands.advertisements)
        yield from replays(history, demands.since, advertisements=demands.advertisements)


def by_place(history: History, demands: Demands) -> Iterator[Violation]:
    return streams(history, demands.since)


def by_cause(history: History, demands: Demands) -> Iterator[Violation]:
    return causal(history, demands.since)


def event_of(violation: Violation) -> Owner:
    event = violation.event
    return (None, None) if event is None else (event.source, event.id)


def client_of(violation: Violation) -> Owner:
    return (violation.client,)


def place_of(violation: Violation) -> Owner:
    return (None, None, None) if violation.event is None else place(violation.event)


def place(event: Event) -> Owner:
    broker, source = event.stream or (None, None)
    return broker, source, None if event.seq is None else str(event.seq)


CUTS: Final = {
    "event": Cut(by_event, event_of),
    "place": Cut(by_place, place_of),
    "client": Cut(by_client, client_of),
    "cause": Cut(by_cause, event_of),
}
