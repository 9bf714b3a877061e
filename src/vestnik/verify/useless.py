"""Which copies of events went over links between brokers in vain.

A copy is needed where it comes to a broker, or through it to another, that has a client who wants the event: whose
subscription matched it as it was published, or who was sent it or handed it there. All others are useless: they are
what a strategy pays for telling its neighbours less than it knows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from vestnik.trace.records import Attached, Notified, Published, Sent
from vestnik.verify.histories import History, Key, key_of
from vestnik.verify.presence import movements
from vestnik.verify.publications import wanted
from vestnik.wire.messages import NodeId


class Copy(NamedTuple):
    """An event went over a link."""

    sender: NodeId
    receiver: NodeId
    is_needed: bool


class Carried(NamedTuple):
    """How many copies went over a link, and how many of them in vain."""

    copies: int
    useless: int


def copies(history: History, events: Collection[tuple[object, ...]] | None = None) -> Iterator[Copy]:
    """Of these events, or of all."""
    clients = movements(history).keys()
    ways: dict[Key, list[tuple[NodeId, NodeId]]] = {}
    needed: dict[Key, set[NodeId]] = {}
    homes: dict[NodeId, NodeId] = {}
    wanting = wanted(history)
    for _, record in history.of(Attached, Published, Notified, Sent):
        match record:
            case Attached(client=client, broker=broker):
                homes[client] = broker
            case Published(event=event):
                for span in next(wanting)[2]:
                    needed.setdefault(key_of(event), set()).add(homes.get(span.client, ""))
            case Notified(client=client, event=event):
                needed.setdefault(key_of(event), set()).add(homes.get(client, ""))
            case Sent(sender=sender, receiver=receiver, events=carried) if sender not in clients:
                for key in carried:
                    if receiver in clients:
                        needed.setdefault(key, set()).add(sender)
                    elif events is None or key in events:
                        ways.setdefault(key, []).append((sender, receiver))
    for key, links in ways.items():
        onward: dict[NodeId, list[NodeId]] = {}
        for sender, receiver in links:
            onward.setdefault(sender, []).append(receiver)
        yield from (Copy(*link, _leads(link, onward, needed.get(key, set()))) for link in links)


def useless(found: Iterable[Copy]) -> dict[tuple[NodeId, NodeId], Carried]:
    """By link, from a broker to another."""
    counted: dict[tuple[NodeId, NodeId], Carried] = {}
    for sender, receiver, is_needed in found:
        before = counted.get((sender, receiver), Carried(0, 0))
        counted[sender, receiver] = Carried(before.copies + 1, before.useless + (not is_needed))
    return dict(sorted(counted.items()))


def _leads(link: tuple[NodeId, NodeId], onward: dict[NodeId, list[NodeId]], needed: set[NodeId]) -> bool:
    """Whether a copy comes to a broker that needs it, on without turning back."""
    passed, reached = set(link), [link[1]]
    for broker in reached:
        if broker in needed:
            return True
        new = set(onward.get(broker, ())) - passed
        passed |= new
        reached += new
    return False
