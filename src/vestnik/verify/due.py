"""Due: every event that any broker accepts is handed to all subscriptions that were there and want it, or is in a gap.

A count from outside finds the same: accepted events against those handed over, whatever happened in between. The rule
is about subscriptions that their brokers recorded. The record says since when accepted events are to come, and from
which offsets on it reads the logs that the client knew before. A subscription that goes on at another broker, or in
another life of its broker, is the same.

Events are due when everything has settled. That is looked at for the last time that all links and brokers were there,
and for each broker the last time that it was up: brokers that are shut down end one after another. Then an event is due
to a subscription that is there and whose client is connected, if every filter that it had since wants the event, and if
the broker that accepted the event is up. To a subscription that ended before, events are due as far as it had come in
each log, as its broker recorded, or its client when it subscribed again under the same name.

An event that has expired is not due, nor one that the client was told is missing: by the offsets of a gap, or, if it
was told no offsets, all that was accepted before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from vestnik.matching import Matcher
from vestnik.model.filters import Filter
from vestnik.model.times import MICROS
from vestnik.trace.records import (
    AnyRecord,
    Attached,
    Crashed,
    Detached,
    Lost,
    Missing,
    Notified,
    Published,
    Restarted,
    Resumed,
    Stalled,
    Subscribed,
    Unsubscribed,
)
from vestnik.verify.connections import Connections
from vestnik.verify.histories import History, Key, key_of
from vestnik.verify.quiet import is_log_of, last_agreements
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation, named
from vestnik.wire.messages import NodeId

SKEW: Final = 250_000
"""Microseconds by which the clocks of brokers may differ."""


class Accepted(NamedTuple):
    """An event in a log, with the record of its publication."""

    log: str
    time: int
    number: int
    record: Published


class Reading:
    """All that is known of one subscription: what it wanted when, and what it was handed and told."""

    def __init__(self, begun: Subscribed, number: int) -> None:
        self.begun = begun
        self.number = number
        self.filters: list[tuple[float, Filter]] = [(begun.at, begun.filter)]
        self.open = 0  # brokers at which it is there
        self.ended: list[Unsubscribed | Subscribed] = []  # with how far it had come
        self.handed: set[Key] = set()
        self.gaps: list[Missing] = []
        self.lost = ALWAYS  # when the client was told for the last time of losses without offsets

    @property
    def key(self) -> tuple[NodeId, str, int | None]:
        return self.begun.client, self.begun.name, self.begun.since

    def changed(self, record: Subscribed) -> None:
        if record.filter != self.filters[-1][1]:
            self.filters.append((record.at, record.filter))

    def wants(self, accepted: Accepted) -> bool:
        """Return whether an event is to come: it is not too old, and every filter since wants it."""
        return self._is_recent(accepted) and all(one.matches(accepted.record.event) for one in self._since(accepted))

    def _is_recent(self, accepted: Accepted) -> bool:
        begun, seen = self.begun, dict(self.begun.seen)
        event = accepted.record.event
        if accepted.log in seen:
            return event.seq is not None and event.seq >= seen[accepted.log]
        replay = begun.replay
        if replay is not None and not replay.picks and not seen:
            time = accepted.time if event.time is None else event.time
            return replay.since is None or time >= replay.since
        return accepted.time >= max((begun.since or 0) + SKEW, int(begun.at * MICROS) if replay is not None else 0)

    def _since(self, accepted: Accepted) -> Iterator[Filter]:
        """Yield the filters in force when an event was accepted, or later."""
        ends = [at for at, _ in self.filters[1:]]
        for (_, wanted), end in zip(self.filters, [*ends, float("inf")], strict=True):
            if end * MICROS >= accepted.time - SKEW:
                yield wanted

    def is_told(self, accepted: Accepted) -> bool:
        """Return whether the client was told that it misses an event."""
        seq = accepted.record.event.seq or 0
        is_in_gap = any(gap.log == accepted.log and gap.first <= seq < gap.end for gap in self.gaps)
        return is_in_gap or accepted.record.at <= self.lost


class Claim(NamedTuple):
    """An accepted event was to be handed to a subscription before a record."""

    reading: Reading
    accepted: Accepted
    until: AnyRecord


def due(history: History, since: float = ALWAYS) -> Iterator[Violation]:
    """Yield events that were due, and were neither handed over nor in a gap."""
    readings = {reading.key: reading for reading in _readings(history.records)}
    claims: dict[tuple[str, ...], Claim] = {}
    for claim in _claims(history, readings.values()):
        begun, event = claim.reading.begun, claim.accepted.record.event
        claims.setdefault((begun.client, begun.name, *key_of(event)), claim)
    for by_then, accepted, until in claims.values():
        reading = readings[by_then.key]
        client, name, event = reading.begun.client, reading.begun.name, accepted.record.event
        is_met = key_of(event) in reading.handed or reading.is_told(accepted)
        if accepted.record.at >= since and not is_met:
            said = f"{client} was never notified of {named(event)} for {name}, which wants it"
            yield Violation("due", said, client, name, event, (reading.begun, accepted.record, until))


def _claims(history: History, readings: Collection[Reading]) -> Iterator[Claim]:
    """Yield all claims, those of the last end first."""
    for end in sorted(_ends(history), reverse=True):
        yield from _at_an_end(history, end)
    yield from _at_endings(history, [reading for reading in readings if reading.ended])


def _at_an_end(history: History, end: int) -> Iterator[Claim]:
    """Yield what subscriptions have to have that are there at a record by which all had settled."""
    records = history.records[:end]
    present = _Present(records)
    readings = [one for one in _readings(records) if one.open and present.takes(one.begun.client)]
    accepted = [one for one in _accepted(records) if present.is_up(one) and _is_open(history, one, end)]
    for reading, one in _wanted(readings, accepted):
        yield Claim(reading, one, history.records[end])


def _at_endings(history: History, readings: Collection[Reading]) -> Iterator[Claim]:
    """Yield what subscriptions have to have that ended: their brokers recorded how far they had come."""
    for reading, one in _wanted(readings, _accepted(history.records) if readings else ()):
        event = one.record.event
        passed = [end for end in reading.ended if (event.seq or 0) < dict(end.seen).get(one.log, 0)]
        if passed and (event.expires is None or event.expires > passed[0].at * MICROS):
            yield Claim(reading, one, passed[0])


def _wanted(readings: Iterable[Reading], accepted: Iterable[Accepted]) -> Iterator[tuple[Reading, Accepted]]:
    wanting: Matcher[Reading] = Matcher()
    for reading in readings:
        wanting.add(reading, reading.filters[-1][1])
    for one in accepted:
        for reading in sorted(wanting.match(one.record.event), key=lambda reading: reading.number):
            if reading.wants(one):
                yield reading, one


def _ends(history: History) -> set[int]:
    """Return the records by which all had settled for the last time: of a whole network, and for each broker."""
    whole = Connections(history).end()
    return last_agreements(history.records, history.agreed) | (set() if whole is None else {whole})


def _is_open(history: History, accepted: Accepted, end: int) -> bool:
    """Return whether an event has settled by the end, and was to be handed over by then."""
    event, until = accepted.record.event, history.records[end].at * MICROS
    held = event.not_before is not None and event.not_before > until
    expired = event.expires is not None and event.expires <= until
    return not held and not expired and history.settles(accepted.number) <= end


def _accepted(records: Sequence[AnyRecord]) -> list[Accepted]:
    """Return all accepted events, each where it was accepted first."""
    logs: dict[NodeId, str] = {}
    found: dict[Key, Accepted] = {}
    for number, record in enumerate(records):
        match record:
            case Restarted(node=node, log=log):
                logs[node] = log
            case Published(event=event, accepted=int(time)) if event.broker is not None:
                one = Accepted(logs.get(event.broker, ""), time, number, record)
                found.setdefault(key_of(event), one)
    return list(found.values())


def _readings(records: Sequence[AnyRecord]) -> list[Reading]:
    found: dict[tuple[NodeId, str, int], Reading] = {}
    current: dict[tuple[NodeId, str], Reading] = {}
    for number, record in enumerate(records):
        match record:
            case Subscribed(client=client, name=name, since=int(since)):
                key = client, name
                if key in current and current[key].begun.since != since:
                    current[key].open = 0
                    current[key].ended += [record] if record.seen else []
                if (client, name, since) not in found:
                    found[client, name, since] = Reading(record, number)
                current[key] = found[client, name, since]
                current[key].open += 1
                current[key].changed(record)
            case Subscribed(client=client, name=name) if (client, name) in current:
                current[client, name].changed(record)
            case Unsubscribed(client=client, name=name) if (client, name) in current:
                current[client, name].open -= 1
                current[client, name].ended += [record] if record.seen else []
            case Notified(client=client, event=event, numbers=numbers):
                for name, _ in numbers:
                    if (client, name) in current:
                        current[client, name].handed.add(key_of(event))
            case Missing(client=client, name=name, log=str(log)) if log and (client, name) in current:
                current[client, name].gaps.append(record)
            case Missing(client=client, name=name) | Lost(client=client, name=name) if (client, name) in current:
                current[client, name].lost = record.at
    return list(found.values())


class _Present:
    """Clients and brokers that are there at the end."""

    def __init__(self, records: Sequence[AnyRecord]) -> None:
        self._homes: dict[NodeId, set[NodeId]] = {}
        self._stalled: set[NodeId] = set()
        self._down: set[NodeId] = set()
        for record in records:
            match record:
                case Attached(client=client, broker=broker):
                    self._homes.setdefault(client, set()).add(broker)
                    self._stalled.discard(client)
                case Detached(client=client, broker=broker):
                    self._homes.get(client, set()).discard(broker)
                case Stalled(client=client):
                    self._stalled.add(client)
                case Resumed(client=client):
                    self._stalled.discard(client)
                case Crashed(node=node):
                    self._down.add(node)
                case Restarted(node=node):
                    self._down.discard(node)

    def takes(self, client: NodeId) -> bool:
        return bool(self._homes.get(client)) and client not in self._stalled

    def is_up(self, accepted: Accepted) -> bool:
        """Return whether the broker that has an event in its log is up."""
        return not any(is_log_of(accepted.log, node) for node in self._down)
