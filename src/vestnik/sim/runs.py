"""A scenario from its beginning to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.times import FOREVER, MICROS
from vestnik.routing.timing import bound
from vestnik.sim.faults import Away, BadDisk, Corrupt, Crash, CrashClient, CutLink, Fault, Move, Pause, Stall, corrupt
from vestnik.sim.network import Network
from vestnik.sim.parts import cores_of, lease_of, random_of, sessions_of
from vestnik.sim.scenarios import Past, Scenario, timing_of
from vestnik.sim.summaries import Summary, Tally
from vestnik.trace.records import AnyRecord
from vestnik.wire.messages import NodeId

STEPS = 100
DISK = 0.01
"""Seconds for what is not on the way: storing."""
PATIENCE = 10.0
"""Seconds in which a client that misses something has asked for it twice."""
MORE_PATIENCE = 100.0
"""Where what it asks and what it is answered may be lost."""


def run_scenario(scenario: Scenario, record: Callable[[AnyRecord], None], *, all_sent: bool = False) -> Summary:
    """Simulate; what happens goes to `record`, and what it comes to is returned."""
    run = Run(scenario, record, all_sent=all_sent)
    for _ in run.steps():
        pass
    return run.summary()


class Run:
    """A scenario that is being simulated, phase by phase."""

    def __init__(self, scenario: Scenario, record: Callable[[AnyRecord], None], *, all_sent: bool = False) -> None:
        self.scenario = scenario
        self._tally = Tally(record)
        topology = scenario.network()
        self.network = Network(
            topology,
            cores_of(scenario, topology),
            sessions_of(scenario),
            seed=scenario.seed,
            link=scenario.links,
            access=scenario.access,
            record=self._tally.take,
            all_sent=all_sent,
        )
        self._interests: dict[NodeId, Iterator[Filter]] = {}
        self._last: dict[NodeId, Event] = {}  # that each producer published
        self._events = 0  # published by producers
        self._lease = lease_of(scenario)
        self._end = 0.0

    def steps(self) -> Iterator[float]:
        """Simulate all, step by step; after each, which share is done."""
        self.begin()
        yield from self.traffic()
        self.end()

    def summary(self) -> Summary:
        return self._tally.summary(self.network)

    # --- phases ---

    def begin(self) -> None:
        """Let the clients come and say what they want, and wait until that has settled."""
        clients, network = self.scenario.clients, self.network
        places = self._random("places")
        access = network.topology.access
        for number in range(clients.consumers):
            self._consumer(f"c{number}", places)
        for number in range(clients.producers):
            network.attach(f"p{number}", places.choice(access))
            self._come(f"p{number}")
        self._settle(self.propagation)

    def traffic(self) -> Iterator[float]:
        """Let the producers publish, interests change and faults happen, step by step; which share is done."""
        clients, network = self.scenario.clients, self.network
        start = network.now
        self._end = start + self.scenario.duration
        for number in range(clients.producers):
            self._poisson(clients.rate, self._random(f"traffic of p{number}"), self._publisher(f"p{number}"))
        if clients.consumers and clients.subscriptions:
            churn = self._random("churn")
            self._poisson(clients.churn, churn, lambda: self._change(churn))
        chance = self._random("faults")
        for fault in self.scenario.faults:
            network.kernel.at(start + fault.at, self._begin_fault, (fault, chance))
            network.kernel.at(start + fault.at + fault.lasting, self._end_fault, fault)
        for step in range(1, STEPS + 1):
            network.run(start + self.scenario.duration * step / STEPS)
            yield step / STEPS

    def end(self) -> None:
        """Wait until all has settled, let newcomers come, and the producers publish for the last time."""
        clients = self.scenario.clients
        self._settle(self.stabilization)
        places = self._random("places of newcomers")
        for number in range(clients.newcomers):
            self._consumer(f"n{number}", places, clients.replay or Past(all=True))
        if clients.probes:
            for number in range(clients.producers):
                publish = self._publisher(f"p{number}")
                for _ in range(clients.probes):
                    publish()
        if clients.probes or clients.newcomers:
            self._settle(self.propagation)

    # --- time ---

    @property
    def propagation(self) -> float:
        """How long it takes until all brokers know of something, and an answer is back."""
        links, access = self.scenario.links.delay, self.scenario.access.delay
        return 2 * (self.network.topology.diameter * links.most + access.most) + DISK

    @property
    def stabilization(self) -> float:
        """How long it takes until all is as it should be, whatever it was, and what was asked then is answered."""
        leases, routing = self.scenario.leases, self.scenario.routing
        if leases is None:
            return 2 * self.propagation
        timing = timing_of(leases, self.scenario, self.network.topology)
        return bound(routing.strategy, timing, advertisements=routing.advertisements) + self.propagation

    @property
    def right_since(self) -> float:
        """When the network has stabilized after it was corrupted for the last time; the beginning, where it was not."""
        times = [fault.at for fault in self.scenario.faults if isinstance(fault, Corrupt)]
        return self._end - self.scenario.duration + max(times) + self.stabilization if times else 0.0

    def _settle(self, enough: float) -> None:
        """Wait until all has settled. With renewals something is always on its way: then wait for long enough.

        A subscription that reads all of the logs takes a round trip for each window.
        """
        enough += MORE_PATIENCE if self.scenario.access.loss else PATIENCE
        windows = self._events // self.scenario.clients.window
        enough += windows * self.propagation if windows else 0.0
        if self.scenario.leases is None:
            self.network.settle(0.0 if enough == FOREVER else enough)
        else:
            self.network.settle(enough, enough)

    def _poisson(self, rate: float, rng: Random, act: Callable[[], None]) -> None:
        """Act at the times of a Poisson process, until the traffic ends."""

        def again(first: bool) -> None:
            if not first:
                act()
            time = self.network.now + rng.expovariate(rate)
            if time <= self._end:
                self.network.kernel.at(time, again, False)

        if rate > 0:
            again(True)

    # --- clients ---

    def _consumer(self, client: NodeId, places: Random, replay: Past | None = None) -> None:
        """A new consumer comes somewhere and says what it wants."""
        access = self.network.topology.access
        position = places.randrange(len(access))
        self._interests[client] = self.scenario.workload.interests(self._random(client), position / len(access))
        self.network.attach(client, access[position])
        self._come(client, replay)

    def _come(self, client: NodeId, replay: Past | None = None) -> None:
        """A client that knows nothing yet says what it wants or offers."""
        if client in self._interests:
            for number in range(self.scenario.clients.subscriptions):
                self._subscribe(client, f"s{number}", replay)
        elif self.scenario.routing.advertisements:
            self.network.advertise(client, "all", self.scenario.workload.offer(), lease=self._lease)

    def _subscribe(self, client: NodeId, name: str, past: Past | None = None) -> None:
        clients, wanted = self.scenario.clients, next(self._interests[client])
        past = past or clients.replay
        replay = None if past is None else past.replay()
        terms: dict[str, Any] = {"lease": self._lease, "window": clients.window, "checking": clients.checking}
        self.network.subscribe(client, name, wanted, **terms, replay=replay)

    def _change(self, rng: Random) -> None:
        """One consumer gives up a subscription and takes another of the same name, or changes it in place."""
        client = rng.choice(list(self._interests))
        name = f"s{rng.randrange(self.scenario.clients.subscriptions)}"
        if client in self.network.clients:
            if rng.random() < 0.5:
                self.network.unsubscribe(client, name)
            self._subscribe(client, name)

    def _publisher(self, client: NodeId) -> Callable[[], None]:
        rng = self._random(f"events of {client}")

        def publish() -> None:
            if client in self.network.clients:
                self.network.publish(client, *[event() for _ in range(self.scenario.clients.batch)])

        def event() -> Event:
            self._events += 1
            found = self.scenario.workload.event(rng, client, str(self._events))
            if rng.random() < self.scenario.clients.special:
                found = self._special(found, rng)
            if found.not_before is None:
                self._last[client] = found
            return found

        return publish

    def _special(self, event: Event, rng: Random) -> Event:
        """An event that is urgent, has to wait, expires soon, or names a cause.

        Where notifications are lost and asked for again, there is no order between those of different subscriptions.
        """
        soon = int((self.network.now + rng.expovariate(1)) * MICROS)
        cause = self._last.get(event.source)
        choices: list[dict[str, Any]] = [{"priority": 9}, {"not_before": soon}, {"expires": soon}]
        if cause is not None and not self.scenario.access.loss:
            choices.append({"priority": 9, "causes": [(cause.source, cause.id)]})
        return event.replace(**rng.choice(choices))

    def _random(self, purpose: str) -> Random:
        return random_of(self.scenario, purpose)

    # --- faults ---

    def _begin_fault(self, arguments: tuple[Fault, Random]) -> None:
        network = self.network
        match arguments:
            case CutLink(between=(one, other)), _:
                network.cut(one, other)
            case Crash(broker=broker), _:
                network.crash(broker)
            case Away(client=client), _ if client in network.clients:
                network.detach(client)
            case Move(client=client), _ if client in network.clients:
                network.detach(client)
            case CrashClient(client=client), _ if client in network.clients:
                network.crash_client(client)
            case Pause(client=client), _ if client in network.clients:
                network.pause(client)
            case Stall(client=client), _ if client in network.clients:
                network.fill(client)
            case BadDisk(broker=broker), _:
                network.spoil(broker, fails=True)
            case Corrupt(broker=broker), rng:
                corrupt(network, broker, self.scenario.workload.interests(rng, rng.random()), rng)

    def _end_fault(self, fault: Fault) -> None:
        network = self.network
        match fault:
            case CutLink(between=(one, other)):
                network.restore(one, other)
            case Crash(broker=broker):
                network.restart(broker)
            case Away(client=client) if client in network.clients:
                network.attach(client, network.homes[client])
            case Move(client=client, to=broker) if client in network.clients:
                network.move(client, broker)
            case Pause(client=client) if client in network.clients:
                network.unpause(client)
            case Stall(client=client) if client in network.clients:
                network.drain(client)
            case BadDisk(broker=broker):
                network.spoil(broker, fails=False)
            case CrashClient(client=client) if client not in network.clients:
                network.attach(client, network.homes[client])
                self._come(client)
