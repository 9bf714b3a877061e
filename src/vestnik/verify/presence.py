"""Presence: who is not there is told nothing, and what a client is said to have lost was lost in some way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vestnik.trace.records import (
    AnyRecord,
    Attached,
    Corrupted,
    Crashed,
    Cut,
    Detached,
    Dropped,
    Lost,
    Missing,
    Notified,
    Published,
    Restarted,
    Resumed,
    Stalled,
    Subscribed,
    Unsubscribed,
    Vanished,
)
from vestnik.verify.histories import History, Key
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation
from vestnik.wire.messages import NodeId

CHANCES: Final = (
    *(Subscribed, Unsubscribed, Attached, Detached, Stalled, Resumed),
    *(Cut, Crashed, Corrupted, Dropped, Vanished, Lost, Missing),
)
"""The kinds of records that tell of losses, or of what may be a reason for them."""


def movements(history: History) -> dict[NodeId, list[int]]:
    """The records in which each client comes and goes; a client is who does or is done what only clients are."""
    clients = {record.client for _, record in history.of(Published)}
    clients |= {span.client for span in (*history.subscriptions, *history.advertisements)}
    found: dict[NodeId, list[int]] = {client: [] for client in clients}
    for number, record in history.of(Attached, Detached, Crashed, Restarted):
        match record:
            case Attached(client=client) | Detached(client=client):
                found.setdefault(client, []).append(number)
            case Crashed(node=node) | Restarted(node=node) if node in found:
                found[node].append(number)
    return found


def presence(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """Nothing reaches a client that is not connected, or has crashed."""
    away: dict[NodeId, AnyRecord] = {}
    for _, record in history.of(Detached, Crashed, Attached, Restarted, Notified, Lost, Missing):
        match record:
            case Detached(client=node) | Crashed(node=node):
                away[node] = record
            case Attached(client=node) | Restarted(node=node):
                away.pop(node, None)
            case Notified(client=client) | Lost(client=client) | Missing(client=client) if client in away:
                if record.at >= since:
                    event = record.event if isinstance(record, Notified) else None
                    name = "" if isinstance(record, Notified) else record.name
                    said = f"{client} was not there and was told something: {type(record).__name__}"
                    yield Violation("presence", said, client, name, event, (away[client], record))


def losses(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """What is lost or forgotten is so for a reason.

    Since the client subscribed, it came or went, or did not take its notifications, or a message between it and its
    broker was lost, or something happened to that broker, or to some broker where it is not known which is its own. Of
    the past, what is stored at any broker may have been out of reach, or lost on the way.
    """
    begun: dict[Key, int] = {}
    firsts: dict[tuple[NodeId, str, int], int] = {}  # of subscriptions that go on in another life of their broker
    parted = False
    homes: dict[NodeId, NodeId] = {}
    stalled: set[NodeId] = set()
    disturbed: dict[NodeId, int] = {}  # the last that happened to each node, and under "" to any
    for number, record in history.of(*CHANCES):
        parted = parted or isinstance(record, Cut | Crashed | Vanished)
        if isinstance(record, Stalled):
            stalled.add(record.client)
        elif isinstance(record, Resumed | Attached | Detached):
            stalled.discard(record.client)
        match record:
            case Subscribed(client=client, name=name, since=since_when):
                first = number if since_when is None else firsts.setdefault((client, name, since_when), number)
                begun.setdefault((client, name), first)
            case Unsubscribed(client=client, name=name):
                begun.pop((client, name), None)
            case Attached(client=client, broker=broker):
                homes[client] = broker
                disturbed[client] = number
            case Detached(client=client) | Stalled(client=client) | Resumed(client=client):
                disturbed[client] = number
            case Crashed(node=node) | Corrupted(node=node) | Dropped(node=node):
                disturbed[node] = disturbed[""] = number
            case Vanished(sender=sender, receiver=receiver):
                disturbed.update((node, number) for node in (sender, receiver) if node in homes)
            case Lost(client=client, name=name) | Missing(client=client, name=name) if record.at >= since:
                start = begun.get((client, name), -1)
                if parted and isinstance(record, Missing) and _replays(history.records[start]):
                    continue
                if client in stalled:
                    continue
                if max(disturbed.get(client, -1), disturbed.get(homes.get(client, ""), -1)) < start:
                    what = "lost something in" if isinstance(record, Lost) else "is to begin anew with"
                    said = f"{client} was told that it {what} {name}, and nothing had happened since it subscribed"
                    yield Violation("losses", said, client, name, None, (history.records[start], record))


def _replays(record: AnyRecord) -> bool:
    return isinstance(record, Subscribed) and record.replay is not None
