"""Whether the traces that are given can be checked as one run: of every broker that matters, and each once."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from vestnik.errors import MissingTrace, RepeatedTrace
from vestnik.trace.records import AnyRecord, Linked, Notified, Quiet, Restarted
from vestnik.wire.messages import NodeId


def check_once(starts: Iterable[tuple[str, Restarted]]) -> None:
    """Raise RepeatedTrace if two of these starts of brokers, each in a file, are the same."""
    found: dict[tuple[NodeId, float], str] = {}
    for file, start in starts:
        key = start.node, start.at
        if key in found:
            raise RepeatedTrace(found[key], file, start.node)
        found[key] = file


def check_complete(traced: Collection[NodeId], records: Iterable[AnyRecord], accepting: Collection[NodeId]) -> None:
    """Raise MissingTrace if clients were notified of events of a broker in the network that has no trace.

    There are traces of the brokers `traced`, or one with no name of a whole network. The events that clients were
    notified of are from `accepting` brokers. A broker is in the network if `records` have a link to it or name its log.
    A broker that accepted none of these events may have no trace: a router or a history, or one where nobody publishes.
    """
    untraced = set(accepting) - set(traced)
    if untraced and "" not in traced and (missing := untraced & _in_network(records)):
        raise MissingTrace(sorted(missing))


def accepting(records: Iterable[AnyRecord]) -> set[NodeId]:
    """Return the brokers from whose logs clients were notified of events."""
    events = (record.event for record in records if isinstance(record, Notified))
    return {event.broker for event in events if event.broker is not None and event.seq is not None}


def _in_network(records: Iterable[AnyRecord]) -> set[NodeId]:
    found: set[NodeId] = set()
    for record in records:
        match record:
            case Linked(one=one, other=other):
                found |= {one, other}
            case Quiet(logs=logs):
                found |= {log.rpartition("/")[0] for log, _ in logs}
    return found
