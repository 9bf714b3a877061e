"""For how long brokers and links between them were away."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vestnik.trace.records import AnyRecord, Crashed, Cut, Linked, Restarted


class Outage(NamedTuple):
    """A broker, or a link as `a - b`, was away from one time to another."""

    what: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def longest_outage(records: Iterable[AnyRecord]) -> Outage | None:
    """Of those that ended."""
    away: dict[str, float] = {}
    found: list[Outage] = []
    for record in records:
        match record:
            case Crashed(node=what):
                away.setdefault(what, record.at)
            case Cut(one=one, other=other):
                away.setdefault(_link(one, other), record.at)
            case Restarted(node=what) if what in away:
                found.append(Outage(what, away.pop(what), record.at))
            case Linked(one=one, other=other) if _link(one, other) in away:
                found.append(Outage(_link(one, other), away.pop(_link(one, other)), record.at))
    return max(found, key=lambda outage: outage.seconds, default=None)


def _link(one: str, other: str) -> str:
    return " - ".join(sorted((one, other)))
