"""One strategy on one workload: what it sends, keeps, and sends in vain, and how long events take."""

from __future__ import annotations

from statistics import mean
from typing import NamedTuple

from msgspec import Struct

from vestnik.lab.complexity import complexity
from vestnik.lab.delays import delays
from vestnik.lab.meter import Meter
from vestnik.lab.overlay import Overlay, Routing
from vestnik.lab.plays import Play, Size, play
from vestnik.lab.statistics import quantile
from vestnik.wire.messages import AdminA, AdminS, Advertise, Notify, Publish, Subscribe, Unsubscribe
from vestnik.wire.origins import Routed


class Compared(Struct, frozen=True, kw_only=True):
    """What was measured. Delays are in milliseconds; docs/guide/lab.md says what each column means.

    `break_even` is how many subscriptions must change for each publication so that flooding is as cheap; None where
    it is for any number or for none.
    """

    workload: str
    strategy: str
    advertisements: bool
    messages: int
    bytes: int
    entries: int
    delay_median: float | None
    delay_95: float | None
    useless: int
    subscription_messages: int
    advertisement_messages: int
    events_sent: int
    subscription_bytes: int
    event_bytes: int
    notifications: int
    local_entries: int
    advertisement_entries: int
    complexity: float | None
    withdrawn: float | None
    useless_per_link: float
    messages_per_publication: float
    messages_per_change: float
    break_even: float | None = None


class Task(NamedTuple):
    workload: str
    routing: Routing
    size: Size


def measure(task: Task) -> Compared:
    """Subscribe, publish, and then let some consumers come and leave; and the same again in simulated time."""
    name, routing, size = task
    drawn, meter = play(name, size), Meter()
    overlay = Overlay(drawn.topology, routing, meter.take)
    overlay.link()
    _subscribe(overlay, drawn)
    entries, withdrawn = overlay.entries(), meter.removed / meter.added if meter.added else None
    complexities = [complexity(wanted) for wanted in overlay.remote_filters()]
    for client, event in drawn.publications:
        overlay.hand(drawn.producers[client], Publish((event,)), client)
    sent, size_of, events_sent = overlay.sent.copy(), meter.bytes.copy(), sum(overlay.forwarded.values())
    waited = delays(drawn, routing)
    return Compared(
        workload=name,
        strategy=routing.strategy,
        advertisements=routing.advertisements,
        messages=sent.total(),
        bytes=size_of.total(),
        entries=entries.remote,
        delay_median=_milliseconds(quantile(waited, 0.5)),
        delay_95=_milliseconds(quantile(waited, 0.95)),
        useless=events_sent - drawn.useful,
        subscription_messages=sent[AdminS],
        advertisement_messages=sent[AdminA],
        events_sent=events_sent,
        subscription_bytes=size_of[AdminS],
        event_bytes=size_of[Routed],
        notifications=overlay.notified[Notify],
        local_entries=entries.local,
        advertisement_entries=entries.advertised,
        complexity=mean(complexities) if complexities else None,
        withdrawn=withdrawn,
        useless_per_link=(events_sent - drawn.useful) / len(drawn.topology.edges),
        messages_per_publication=sent[Routed] / size.publications,
        messages_per_change=_messages_per_change(overlay, drawn),
    )


def _subscribe(overlay: Overlay, drawn: Play) -> None:
    for client, broker in drawn.producers.items():
        overlay.hand(broker, Advertise("offer", drawn.offer), client)
    for wanted in drawn.subscriptions:
        overlay.hand(wanted.broker, Subscribe(wanted.name, wanted.filter), wanted.client)


def _messages_per_change(overlay: Overlay, drawn: Play) -> float:
    """Messages for a subscription or its end, in the mean over visitors."""
    before = overlay.sent[AdminS]
    for broker, wanted in drawn.visits:
        overlay.hand(broker, Subscribe("once", wanted), "visitor")
        overlay.hand(broker, Unsubscribe("once"), "visitor")
    return (overlay.sent[AdminS] - before) / (2 * len(drawn.visits))


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 3)
