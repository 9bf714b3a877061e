"""Publishing a batch that was staged: each event once, wherever an earlier attempt ended.

What the batch is, is decided first and for good; then its events are published in order, some at a time, and how many
are done is written down after each time. So at most CHUNK events are in doubt. Of these, who goes on looks into the
broker's journal for those that it has; where that may not be read, the broker knows the last ids of a source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from vestnik.client.sync import SyncBus, connect_sync
from vestnik.errors import NotAccepted, RefusedEvent, WrongValue
from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.spark.source.options import Writing
from vestnik.spark.source.staging import Decision, Part, Staging
from vestnik.wire.leaves import opened

CHUNK: Final = 1_000
FEW_SOURCES: Final = 50
"""Sources that a journal is asked for by name."""
LENIENT: Final = "with the option onBadRow set to quarantine these are kept in the staging folder, and the rest goes on"


def publish(staging: Staging, batch: int, parts: Iterable[Part], options: Writing) -> None:
    """Publish what the parts hold, or what an earlier attempt has decided on."""
    with staging.alone():
        if batch <= staging.committed():
            staging.drop(batch)
            return
        decision = staging.decision(batch)
        offered = tuple(sorted(parts, key=lambda part: part.partition))
        if decision is None and not any(part.events or part.bad for part in offered):
            staging.drop(batch)
            return
        with connect_sync(options.url, timeout=options.timeout, **options.connection) as bus:
            if decision is None:
                decision = Decision(offered, *_position(bus))
                staging.decide(batch, decision)
            refused = _publish(bus, staging, batch, decision, options)
        bad = [one for part in decision.parts for one in part.bad]
        if bad or refused:
            staging.quarantine(batch, bad + refused)
        staging.finish(batch)


def _publish(bus: SyncBus, staging: Staging, batch: int, decision: Decision, options: Writing) -> list[dict[str, Any]]:
    """Publish what is left of the batch; what was refused of it."""
    done = staging.progress(batch)
    left = islice(staging.events(batch, decision), done, None)
    known = _known(bus, decision, chunk := list(islice(left, CHUNK)))
    refused: list[dict[str, Any]] = []
    while chunk:
        fresh = [event for event in chunk if (event.source, event.id) not in known]
        try:
            bus.publish_many(fresh)
        except NotAccepted as error:
            if not error.refused:
                raise
            if not options.is_lenient:
                raise NotAccepted(error.what, f"{error.reason}; {LENIENT}", error.refused) from None
            refused += _kept(error.refused, fresh)
        done += len(chunk)
        staging.advance(batch, done)
        chunk, known = list(islice(left, CHUNK)), set()
    return refused


def _kept(refused: tuple[RefusedEvent, ...], events: list[Event]) -> Iterator[dict[str, Any]]:
    by_pair = {(event.source, event.id): event for event in events}
    for one in refused:
        yield {"reason": one.reason, "event": by_pair[one.source, one.id].to_json()}


def _position(bus: SyncBus) -> tuple[str | None, int | None]:
    """The broker, and how far its journal is; nothing where it does not say."""
    try:
        found = bus.review(after=-1, most=1)
    except NotAccepted:
        return None, None
    return found.broker, found.last


def _known(bus: SyncBus, decision: Decision, doubtful: list[Event]) -> set[Pair]:
    """Those of the events in doubt that the broker has taken."""
    if decision.position is None or not doubtful:
        return set()
    pairs = {(event.source, event.id) for event in doubtful}
    wanted = _of_sources({source for source, _ in pairs})
    after, known = decision.position, set()
    while True:
        found = bus.review(wanted, after=after)
        if found.broker != decision.broker:
            raise WrongValue(
                f"the batch was begun at the broker {decision.broker}, which has to finish it", found.broker
            )
        known |= {(one.event.source, one.event.id) for one in opened(found.page)[0]} & pairs
        if found.page.after >= found.last:
            return known
        after = found.page.after


def _of_sources(sources: set[str]) -> Filter:
    if len(sources) > FEW_SOURCES:
        return Filter.all()
    texts = ["'" + source.replace("'", "''") + "'" for source in sorted(sources)]
    return Filter.parse(f"source IN ({', '.join(texts)})")
