"""Random worlds: brokers, links, publishers and subscribers under faults.

A world is a function of its seed. Faults are crashes, damaged disks, disks that are full, cuts, stalls longer than the
lease, moved links, retention, moves, pauses, lost memory, changed filters, repeats at another broker, and
advertisements that come and go.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from math import inf
from typing import Any, Final
from unittest.mock import patch

from recovery.checks import found
from recovery.disks import Disk
from recovery.links import Link
from recovery.nodes import Node, Numbering
from recovery.publishers import Publisher
from recovery.subscribers import Subscriber
from vestnik.recovery.pages import LOOK

STRATEGIES: Final = ("simple", "covering", "merging")
MIXED: Final = (
    "cut cut quick crash crash damage full stall stall move client client pmove pause forget change change unsub "
    "readvertise drop"
).split()
MOVING: Final = "move move quick cut stall client pause".split()
CLIENTS: Final = "client change pause pmove readvertise quick".split()
CALM_AT: Final = 42.0
END: Final = 140.0
"""Late enough for a window of 1 over the slowest links, such as in world 105718."""
SMALL: Final = {
    "vestnik.recovery.reading.PAGE": 4,
    "vestnik.recovery.giving.STEPS": 6,
    "vestnik.recovery.reads.NEAR": 8,
    "vestnik.recovery.replays.MANY": 2,
    "vestnik.recovery.pages.SCANNED": 12,
    "vestnik.recovery.pages.SIFTED": 4,
    "vestnik.recovery.pages.PASSED": 12 * LOOK,
}
"""Limits that are so large that no world would reach them."""


class World:
    """`run` returns what went wrong."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.now = 0.0
        self.ids = count(1)
        self.blames: list[str] = []
        self.disks: dict[str, Disk] = {}
        self.numberings: dict[int, Numbering] = {}  # by the epoch
        self._heap: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self.strategy = rng.choice(STRATEGIES)
        self.advertises = rng.random() < 0.5
        self.delay, self.think = rng.choice([0.1, 0.5, 1.5]), rng.choice([0.05, 0.3, 1.5])
        self.retained, self.tail = rng.choice([0, 0, 0, 5, 12]), rng.choice([1, 3, 1000])
        self.sweep, self.lease = rng.choice([(inf, inf), (inf, inf), (2.0, 8.0)])
        self.faults = rng.choice([0, 3, 6, 10])
        self.kinds = rng.choice([MIXED, MIXED, MOVING, CLIENTS])
        size, all_durable = rng.randint(2, 5), rng.random() < 0.5
        self.nodes = {f"B{n}": Node(self, f"B{n}", all_durable or rng.random() < 0.6) for n in range(size)}
        self.links = [Link(self, f"B{rng.randrange(n)}", f"B{n}") for n in range(1, size)]
        self.late = rng.choice([f"B{n}" for n in range(1, size)]) if size > 2 and rng.random() < 0.3 else ""
        for name in self.nodes:
            self.after(rng.uniform(3, 12) if name == self.late else 0, self.restart, name)
        self.publishers: list[Publisher] = []
        self.subscribers: dict[str, Subscriber] = {}
        self._people()

    def _people(self) -> None:
        rng, brokers = self.rng, list(self.nodes)
        for n in range(rng.randint(1, 3)):
            low = rng.randint(0, 6)
            self.publishers.append(Publisher(self, f"P{n}", (low, low + rng.randint(0, 4))))
            self.after(rng.uniform(0.1, 4), self.publishers[-1].connect, rng.choice(brokers))
        together = rng.choice(brokers) if rng.random() < 0.25 else ""
        at = rng.uniform(2, 20)
        for n in range(rng.randint(1, 4)):
            low, start = rng.randint(0, 8), rng.choice([None, None, -inf, rng.uniform(0, 6)])
            last = rng.randint(1, 4) if start is None and rng.random() < 0.25 else 0
            client = Subscriber(self, f"S{n}", (low, low + rng.randint(0, 5)), start, last)
            self.subscribers[client.name] = client
            when = at + rng.uniform(0, 1) if together else rng.uniform(0.1, 15)
            self.after(when, client.connect, together or rng.choice(brokers))

    @property
    def clients(self) -> list[Subscriber | Publisher]:
        return [*self.publishers, *self.subscribers.values()]

    def blame(self, what: str) -> None:
        self.blames.append(what)

    def after(self, delay: float, act: Callable[..., object], *arguments: Any) -> None:
        heapq.heappush(self._heap, (self.now + delay, next(self.ids), act, arguments))

    def links_of(self, name: str) -> list[Link]:
        return [link for link in self.links if name in link.ends]

    def restart(self, name: str) -> None:
        if not self.nodes[name].is_up:
            self.nodes[name].begin()
            for link in self.links_of(name):
                self.after(self.rng.uniform(0.05, 1), link.up)

    def run(self) -> list[str]:
        for _ in range(self.faults):
            self.after(self.rng.uniform(2, 30), self._fault)
        for publisher in self.publishers:
            for _ in range(self.rng.randint(5, 25)):
                self.after(self.rng.uniform(1, 30), publisher.publish)
        self.after(CALM_AT, self._calm)
        with ExitStack() as small:
            for name, value in SMALL.items():
                small.enter_context(patch(name, value))
            while self._heap and self._heap[0][0] <= END:
                self.now, _, act, arguments = heapq.heappop(self._heap)
                act(*arguments)
        return [*self.blames, *found(self)]

    def _calm(self) -> None:
        """End all faults, and be fast: what is behind catches up."""
        self.delay, self.think = 0.1, 0.05
        for name in self.nodes:
            self.restart(name)
        for link in self.links:
            link.stalled = dict.fromkeys(link.ends, 0.0)
            for delay in (0, 3, 8):
                self.after(delay, link.up)
        for client in self.subscribers.values():
            client.paused = 0

    # --- faults ---

    def _fault(self) -> None:
        rng = self.rng
        kind = rng.choice(self.kinds)
        link, node = rng.choice(self.links), rng.choice(list(self.nodes.values()))
        client, publisher = rng.choice(list(self.subscribers.values())), rng.choice(self.publishers)
        match kind:
            case "cut":
                link.cut(back=rng.uniform(1, 8))
            case "quick":
                link.cut(back=rng.uniform(0.01, 0.3))
            case "crash" | "damage" if node.is_up:
                node.crash(rng.randint(1, 3) if kind == "damage" else 0)
                self.after(rng.uniform(0.5, 6), self.restart, node.name)
            case "full":
                node.failing = self.now + rng.uniform(1, 4)
            case "stall":
                for end in rng.choice([link.ends[:1], link.ends[1:], link.ends]):
                    link.stalled[end] = self.now + rng.uniform(1, 9)
            case "move":
                self._move(link)
            case "pmove" if publisher.broker:
                publisher.connect(rng.choice(list(self.nodes)))
            case "readvertise" if self.advertises and publisher.connection is not None:
                publisher.advertise_again()
            case "drop" if self.retained and node.is_up and node.is_durable:
                node.disk.drop(self.retained)
            case _ if client.connection is not None:
                self._client_fault(kind, client)

    def _client_fault(self, kind: str, client: Subscriber) -> None:
        rng = self.rng
        match kind:
            case "client":
                client.disconnect(again=False)
                self.after(rng.uniform(0.1, 6), client.return_)
            case "pause":
                client.pause(rng.uniform(2, 10))
            case "forget":
                client.disconnect()
                client.forget(adopts=rng.random() < 0.5)
            case "change":
                low = rng.randint(0, 8)
                client.change((low, low + rng.randint(0, 6)))
            case "unsub" if len(self.subscribers) > 1:
                client.unsubscribe()

    def _move(self, link: Link) -> None:
        """Cut off one side of a link, and link it elsewhere."""
        side, grows = {link.ends[1]}, True
        while grows:
            more = {end for one in self.links if one is not link for end in one.ends if side & set(one.ends)}
            grows, side = not more <= side, side | more
        rest = [name for name in self.nodes if name not in side]
        if rest and len(self.nodes) > 2:
            link.is_removed = True
            link.cut()
            self.links.remove(link)
            self.links.append(Link(self, self.rng.choice(rest), self.rng.choice(sorted(side))))
            self.after(self.rng.uniform(0.05, 3), self.links[-1].up)
