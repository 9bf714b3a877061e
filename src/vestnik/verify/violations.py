"""A rule that does not hold, with its counterexample."""

from __future__ import annotations

from typing import NamedTuple

from vestnik.model.events import Event
from vestnik.trace.records import AnyRecord
from vestnik.wire.messages import NodeId


class Violation(NamedTuple):
    """What happened, in a sentence, and in records in their order; whom and what it is about, where that is one."""

    rule: str
    said: str
    client: NodeId = ""
    subscription: str = ""
    event: Event | None = None
    records: tuple[AnyRecord, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule}: {self.said}"


def named(event: Event) -> str:
    """An event in a sentence."""
    return f"{event.source}/{event.id}"
