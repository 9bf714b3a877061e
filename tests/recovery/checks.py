"""What must hold at the end of a random world."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from recovery.disks import Disk
from recovery.nodes import SKEW
from recovery.subscribers import Chain, Subscriber
from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.times import MICROS
from vestnik.recovery.pages import LogEntry
from vestnik.wire.messages import Accepted
from vestnik.wire.origins import ENDLESS

if TYPE_CHECKING:
    from recovery.worlds import World

EARLY: Final = 6.0
"""Seconds before its start from which a subscription may get events: they were on their way."""


def found(world: World) -> Iterator[str]:
    """Yield what is wrong."""
    for publisher in world.publishers:
        if publisher.open:
            yield f"{publisher.name} waits for {list(publisher.open)}"
    for client in world.subscribers.values():
        for chain in client.chains:
            yield from _misplaced(world, client, chain)
            yield from _false_gaps(world, client, chain)
        if client.ended:
            continue
        if client.connection is None or not client.chains or not client.is_welcome:
            yield f"{client.name} is not subscribed"
        elif any(not isinstance(item, Accepted) for item in client.inbox):
            yield f"{client.name} is not done"
        else:
            yield from _lost(world, client, client.chains[-1])
    for node in world.nodes.values():
        yield from [f"not live: {feed}" for feed in node.unfinished]


def _misplaced(world: World, client: Subscriber, chain: Chain) -> Iterator[str]:
    """Yield what came twice, out of order, before the start, or unwanted."""
    got: set[tuple[str, int]] = set()
    logs: dict[tuple[int, Pair], str] = {}
    latest: dict[tuple[int, str], int] = {}
    numberings = {one.epoch: one for one, _ in chain.numberings}
    starts = {one.epoch: start for one, start in chain.numberings}
    for epoch, log, event, is_again in chain.got:
        offset, name = event.seq or 0, f"{client.name} {log} {event.seq}"
        disk = world.disks.get(log)
        if disk is None or offset not in disk.ever or disk.ever[offset][1].id != event.id:
            yield f"not of this log: {name}"
            continue
        if (log, offset) in got:
            yield f"twice {name}"
        got.add((log, offset))
        if logs.setdefault((epoch, (event.source, event.id)), log) != log and not is_again:
            yield f"repeat {name}"
        if offset <= latest.get((epoch, log), 0) and not chain.picks:
            yield f"order {name}"
        latest[epoch, log] = offset
        if log not in starts[epoch] and _is_early(chain, event, disk.accepted[offset]):
            yield f"too early {name}"
        if not numberings[epoch].filter_at(log, offset).matches(event):
            yield f"unwanted {name}"


def _is_early(chain: Chain, event: Event, accepted: float) -> bool:
    """Return whether an event is too early for a subscription that had no cursor of its log."""
    if chain.is_adopted or chain.picks:
        return False
    if chain.replay is None:
        return accepted < chain.first.made - EARLY
    return chain.replay.since is not None and (event.time or 0) < chain.replay.since and accepted < chain.at


def _false_gaps(world: World, client: Subscriber, chain: Chain) -> Iterator[str]:
    """Yield gaps of what came, of what its log still has, and of logs that are not over."""
    for epoch, gap in chain.gaps:
        disk, name = world.disks[gap.log], f"{client.name} {gap}"
        if not chain.picks and any(
            one.epoch == epoch and one.log == gap.log and gap.first <= (one.event.seq or 0) < gap.end
            for one in chain.got
        ):
            yield f"false gap, it came: {name}"
        if gap.end != ENDLESS:
            kept = [one.offset for one in disk.log if gap.first <= one.offset < gap.end]
            if kept and world.nodes[disk.origin.broker].is_durable:
                yield f"false gap, the log has {kept}: {name}"
        elif world.nodes[disk.origin.broker].disk is disk:
            yield f"false gap, the log goes on: {name}"


def _lost(world: World, client: Subscriber, chain: Chain) -> Iterator[str]:
    """Yield what was acknowledged and wanted, and did neither come nor lie in a gap that was told."""
    got = {(one.log, one.event.seq) for one in chain.got}
    pairs = {(one.event.source, one.event.id) for one in chain.got}
    for log, disk in world.disks.items():
        if world.nodes[disk.origin.broker].disk is not disk and log not in chain.logs:
            continue  # it is over, and the subscriber had no cursor of it
        gaps = [gap for _, gap in chain.gaps if gap.log == log]
        for offset in sorted(disk.acknowledged):
            entry, event = disk.ever[offset]
            if (log, offset) in got or (event.source, event.id) in pairs or not _is_due(chain, disk, entry, event):
                continue
            wanted = chain.numbering_at(log, offset).filter_at(log, offset)
            if wanted.matches(event) and not any(gap.first <= offset < gap.end for gap in gaps):
                yield f"lost {client.name} {log} {offset} accepted at {disk.accepted[offset]:.2f}"


def _is_due(chain: Chain, disk: Disk, entry: LogEntry, event: Event) -> bool:
    """Return whether a subscription is promised an event: it is of the past that it wants, or later than its start.

    A subscription starts at the time that its broker has then; at the latest, when it is settled. What others accepted
    by then may be later by their clocks, and be picked.
    """
    accepted = disk.accepted[entry.offset]
    if chain.is_adopted:
        return accepted >= chain.at
    if chain.replay is not None and not chain.replay.picks:
        return chain.replay.since is None or (event.time or 0) >= chain.replay.since
    start = chain.first.clock + (int(SKEW * MICROS) if chain.picks else 0)
    return (entry.time >= start and accepted >= chain.at) or accepted >= chain.first.settled_at
