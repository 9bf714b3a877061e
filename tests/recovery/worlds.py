"""Random worlds: brokers, links, publishers and readers under faults, and a checker of what the readers got.

A world is a function of its seed. Faults are crashes, damaged disks, cuts, stalls longer than the lease, moved links,
retention, moves, pauses, changed filters, repeats at another broker, and advertisements that come and go.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from math import inf
from typing import Any, Final

from recovery.nodes import SKEW, Disk, Node, Range, micros
from vestnik import Event
from vestnik.recovery.feeds import Start
from vestnik.recovery.reader import Given, ReaderKey
from vestnik.wire.messages import Message
from vestnik.wire.origins import Origin, Span

STRATEGIES: Final = ("simple", "covering", "merging")
MIXED: Final = (
    "cut cut quick crash crash damage stall stall move client client pmove pause forget change change unsub "
    "readvertise drop"
).split()
MOVING: Final = "move move quick cut stall client pause".split()
CLIENTS: Final = "client change pause pmove readvertise quick".split()
CALM_AT: Final = 42.0
END: Final = 190.0


def holds(wanted: Range, event: Event) -> bool:
    return bool(wanted[0] <= event.data["v"] <= wanted[1])


class Link:
    """A link between two brokers: messages arrive in order, in one session, or not at all."""

    def __init__(self, world: World, a: str, b: str) -> None:
        self.world, self.ends = world, (a, b)
        self.session: int | None = None
        self.is_removed = False
        self.latest = {a: 0.0, b: 0.0}
        self.stalled = {a: 0.0, b: 0.0}

    def other(self, name: str) -> str:
        return self.ends[1] if name == self.ends[0] else self.ends[0]

    def up(self) -> None:
        if self.session is None and not self.is_removed and all(self.world.nodes[end].is_up for end in self.ends):
            self.session = next(self.world.ids)
            for end in self.ends:
                self._later(end, None)

    def send(self, sender: str, session: int, message: Message) -> None:
        if self.session == session:
            self._later(self.other(sender), message)

    def _later(self, to: str, message: Message | None) -> None:
        delay = self.world.rng.uniform(0.05, 0.05 + self.world.delay)
        at = max(self.latest[to], self.stalled[to], self.world.now + delay) + 1e-6
        self.latest[to] = at
        self.world.after(at - self.world.now, self._arrive, self.session, to, message)

    def _arrive(self, session: int, to: str, message: Message | None) -> None:
        node, sender = self.world.nodes[to], self.other(to)
        if self.session != session or not node.is_up:
            return
        if message is None:
            node.link_up(self, sender, session)
        elif sender in node.links and node.links[sender][1] == session:
            node.receive(sender, message)

    def cut(self, back: float | None = None) -> None:
        session, self.session = self.session, None
        if session is not None:
            for end in self.ends:
                self.world.after(
                    self.world.rng.uniform(0, 1), self.world.nodes[end].link_down, self.other(end), session
                )
        if back is not None:
            self.world.after(back, self.up)


class Chain:
    """What a reader got from one start on, with nothing forgotten in between; and the filters it had, from where on."""

    def __init__(self, client: Client, since: int, now: float) -> None:
        self.since, self.now = since, now
        self.start, self.last = client.start, client.last
        self.epoch = client.epoch
        self.got: list[tuple[int, Origin, Event, bool]] = []
        self.gaps: list[tuple[int, Origin, Span]] = []
        self.cuts: list[tuple[dict[Origin, int], Range]] = [({}, client.wanted)]

    def filter_at(self, origin: Origin, offset: int) -> Range:
        wanted = self.cuts[0][1]
        for cursors, later in self.cuts[1:]:
            if cursors.get(origin, 0) <= offset:
                wanted = later
        return wanted


class Client:
    """A reader with one subscription. It may be slow, move, lose its memory, and change its filter."""

    def __init__(
        self, world: World, name: str, wanted: Range, is_durable: bool, start: float | None, last: int
    ) -> None:
        self.world, self.name, self.wanted, self.is_durable = world, name, wanted, is_durable
        self.start, self.last = start, last
        self.key: ReaderKey = name, "s"
        self.broker = ""
        self.connection: int | None = None
        self.cursors: dict[Origin, int] = {}
        self.ever: set[Origin] = set()
        self.recent: dict[tuple[str, str], Origin] = {}
        self.number = self.epoch = 0
        self.chains: list[Chain] = []
        self.has_forgotten, self.ended, self.is_busy = True, False, False
        self.again = -1
        self.paused = self.latest = 0.0
        self.inbox: deque[Given | Mapping[Origin, int]] = deque()

    def connect(self, broker: str) -> None:
        if self.ended:
            return
        if self.connection is not None:
            self.disconnect(again=False)
        node, rng = self.world.nodes[broker], self.world.rng
        if not node.is_up:
            self.world.after(rng.uniform(0.5, 2), lambda: self.connect(self.choose()))
            return
        self.broker, self.connection = broker, next(self.world.ids)
        self.world.after(rng.uniform(0.05, 0.3), self._arrive, node, node.life, self.connection)

    def _arrive(self, node: Node, life: int, connection: int) -> None:
        if self.connection != connection:
            return
        if not node.is_up or node.life != life:
            self.disconnect()
            return
        for other in self.world.nodes.values():  # the old broker learns of it, sooner or later
            if other is not node and other.is_up and self.key in other.clients:
                self.world.after(self.world.rng.uniform(0.1, 3), self._leave, other, other.life)
        self._attach(node)

    def _leave(self, node: Node, life: int) -> None:
        is_elsewhere = self.broker != node.name or self.connection is None
        if node.is_up and node.life == life and self.key in node.clients and is_elsewhere:
            node.unsubscribe(self.key)

    def _attach(self, node: Node) -> None:
        """Subscribe: as new, with the cursors in hand, or with nothing but the name of a durable subscription."""
        assert node.disk is not None
        if self.chains and not self.has_forgotten:
            chain = self.chains[-1]
            for cursors, _ in chain.cuts:
                for origin in cursors:
                    cursors[origin] = min(cursors[origin], self.cursors.get(origin, 0))
            if chain.cuts[-1][1] != self.wanted:
                chain.cuts.append((dict(self.cursors), self.wanted))
            start = Start(dict(self.cursors))
            terms: dict[str, Any] = {"last": self.number, "recent": self.recent.items()}
            node.subscribe(self, self.wanted, chain.since, start, **terms)
        else:
            here = self.key in node.clients
            kept = node.stored(self.key) if here else node.disk.subscriptions.get(self.name)
            self.number, self.cursors, self.recent, self.again = 0, {}, {}, -1
            if kept and self.is_durable and self.chains:
                self.epoch += 1
                self.wanted, self.again = kept["filter"], micros(node.clock + SKEW)
                node.subscribe(self, self.wanted, kept["since"], Start(kept["cursors"]))
            else:
                made = node.clock - SKEW
                self.start = None if self.start is None else min(self.start, made)
                since = micros(made if self.start is None else max(self.start, 0))
                self.chains.append(Chain(self, since, self.world.now))
                self.ever = set()
                replayed = None if self.start is None or self.start == -inf else since
                start = Start(replays=self.start is not None, since=replayed, last=self.last)
                node.subscribe(self, self.wanted, since, start)
        node.store(self.key)

    def choose(self) -> str:
        rng = self.world.rng
        if self.has_forgotten and self.is_durable and self.chains:
            return self.broker
        return rng.choice(list(self.world.nodes)) if rng.random() < 0.4 or not self.broker else self.broker

    def return_(self) -> None:
        if self.connection is None:
            self.connect(self.choose())

    def lose(self, broker: str) -> None:
        if self.broker == broker and self.connection is not None:
            self.disconnect()

    def disconnect(self, *, again: bool = True) -> None:
        node, rng = self.world.nodes[self.broker], self.world.rng
        if node.is_up and self.key in node.clients:
            node.recovery.feeds.readers[self.key].is_here = False
            if not self.is_durable:
                self.world.after(rng.uniform(0.1, 5), self._leave, node, node.life)
        self.connection = None
        self.inbox.clear()
        if again:
            self.world.after(rng.uniform(0.3, 3), self.return_)

    def push(self, item: Given | Mapping[Origin, int]) -> None:
        self.latest = max(self.latest, self.world.now + self.world.rng.uniform(0.02, 0.3)) + 1e-6
        self.world.after(self.latest - self.world.now, self._hear, self.connection, item)

    def _hear(self, connection: int, item: Given | Mapping[Origin, int]) -> None:
        if connection is not None and connection == self.connection:
            self.inbox.append(item)
            self._work()

    def _work(self) -> None:
        if not self.is_busy and self.inbox:
            self.is_busy = True
            pause = max(self.paused - self.world.now, 0)
            self.world.after(pause + self.world.rng.uniform(0.01, self.world.think), self._take)

    def _take(self) -> None:
        self.is_busy = False
        if not self.inbox:
            return
        item = self.inbox.popleft()
        if isinstance(item, Given):
            self._taken(item)
        else:
            self.has_forgotten = False
            self.cursors |= {one: offset for one, offset in item.items() if offset >= self.cursors.get(one, 0)}
        self.ever |= self.cursors.keys()
        self._work()

    def _taken(self, item: Given) -> None:
        if item.number != self.number + 1:
            self.world.blame(f"number {item.number} after {self.number} at {self.name}")
        self.number, origin, chain = item.number, item.origin, self.chains[-1]
        if isinstance(item.what, Event):
            event = item.what
            chain.got.append((self.epoch, origin, event, (event.time or 0) <= self.again))
            self.cursors[origin] = (event.seq or 0) + 1
            self.recent[event.source, event.id] = origin
        else:
            chain.gaps.append((self.epoch, origin, item.what))
            self.cursors[origin] = item.what.end
        node, connection = self.world.nodes[self.broker], self.connection
        self.world.after(self.world.rng.uniform(0.02, 0.3), node.took, self.key, connection, self.number)

    def cut(self, cursors: Mapping[Origin, int], wanted: Range) -> None:
        """Note from where on the filter is another."""
        self.chains[-1].cuts.append(({**self.cursors, **cursors}, wanted))


class Publisher:
    """Publishes values of a range, and repeats what was not acknowledged, maybe at another broker."""

    def __init__(self, world: World, name: str, values: Range) -> None:
        self.world, self.name, self.values = world, name, values
        self.broker = ""
        self.is_ready = False
        self.published = 0
        self.open: dict[str, int] = {}

    def connect(self, broker: str) -> None:
        node, rng = self.world.nodes[broker], self.world.rng
        if self.is_ready:
            self._leave()
        self.is_ready = False
        if not node.is_up:
            self.world.after(rng.uniform(0.5, 2), lambda: self.connect(rng.choice(list(self.world.nodes))))
            return
        self.broker, self.is_ready = broker, True
        if self.world.advertises:
            node.advertise(self.name, self.values)
        for id, value in list(self.open.items()):
            node.publish(self, id, value)

    def _leave(self) -> None:
        node = self.world.nodes[self.broker]
        life = node.life
        if self.world.advertises:
            self.world.after(
                self.world.rng.uniform(0, 2),
                lambda: node.unadvertise(self.name) if node.is_up and node.life == life else None,
            )

    def lose(self, broker: str) -> None:
        if self.broker == broker and self.is_ready:
            self.is_ready = False
            rng = self.world.rng
            again = broker if rng.random() < 0.6 else rng.choice(list(self.world.nodes))
            self.world.after(rng.uniform(0.3, 3), self.connect, again)

    def publish(self) -> None:
        node = self.world.nodes.get(self.broker)
        if node is None or not self.is_ready or len(self.open) >= 6:
            return
        if self.world.advertises and self.name not in node.offers:
            return
        self.published += 1
        id, value = f"{self.name}-{self.published}", self.world.rng.randint(*self.values)
        self.open[id] = value
        node.publish(self, id, value)

    def acknowledged(self, id: str) -> None:
        self.open.pop(id, None)


class World:
    """`run` returns what went wrong."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.now = 0.0
        self.ids = count(1)
        self.blames: list[str] = []
        self.disks: dict[Origin, Disk] = {}
        self.accepted: dict[tuple[Origin, int], float] = {}
        self._heap: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self.strategy = rng.choice(STRATEGIES)
        self.advertises = rng.random() < 0.5
        self.delay, self.think = rng.choice([0.1, 0.5, 1.5]), rng.choice([0.05, 0.3, 1.5])
        self.retained, self.tail = rng.choice([0, 0, 0, 5, 12]), rng.choice([1, 3, 1000])
        self.faults = rng.choice([0, 3, 6, 10])
        self.kinds = rng.choice([MIXED, MIXED, MOVING, CLIENTS])
        size, all_durable = rng.randint(2, 5), rng.random() < 0.5
        self.nodes = {f"B{n}": Node(self, f"B{n}", all_durable or rng.random() < 0.6) for n in range(size)}
        self.links = [Link(self, f"B{rng.randrange(n)}", f"B{n}") for n in range(1, size)]
        self.late = rng.choice([f"B{n}" for n in range(1, size)]) if size > 2 and rng.random() < 0.3 else ""
        for name in self.nodes:
            self.after(rng.uniform(3, 12) if name == self.late else 0, self.restart, name)
        self.publishers: list[Publisher] = []
        self.readers: dict[str, Client] = {}
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
            client = Client(self, f"S{n}", (low, low + rng.randint(0, 5)), rng.random() < 0.4, start, last)
            self.readers[client.name] = client
            when = at + rng.uniform(0, 1) if together else rng.uniform(0.1, 15)
            self.after(when, client.connect, together or rng.choice(brokers))

    @property
    def clients(self) -> list[Client | Publisher]:
        return [*self.publishers, *self.readers.values()]

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
        while self._heap and self._heap[0][0] <= END:
            self.now, _, act, arguments = heapq.heappop(self._heap)
            act(*arguments)
        self._check()
        return self.blames

    def _calm(self) -> None:
        for name in self.nodes:
            self.restart(name)
        for link in self.links:
            link.stalled = dict.fromkeys(link.ends, 0.0)
            for delay in (0, 3, 8):
                self.after(delay, link.up)
        for client in self.readers.values():
            client.paused = 0

    # --- faults ---

    def _fault(self) -> None:
        rng = self.rng
        kind = rng.choice(self.kinds)
        link, node = rng.choice(self.links), rng.choice(list(self.nodes.values()))
        client, publisher = rng.choice(list(self.readers.values())), rng.choice(self.publishers)
        match kind:
            case "cut":
                link.cut(back=rng.uniform(1, 8))
            case "quick":
                link.cut(back=rng.uniform(0.01, 0.3))
            case "crash" | "damage" if node.is_up:
                node.crash(rng.randint(1, 3) if kind == "damage" else 0)
                self.after(rng.uniform(0.5, 6), self.restart, node.name)
            case "stall":
                for end in rng.choice([link.ends[:1], link.ends[1:], link.ends]):
                    link.stalled[end] = self.now + rng.uniform(1, 9)
            case "move":
                self._move(link)
            case "client" if client.connection is not None:
                client.disconnect(again=False)
                self.after(rng.uniform(0.1, 6), client.return_)
            case "pmove" if publisher.broker:
                publisher.connect(rng.choice(list(self.nodes)))
            case "pause":
                client.paused = self.now + rng.uniform(2, 10)
            case "forget" if client.is_durable and client.connection is not None and client.chains and not client.last:
                client.has_forgotten = True
                client.disconnect()
            case "change" if client.connection is not None and client.chains:
                low = rng.randint(0, 8)
                self._change(client, (low, low + rng.randint(0, 6)))
            case "unsub" if len(self.readers) > 1 and client.connection is not None:
                client.ended, home = True, self.nodes[client.broker]
                client.connection = None
                if home.is_up:
                    home.unsubscribe(client.key)
            case "readvertise" if self.advertises and publisher.is_ready and self.nodes[publisher.broker].is_up:
                self._advertise_again(publisher)
            case "drop" if self.retained and node.disk is not None and node.is_durable:
                node.disk.drop(self.retained)

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

    def _change(self, client: Client, wanted: Range) -> None:
        node, connection = self.nodes[client.broker], client.connection
        client.wanted = wanted

        def change() -> None:
            if node.is_up and client.connection == connection and client.key in node.clients:
                node.change(client.key, wanted)

        self.after(self.rng.uniform(0.05, 0.3), change)

    def _advertise_again(self, publisher: Publisher) -> None:
        node = self.nodes[publisher.broker]
        life = node.life
        node.unadvertise(publisher.name)

        def advertise() -> None:
            if publisher.is_ready and publisher.broker == node.name and node.is_up and node.life == life:
                node.advertise(publisher.name, publisher.values)

        self.after(self.rng.choice([0.0, 0.1, 1.0]), advertise)

    # --- what must hold ---

    def _check(self) -> None:
        for publisher in self.publishers:
            if publisher.open:
                self.blame(f"{publisher.name} waits for {list(publisher.open)}")
        for client in self.readers.values():
            for chain in client.chains:
                self._check_order(client, chain)
            if client.ended:
                continue
            if client.connection is None or any(isinstance(item, Given) for item in client.inbox):
                self.blame(f"{client.name} is not done")
            if client.chains:
                self._check_whole(client, client.chains[-1])
        for node in self.nodes.values():
            self.blames += [f"not live at {node.name}: {feed}" for feed in node.unfinished]

    def _check_order(self, client: Client, chain: Chain) -> None:
        """Blame what came twice, out of order, before the start, unwanted, or although a gap says that it is gone."""
        got: set[tuple[Origin, int]] = set()
        origins: dict[tuple[str, str], Origin] = {}
        latest: dict[tuple[int, Origin], int] = {}
        for epoch, origin, event, is_again in chain.got:
            offset, name = event.seq or 0, f"{client.name} {origin} {event.seq}"
            if (origin, offset) in got and not (client.is_durable and is_again):
                self.blame(f"twice {name}")
            got.add((origin, offset))
            is_repeat = origins.setdefault((event.source, event.id), origin) != origin
            if is_repeat and not is_again and epoch == chain.epoch:
                self.blame(f"repeat {name}")
            if offset <= latest.get((epoch, origin), -1) and not chain.last:
                self.blame(f"order {name}")
            latest[epoch, origin] = offset
            if not chain.last and self.accepted[origin, offset] < chain.since / 1e6 - 6:
                self.blame(f"too early {name}")
            filters = [wanted for _, wanted in chain.cuts]
            exact = client.is_durable or chain.last or holds(chain.filter_at(origin, offset), event)
            if not any(holds(wanted, event) for wanted in filters) or not exact:
                self.blame(f"unwanted {name}")
            if not chain.last and any(
                e == epoch and o == origin and gap.first <= offset < gap.end for e, o, gap in chain.gaps
            ):
                self.blame(f"false gap {name}")

    def _check_whole(self, client: Client, chain: Chain) -> None:
        """Blame what was acknowledged and wanted, and did neither come nor lie in a gap that was told."""
        got = {(origin, event.seq) for _, origin, event, _ in chain.got}
        ids = {(event.source, event.id) for _, _, event, _ in chain.got}
        for origin, disk in self.disks.items():
            is_over = self.nodes[origin.broker].disk is not disk
            gaps = [gap for _, one, gap in chain.gaps if one == origin]
            for entry in disk.ever:
                offset, event = entry.offset, entry.event
                due = (
                    entry.time >= chain.since if chain.start is not None else self.accepted[origin, offset] >= chain.now
                )
                filters = (
                    [wanted for _, wanted in chain.cuts] if client.is_durable else [chain.filter_at(origin, offset)]
                )
                if offset not in disk.acknowledged or not due or not all(holds(one, event) for one in filters):
                    continue
                if (
                    (origin, offset) in got
                    or (event.source, event.id) in ids
                    or (is_over and origin not in client.ever)
                ):
                    continue
                if not any(gap.first <= offset < gap.end for gap in gaps):
                    self.blame(f"lost {client.name} {origin} {offset} accepted at {self.accepted[origin, offset]:.2f}")
