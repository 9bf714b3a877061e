"""Strategies of checking in the client that runs everywhere else, in simulated time, at a broker that sheds load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean
from typing import NamedTuple

from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.effects import Effect, Send
from vestnik.broker.stored import StoredEvent
from vestnik.lab.checking import TABLE_1, Step, walk
from vestnik.lab.losses import RARE, STEADY, Weather
from vestnik.lab.overlay import Routing
from vestnik.lab.parallel import Bench, done
from vestnik.lab.results import Row
from vestnik.lab.statistics import estimate, p_value
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.times import FOREVER
from vestnik.session.checking import Checking
from vestnik.session.session import Session
from vestnik.sim.links import Constant, Link
from vestnik.sim.network import Network
from vestnik.sim.topologies import line
from vestnik.trace.records import AnyRecord, Notified, Sent
from vestnik.wire.messages import Message, NodeId, Notify

BROKER = "b0"
AT_ONCE = Constant(0.0)
WINDOW = 100_000
"""Notifications in flight: more than the broker sheds between two questions."""


class Shedding:
    """A broker that does not send all notifications; `sheds()` decides about each."""

    def __init__(self, core: BrokerCore, sheds: Callable[[], bool]) -> None:
        self._core = core
        self._sheds = sheds
        self.shed: set[str] = set()  # the ids of events

    def handle(self, message: Message, sender: NodeId, now: float) -> list[Effect]:
        return [effect for effect in self._core.handle(message, sender, now) if not self._is_shed(effect)]

    def _is_shed(self, effect: Effect) -> bool:
        if not (isinstance(effect, Send) and isinstance(effect.message, Notify) and self._sheds()):
            return False
        self.shed.update(event.id for delivery in effect.message.deliveries for event in delivery.events)
        return True


class Observed(NamedTuple):
    """What a client did: its checks, and how often it asked for what a gap showed.

    `losses` is when notifications were lost; how many of them arrived after all, and how long they waited together.
    """

    checks: list[Step]
    gaps: int
    losses: list[float]
    recovered: int
    waited: float


def observe(strategy: Checking, published: Sequence[float], seconds: float, rng: Random, shed: float = 1.0) -> Observed:
    """A client checks for so many seconds, while events are published at these times. The broker sheds a share."""
    brokers: list[Shedding] = []
    asked: list[float] = []
    handed: list[tuple[float, str]] = []

    def record(happened: AnyRecord) -> None:
        match happened:
            case Sent(at=at, kind="Ask"):
                asked.append(at)
            case Notified(at=at, event=event):
                handed.append((at, event.id))

    def broker(name: NodeId, stored: Sequence[StoredEvent], log: OwnLog) -> Shedding:
        core = BrokerCore(name, Routing("simple").router(None), FOREVER, stored, log)
        brokers.append(Shedding(core, lambda: rng.random() < shed))
        return brokers[-1]

    at_once = Link(delay=AT_ONCE)
    network = Network(
        line(1),
        broker,
        lambda name: Session(name, rng.uniform),
        access=at_once,
        disk=AT_ONCE,
        record=record,
        all_sent=True,
    )
    for client in ("producer", "consumer"):
        network.attach(client, BROKER)
    network.subscribe("consumer", "all", Filter.all(), window=WINDOW, checking=strategy)
    for number, at in enumerate(published):
        network.run(at)
        network.publish("producer", Event("change", {}, source="producer", id=str(number)))
    network.run(seconds)
    return _observed(brokers[0].shed, asked, handed, published)


def _observed(
    shed: set[str], asked: list[float], handed: list[tuple[float, str]], published: Sequence[float]
) -> Observed:
    """A question at the moment of a notification that was sent is about a gap; any other is a check."""
    pushes = {at for at, event in handed if event not in shed}
    waits: defaultdict[float, list[float]] = defaultdict(list)
    for at, event in handed:
        if event in shed:
            waits[at].append(at - published[int(event)])
    checks = [at for at in asked if at not in pushes]
    return Observed(
        [Step(at - last, len(waits[at]), sum(waits[at])) for last, at in zip([0.0, *checks], checks, strict=False)],
        len(asked) - len(checks),
        sorted(published[int(event)] for event in shed),
        sum(map(len, waits.values())),
        sum(map(sum, waits.values())),
    )


# --- beside the model ---


class Situation(NamedTuple):
    """Losses as in this weather, and the share of notifications that is lost."""

    name: str
    weather: Weather
    shed: float
    seconds: float


SITUATIONS = (
    Situation("all lost", STEADY, 1.0, 4000.0),
    Situation("all lost, rare storms", RARE, 1.0, 16_000.0),
    Situation("half lost", STEADY, 0.5, 4000.0),
)
COMPARED = ("checks", "found", "wait")


def measure_clients(runs: int, bench: Bench) -> list[Row]:
    """The client under each strategy of table 1, and the model with the same losses beside it."""
    return done(_beside, [(where, name, runs) for where in SITUATIONS for name in TABLE_1], bench)


def _beside(task: tuple[Situation, str, int]) -> Row:
    """Means over runs. `p` is how likely the model is as far from the client as it is, by Student's test."""
    where, name, runs = task
    pairs = [_pair(where, TABLE_1[name], Random(f"{where.name} {name} {seed}")) for seed in range(runs)]
    row: Row = {
        "situation": where.name,
        "strategy": name,
        "runs": runs,
        "seconds": where.seconds,
        "gaps": fmean(client[-1] for client, _ in pairs),
    }
    for place, column in enumerate(COMPARED):
        apart = estimate([client[place] - model[place] for client, model in pairs])
        row |= {
            column: fmean(client[place] for client, _ in pairs),
            f"model_{column}": fmean(model[place] for _, model in pairs),
            f"{column}_p": p_value(apart, 0.0),
        }
    return row


def _pair(where: Situation, strategy: Checking, rng: Random) -> tuple[list[float], list[float]]:
    """How many checks there were, how many losses were found and how long these waited: the client, and the model."""
    drawn = where.weather.losses(where.seconds / where.shed, rng)
    seen = observe(strategy, [at * where.shed for at in drawn], where.seconds, rng, where.shed)
    checks = list(walk(strategy, seen.losses, where.seconds, rng))
    found, waited = sum(check.lost for check in checks), sum(check.waited for check in checks)
    client = [len(seen.checks), seen.recovered, seen.waited / max(1, seen.recovered), seen.gaps]
    return client, [len(checks), found, waited / max(1, found)]
