"""The same interests served by channels, by subjects and by content: what reaches clients that do not want it.

Every stock is of a class. Consumers want stocks at some prices; they subscribe to the channels of the classes, to the
stocks as subjects, or to just that, and throw away what they do not want.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from random import Random
from typing import NamedTuple

from vestnik.lab.exact import EACH
from vestnik.lab.overlay import Overlay, Routing
from vestnik.lab.results import Claim, verdict
from vestnik.lab.routing import STOCKS
from vestnik.lab.statistics import Estimate, estimate
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.report.numbers import number
from vestnik.sim.topologies import Topology, paper
from vestnik.wire.messages import AdminS, Advertise, NodeId, Notify, Publish, Subscribe

CLASSES = 20
PUBLICATIONS = 500
SELECTIONS = ("channel", "subject", "content")


class Interest(NamedTuple):
    """One consumer at its broker wants a stock at prices between two bounds."""

    client: NodeId
    broker: NodeId
    stock: int
    low: float
    high: float

    def filter(self, selection: str) -> Filter:
        match selection:
            case "channel":
                return Filter.parse(f"class = 'k{self.stock % CLASSES}'")
            case "subject":
                return Filter.parse(f"stock = 's{self.stock}'")
        return Filter.parse(f"stock = 's{self.stock}' AND price BETWEEN {self.low!r} AND {self.high!r}")


class Task(NamedTuple):
    selection: str
    strategy: str
    subscriptions: int
    seed: int


class Selected(NamedTuple):
    """What was measured. `events_sent` and `admin_messages` are between brokers, `deliveries` to clients."""

    selection: str
    strategy: str
    subscriptions: int
    seed: int
    deliveries: int
    unwanted: int
    events_sent: int
    entries: int
    admin_messages: int
    exact_deliveries: float
    exact_unwanted: float


def select(task: Task, topology: Topology | None = None) -> Selected:
    """One producer at the root advertises everything, all subscribe, and it publishes."""
    overlay = Overlay(topology or paper(), Routing(task.strategy, advertisements=True))
    overlay.link()
    overlay.hand(overlay.topology.root, Advertise("all", Filter.all()), "p")
    rng = Random(f"{task.seed} selection")
    interests = list(_interests(overlay.topology, task.subscriptions // EACH, rng))
    subscriptions = dict.fromkeys((one.client, one.broker, one.filter(task.selection)) for one in interests)
    for client, broker, wanted in subscriptions:
        overlay.hand(broker, Subscribe(str(wanted), wanted), client)
    wanted_deliveries = 0
    for publication in range(PUBLICATIONS):
        stock, price = rng.randrange(STOCKS), 100 * rng.random()
        data = {"class": f"k{stock % CLASSES}", "stock": f"s{stock}", "price": price}
        overlay.hand(overlay.topology.root, Publish((Event("quote", data, source="p", id=str(publication)),)), "p")
        wanted_deliveries += sum(one.stock == stock and one.low <= price <= one.high for one in interests)
    exact = PUBLICATIONS * task.subscriptions / EACH
    return Selected(
        *task,
        deliveries=overlay.notified[Notify],
        unwanted=overlay.notified[Notify] - wanted_deliveries,
        events_sent=sum(overlay.forwarded.values()),
        entries=overlay.entries().remote,
        admin_messages=overlay.sent[AdminS],
        exact_deliveries=exact * reached(task.selection),
        exact_unwanted=exact * (reached(task.selection) - reached("content")),
    )


def reached(selection: str) -> float:
    """The probability that an event is delivered to a consumer. In the mean an interval holds half of all prices."""
    match selection:
        case "channel":
            return 1 - comb(STOCKS - STOCKS // CLASSES, EACH) / comb(STOCKS, EACH)
        case "subject":
            return EACH / STOCKS
    return EACH / STOCKS / 2


def _interests(topology: Topology, consumers: int, rng: Random) -> Iterator[Interest]:
    """Consumers at uniform local brokers want distinct stocks, each around the price 50."""
    for consumer in range(consumers):
        broker = rng.choice(topology.access)
        for stock in rng.sample(range(STOCKS), EACH):
            yield Interest(f"c{consumer}", broker, stock, 50 - 50 * rng.random(), 50 + 50 * rng.random())


def judge(found: list[Selected]) -> Claim:
    """By what was measured under covering."""
    rows = {kind: [one for one in found if (one.selection, one.strategy) == (kind, "covering")] for kind in SELECTIONS}

    def mean_of(kind: str, column: str) -> Estimate:
        return estimate([getattr(one, column) for one in rows[kind]])

    def said(column: str) -> str:
        return ", ".join(f"{mean_of(kind, column)} by {kind}" for kind in SELECTIONS)

    def falls(column: str) -> bool:
        channel, subject, content = (mean_of(kind, column).mean for kind in SELECTIONS)
        return channel > subject > content

    facts = [falls("unwanted"), falls("events_sent"), falls("entries")]
    exact = ", ".join(f"{number(rows[kind][0].exact_unwanted)} by {kind}" for kind in SELECTIONS)
    return Claim(
        claim="selection by content is more efficient than selection by channel or by subject",
        measured=f"{PUBLICATIONS} events under covering with advertisements and {rows['content'][0].subscriptions:,} "
        f"interests: unwanted deliveries to clients {said('unwanted')}; events between brokers {said('events_sent')}; "
        f"remote entries {said('entries')}",
        exact=f"unwanted deliveries {exact}",
        verdict=verdict(*facts),
        reason="what saves deliveries and traffic is kept in tables: the more filters tell apart, the more there are",
    )
