"""A small network of routers in memory, whose messages arrive in the order in which they were sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from vestnik import Event, Filter
from vestnik.model.times import FOREVER
from vestnik.routing.propagation import Source
from vestnik.routing.router import Router
from vestnik.wire.messages import AdminA, AdminS


class Network:
    """Brokers 0 to n-1; `edges` form a tree. Clients are named after their broker: `c2` is at `b2`."""

    def __init__(self, edges: list[tuple[int, int]], make: Callable[[int], Router]) -> None:
        names = {0} | {node for edge in edges for node in edge}
        self.routers = {f"b{number}": make(number) for number in sorted(names)}
        self.queue: deque[tuple[str, str, AdminS | AdminA]] = deque()
        self.sent = 0
        for one, other in edges:
            self.link(f"b{one}", f"b{other}")
        self.settle()

    def link(self, one: str, other: str) -> None:
        self.open(one, other)
        self.open(other, one)

    def open(self, one: str, other: str) -> None:
        """One direction of a link: what `one` says goes to `other` from now on."""
        self.routers[one].connect(other)
        self.flush(one)

    def cut(self, one: str, other: str) -> None:
        self.queue = deque(m for m in self.queue if {m[0], m[1]} != {one, other})
        self.routers[one].disconnect(other)
        self.routers[other].disconnect(one)
        self.flush(one)
        self.flush(other)

    def flush(self, name: str) -> None:
        for neighbour, message in self.routers[name].flush(0.0):
            self.queue.append((name, neighbour, message))
            self.sent += 1

    def settle(self) -> None:
        while self.queue:
            sender, name, message = self.queue.popleft()
            self.routers[name].take(sender, message, 0.0)
            self.flush(name)

    def subscribe(self, number: int, name: str, wanted: Filter) -> None:
        self.routers[f"b{number}"].subscribe(Source(f"c{number}", name), wanted, FOREVER)
        self.flush(f"b{number}")

    def unsubscribe(self, number: int, name: str, wanted: Filter) -> None:
        self.routers[f"b{number}"].unsubscribe(Source(f"c{number}", name), wanted)
        self.flush(f"b{number}")

    def advertise(self, number: int, name: str, offered: Filter) -> None:
        self.routers[f"b{number}"].advertise(Source(f"c{number}", name), offered, FOREVER)
        self.flush(f"b{number}")

    def unadvertise(self, number: int, name: str) -> None:
        self.routers[f"b{number}"].unadvertise(Source(f"c{number}", name))
        self.flush(f"b{number}")

    def publish(self, number: int, event: Event) -> Iterator[Source]:
        """Where an event arrives that a client publishes."""
        router = self.routers[f"b{number}"]
        if not router.conforms(f"c{number}")(event):
            return
        todo = deque([(f"b{number}", f"c{number}")])
        while todo:
            name, sender = todo.popleft()
            targets = self.routers[name].targets(event, sender)
            yield from targets.subscriptions
            todo += [(neighbour, name) for neighbour in targets.neighbours]
