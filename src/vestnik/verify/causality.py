"""Causal order: nobody sees an effect before its cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from vestnik.model.events import Event
from vestnik.trace.records import Attached, Dropped, Notified, Published
from vestnik.verify.connections import Connections
from vestnik.verify.histories import History, Key, key_of
from vestnik.verify.order import begun
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation, named
from vestnik.wire.messages import NodeId


class Ahead(NamedTuple):
    """An effect that came before its cause: where it was published, and handed to a client at broker `home`."""

    effect: Notified
    published: int
    handed: int
    home: NodeId


def causal(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """No subscription gets an event before one of its causes, if it gets both.

    What an event names as a cause is one where its publisher knew of it: had published it, or been notified of it.
    Subscriptions of a client do not wait for each other, so each is judged by itself. An effect is not held back for a
    cause that was published elsewhere, and whose broker is out of reach.
    """
    connections = Connections(history)
    lost: set[Key] = set()
    for record, ahead in _overtaken(history):
        key = key_of(record.event)
        if isinstance(record, Dropped):
            lost.add(key)
        elif ahead is None or ahead.effect.at < since or key in lost:
            continue
        elif not _is_out_of_reach(connections, record.event, ahead):
            said = f"{record.client} was notified of {named(record.event)} after {named(ahead.effect.event)}"
            said += ", of which it is a cause"
            yield Violation("causal", said, record.client, event=record.event, records=(ahead.effect, record))


def _overtaken(history: History) -> Iterator[tuple[Dropped, None] | tuple[Notified, Ahead | None]]:
    """What was dropped, and where a client is notified of a cause, which effect of it came before."""
    asked = {cause for _, record in history.of(Published) for cause in record.event.causes}
    homes: dict[NodeId, NodeId] = {}
    known: set[tuple[NodeId, Key]] = set()
    handed: set[tuple[NodeId, int, Key]] = set()
    effects: dict[Key, tuple[int, list[Key]]] = {}  # where they were published, and their causes
    ahead: dict[tuple[NodeId, int, Key], Ahead] = {}  # by subscriber and cause
    for number, record in history.of(Dropped, Attached, Published, Notified) if asked else ():
        match record:
            case Dropped():
                yield record, None
            case Attached(client=client, broker=broker):
                homes[client] = broker
            case Published(client=client, event=event):
                effects[key_of(event)] = number, [cause for cause in event.causes if (client, cause) in known]
            case Notified(client=client, event=event):
                key = key_of(event)
                published, causes = effects.get(key, (number, []))
                for subscriber in _subscribers(history, number, record):
                    yield record, ahead.pop((client, subscriber, key), None)
                    for cause in causes:
                        if (client, subscriber, cause) not in handed:
                            first = Ahead(record, published, number, homes.get(client, ""))
                            ahead.setdefault((client, subscriber, cause), first)
                    handed.update([(client, subscriber, key)] if key in asked else ())
        if isinstance(record, Published | Notified) and key_of(record.event) in asked:
            known.add((record.client, key_of(record.event)))


def _is_out_of_reach(connections: Connections, cause: Event, ahead: Ahead) -> bool:
    """Whether the broker of a cause was out of reach while its effect came from another."""
    origin, other = cause.broker or "", ahead.effect.event.broker or ""
    return origin != other and connections.were_apart(origin, ahead.home, ahead.published, ahead.handed)


def _subscribers(history: History, number: int, record: Notified) -> set[int]:
    """Return where the subscriptions began that an event is handed to."""
    return {begun(history, record.client, name, number)[0] for name, _ in record.numbers}
