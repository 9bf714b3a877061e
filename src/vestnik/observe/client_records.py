"""Records of a trace about one client."""

from __future__ import annotations

from collections.abc import Iterator

from vestnik.session.acts import Act, Done, Hand, Lost, Missing
from vestnik.trace import records
from vestnik.trace.records import Acknowledged, AnyRecord, Notified, Rejected
from vestnik.wire.messages import NodeId, Publish


def records_of(act: Act, client: NodeId, now: float) -> Iterator[AnyRecord]:
    """Yield what is to be recorded when the session of a client wants something done."""
    match act:
        case Hand(event, numbers, replayed):
            yield Notified(now, client, event, numbers, replayed)
        case Lost(name, first, last):
            yield records.Lost(now, client, name, first, last)
        case Missing(name, reason):
            yield records.Missing(now, client, name, reason)
        case Done(Publish(events), reason, refused):
            reasons = {refusal.id: refusal.reason for refusal in refused}
            for event in events:
                if reason or event.id in reasons:
                    yield Rejected(now, client, event, reason or reasons[event.id])
                else:
                    yield Acknowledged(now, client, event)
