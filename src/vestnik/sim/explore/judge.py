"""Judges a quiescent world: everything is up, so everything must have arrived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vestnik.sim.explore.brokers import BrokerNode, Placed
from vestnik.sim.explore.clients import ClientNode
from vestnik.sim.explore.watches import Watch
from vestnik.wire.origins import ENDLESS, Origin


def wrongs(brokers: Sequence[BrokerNode], clients: Sequence[ClientNode]) -> Iterator[str]:
    """Yield what is wrong with a quiescent world."""
    origins = {broker.origin for broker in brokers}
    for broker in brokers:
        yield from broker.unfinished(origins)
    placed = [one for broker in brokers for one in broker.placed]
    refused = {id for client in clients for id in client.refused}
    for client in clients:
        if client.unanswered:
            yield f"{client.name} waits for answers about {', '.join(sorted(client.unanswered))}"
        for name, watch in client.watches.items():
            for wrong in _wrong(watch, placed, origins, refused):
                yield f"{client.name} {name}: {wrong}"


def _wrong(watch: Watch, placed: Iterable[Placed], origins: set[Origin], refused: set[str]) -> Iterator[str]:
    current = {str(origin) for origin in origins}
    if not watch.is_settled:
        yield "it never settles"
    for log, first, end in watch.gaps:
        if log in current and end == ENDLESS:
            yield f"false gap, {log} goes on"
        kept = [one.event.id for one in placed if one.log == log in current and first <= one.offset < end]
        if kept:
            yield f"false gap, {log} has {', '.join(kept)}"
    for event in watch.due:
        if event.id not in refused:
            yield from _lost(watch, event.id, [one for one in placed if one.event.id == event.id], current)


def _lost(watch: Watch, id: str, placed: Sequence[Placed], current: set[str]) -> Iterator[str]:
    """Yield an event that did not come, unless its log is over, and that was told or the client had no cursor of it."""
    if not placed:
        yield f"{id} was acknowledged, and no log has it"
    for one in placed:
        if not watch.is_told(one.log, one.offset) and (one.log in current or one.log in watch.logs):
            yield f"{id} is lost: {one.log} {one.offset}"
