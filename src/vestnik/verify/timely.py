"""Time: no client is handed an event before its `not_before`, and no broker hands one to a client once it has expired.

Where the messages of its broker to a client are recorded, they tell when it was handed out. Elsewhere a notification is
late when the moment in which its event expired had settled before.
"""

from __future__ import annotations

from collections.abc import Iterator

from vestnik.model.events import Event
from vestnik.model.times import MICROS
from vestnik.trace.records import Notified, Published, Sent
from vestnik.verify.histories import History, Key, key_of
from vestnik.verify.presence import movements
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation, named
from vestnik.wire.messages import NodeId


def timely(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """What is handed over too early, or handed out too late."""
    mortal: dict[Key, Event] = {}
    clients = movements(history).keys()
    watched: set[NodeId] = set()  # clients whose broker is seen to send
    for number, record in history.of(Published, Sent, Notified):
        match record:
            case Published(event=event) if event.expires is not None:
                mortal[key_of(event)] = event
            case Sent(receiver=client, events=keys) if keys and client in clients:
                watched.add(client)
                sent = [mortal[key] for key in keys if key in mortal]
                expired = [event for event in sent if (event.expires or 0) <= record.at * MICROS]
                if record.at >= since:
                    yield from (_violation("was sent", client, event, "had expired", record) for event in expired)
            case Notified(client=client, event=event) if record.at >= since:
                if event.not_before is not None and record.at < event.not_before / MICROS:
                    yield _violation("was notified of", client, event, "is not to be delivered yet", record)
                end = None if client in watched else event.expires
                if end is not None and history.settles(0, end / MICROS) <= number:
                    yield _violation("was notified of", client, event, "had expired", record)


def _violation(done: str, client: NodeId, event: Event, why: str, record: Sent | Notified) -> Violation:
    said = f"{client} {done} {named(event)}, which {why}"
    return Violation("timely", said, client, event=event, records=(record,))
