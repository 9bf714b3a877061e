"""Repeats: a subscription gets an event once, also if its publisher repeated it at another broker.

The rule `once` of `verify/safety` is about one stream and one life of a subscription. This one is about subscriptions
that their brokers recorded. A client that comes back says how far it has come in each log, and its broker must not send
again what the client has of that log. A repeat of an event that came from another log before, the client recognises by
itself: its broker may have forgotten the event, and send the repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vestnik.trace.records import Attached, Notified, Subscribed
from vestnik.verify.histories import History, Key, key_of
from vestnik.verify.order import begun
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation, named
from vestnik.wire.messages import NodeId


class Had:
    """The notifications that a subscription, made at this time, has got at a broker."""

    def __init__(self, made: int, broker: NodeId | None) -> None:
        self.made = made
        self.broker = broker
        self.notified: dict[Key, Notified] = {}

    def keep(self, cursors: Mapping[NodeId, int]) -> None:
        """Keep what the client says that it has: all of each broker below an offset."""
        self.notified = {
            key: one
            for key, one in self.notified.items()
            if (one.event.seq or 0) < cursors.get(one.event.broker or "", 0)
        }


def repeats(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """Yield what a client was notified of again, although it had it."""
    homes: dict[NodeId, NodeId] = {}
    had: dict[tuple[NodeId, str], Had] = {}
    for number, record in history.of(Attached, Subscribed, Notified):
        match record:
            case Attached(client=client, broker=broker):
                homes[client] = broker
            case Subscribed(client=client, name=name, since=int(made), seen=seen):
                before, home = had.get((client, name)), homes.get(client)
                if before is None or (before.made, before.broker) != (made, home):
                    had[client, name] = Had(made, home)
                else:
                    before.keep({log.rpartition("/")[0]: offset for log, offset in seen})
            case Notified(client=client, numbers=numbers):
                for name, _ in numbers:
                    if (client, name) in had and record.at >= since:
                        yield from _repeated(history, number, record, name, had[client, name])


def _repeated(history: History, number: int, record: Notified, name: str, had: Had) -> Iterator[Violation]:
    event = record.event
    before = had.notified.get(key_of(event))
    had.notified[key_of(event)] = record
    if before is None:
        return
    start, _ = begun(history, record.client, name, number)
    is_same_life = start >= 0 and before.at >= history.records[start].at
    if (before.event.stream != event.stream) == is_same_life:
        said = f"{record.client} was notified of {named(event)}, for {name} a second time"
        yield Violation("once", said, record.client, name, event, (before, record))
