"""Finds the moments at which brokers agree that nothing is on its way between them.

Each broker records now and then since when it is quiet, and how far it has read each log. If at one moment all brokers
that are up were quiet, and all had read every log to its end, nothing was on its way then: accepted events travel
before the end of the log that others are told. What a broker said before another one crashed does not count: something
may have been on its way from that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vestnik.trace.records import AnyRecord, Crashed, Quiet, Restarted
from vestnik.wire.messages import NodeId


def agreements(records: Sequence[AnyRecord]) -> list[int]:
    """Return the numbers of records by which all brokers that are up were quiet and agreed."""
    up: set[NodeId] = set()
    latest: dict[NodeId, int] = {}
    found: set[int] = set()
    for number, record in enumerate(records):
        match record:
            case Crashed(node=node) if node in up:
                up.discard(node)
                latest.clear()
            case Restarted(node=node, log=log) if log:
                up.add(node)
                latest.pop(node, None)
            case Quiet(node=node):
                up.add(node)
                latest[node] = number
                if latest.keys() == up and _agree([records[place] for place in latest.values()]):
                    found.add(min(latest.values()))
    return sorted(found)


def last_agreements(records: Sequence[AnyRecord], agreed: Iterable[int]) -> set[int]:
    """Return, for each broker, the last of these agreements at which it was up."""
    up: set[NodeId] = set()
    last: dict[NodeId, int] = {}
    numbers = set(agreed)
    for number, record in enumerate(records):
        match record:
            case Crashed(node=node):
                up.discard(node)
            case Restarted(node=node, log=log) if log:
                up.add(node)
            case Quiet(node=node):
                up.add(node)
        if number in numbers:
            last.update(dict.fromkeys(up, number))
    return set(last.values())


def _agree(quiet: Iterable[AnyRecord]) -> bool:
    said = [record for record in quiet if isinstance(record, Quiet)]
    if max(record.since for record in said) > min(record.at for record in said):
        return False
    read = {record.node: dict(record.logs) for record in said}
    ends = [(log, end) for node, logs in read.items() for log, end in logs.items() if is_log_of(log, node)]
    return len(ends) == len(said) and all(logs.get(log) == end for logs in read.values() for log, end in ends)


def is_log_of(log: str, broker: NodeId) -> bool:
    return log.rpartition("/")[0] == broker
