"""All strategies on the same subscriptions and publications: what each sends, keeps, and sends in vain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from vestnik.lab.figures import COLOURS, WIDTHS, figure, log_log
from vestnik.lab.overlay import Overlay, Routing
from vestnik.lab.parallel import each
from vestnik.lab.results import Advance, Claim, Figure, Result, Row
from vestnik.lab.statistics import number
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.routing.registry import known_strategies
from vestnik.sim.topologies import Topology, paper, random_tree
from vestnik.sim.workloads import RandomFilters, Stock, Workload
from vestnik.wire.messages import (
    AdminA,
    AdminS,
    Advertise,
    Forward,
    NodeId,
    Notify,
    Publish,
    Subscribe,
    Unsubscribe,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORKLOADS: dict[str, Workload] = {"stock": Stock(stocks=100, intervals=True), "random": RandomFilters()}
EACH = 10
SEED = 1


class Size(NamedTuple):
    """How much there is of everything. Consumers have ten subscriptions each; all clients are at uniform brokers."""

    brokers: int | None  # None for those of the paper
    consumers: int
    producers: int
    publications: int
    changes: int

    def topology(self) -> Topology:
        return paper() if self.brokers is None else random_tree(self.brokers, SEED)


REDUCED = Size(30, 15, 3, 200, 20)
FULL = Size(None, 100, 5, 2000, 100)


class Compared(Struct, frozen=True, kw_only=True):
    """One strategy on one workload. `useless` are events sent to a broker on whose side nobody wants them.

    `break_even` is how many subscriptions must change for each publication so that flooding is as cheap; None where
    it is for any number or for none.
    """

    workload: str
    strategy: str
    advertisements: bool
    subscription_messages: int
    advertisement_messages: int
    events_sent: int
    notifications: int
    entries: int
    local_entries: int
    advertisement_entries: int
    useless: int
    useless_per_link: float
    messages_per_publication: float
    messages_per_change: float
    break_even: float | None = None


class Task(NamedTuple):
    workload: str
    routing: Routing
    size: Size


def run(full: bool, jobs: int, advance: Advance) -> Result:
    return study(FULL if full else REDUCED, list(WORKLOADS), jobs, advance)


def study(size: Size, workloads: list[str], jobs: int, advance: Advance) -> Result:
    tasks = [
        Task(workload, Routing(strategy, ads), size)
        for workload in workloads
        for strategy in known_strategies()
        for ads in (False, True)
    ]
    rows = list(_with_break_even(each(measure, tasks, jobs, advance)))
    return Result(
        name="compare",
        title="All strategies on the same subscriptions and publications",
        settings=size._asdict(),
        tables={"compare": [asdict(row) for row in rows]},
        claims=[claim for workload in workloads for claim in _claims([r for r in rows if r.workload == workload])],
        figures=[Figure("compare", "Messages for each publication, by how many subscriptions change for each")],
    )


def measure(task: Task) -> Compared:
    """Subscribe, publish, and then let some consumers come and leave."""
    name, routing, size = task
    workload, rng = WORKLOADS[name], Random(f"{SEED} {name}")
    overlay = Overlay(size.topology(), routing)
    nodes = overlay.topology.access
    producers = [(f"p{place}", rng.choice(nodes)) for place in range(size.producers)]
    for client, broker in producers:
        overlay.hand(broker, Advertise("offer", workload.offer()), client)
    wanted: list[tuple[NodeId, Filter]] = []
    for consumer in range(size.consumers):
        place = rng.randrange(len(nodes))
        for order, one in enumerate(islice(workload.interests(rng, place / len(nodes)), EACH)):
            overlay.hand(nodes[place], Subscribe(str(order), one), f"c{consumer}")
            wanted.append((nodes[place], one))
    entries, told, offered = overlay.entries(), overlay.sent[AdminS], overlay.sent[AdminA]
    useful = 0
    for publication in range(size.publications):
        client, broker = rng.choice(producers)
        event = workload.event(rng, client, str(publication))
        overlay.hand(broker, Publish((event,)), client)
        useful += _links_that_must_be_used(overlay.topology, broker, event, wanted)
    events_sent = sum(overlay.forwarded.values())
    changes = _change(overlay, workload, rng, size.changes)
    return Compared(
        workload=name,
        strategy=routing.strategy,
        advertisements=routing.advertisements,
        subscription_messages=told,
        advertisement_messages=offered,
        events_sent=events_sent,
        notifications=overlay.notified[Notify],
        entries=entries.remote,
        local_entries=entries.local,
        advertisement_entries=entries.advertised,
        useless=events_sent - useful,
        useless_per_link=(events_sent - useful) / len(overlay.topology.edges),
        messages_per_publication=overlay.sent[Forward] / size.publications,
        messages_per_change=changes,
    )


def _links_that_must_be_used(
    topology: Topology, publisher: NodeId, event: Event, wanted: list[tuple[NodeId, Filter]]
) -> int:
    """How many links are on the ways from the publisher to those who want an event."""
    start = _to_root(topology, publisher)
    ways = [_to_root(topology, broker) for broker in {broker for broker, one in wanted if one.matches(event)}]
    return len(set().union(*(way ^ start for way in ways)))


@lru_cache(maxsize=4096)
def _to_root(topology: Topology, node: NodeId) -> frozenset[NodeId]:
    """The links from a node to the root, each by its lower end. Those of one of two nodes alone are between the two."""
    parent = topology.parents[node]
    return frozenset() if parent is None else _to_root(topology, parent) | {node}


def _change(overlay: Overlay, workload: Workload, rng: Random, changes: int) -> float:
    """Messages for a subscription or its end, in the mean over new consumers that subscribe once and leave."""
    before = overlay.sent[AdminS]
    nodes = overlay.topology.access
    for _ in range(changes):
        place = rng.randrange(len(nodes))
        overlay.hand(nodes[place], Subscribe("once", next(workload.interests(rng, place / len(nodes)))), "visitor")
        overlay.hand(nodes[place], Unsubscribe("once"), "visitor")
    return (overlay.sent[AdminS] - before) / (2 * changes)


def _with_break_even(rows: list[Compared]) -> Iterator[Compared]:
    flooding = {
        (row.workload, row.advertisements): row.messages_per_publication for row in rows if row.strategy == "flooding"
    }
    for row in rows:
        saved = flooding[row.workload, row.advertisements] - row.messages_per_publication
        yield replace(row, break_even=saved / row.messages_per_change if row.messages_per_change else None)


def _claims(rows: list[Compared]) -> Iterator[Claim]:
    """On one workload: that all deliver the same, what is sent in vain, and where flooding has its place."""
    name = rows[0].workload
    delivered = {row.notifications for row in rows}
    yield Claim(
        claim=f"{name}: every strategy delivers the same",
        measured=f"{', '.join(map(number, sorted(delivered)))} notifications under {len(rows)} ways of routing",
        verdict="holds" if len(delivered) == 1 else "does not hold",
    )
    exact = [row for row in rows if row.strategy in ("simple", "identity", "covering", "merging")]
    wasteful = max(rows, key=lambda row: row.useless)
    yield Claim(
        claim=f"{name}: filters keep events from where nobody wants them",
        measured=f"{', '.join(sorted({number(row.useless) for row in exact}))} useless deliveries with filters and "
        f"perfect merging, {number(wasteful.useless)} of {number(wasteful.events_sent)} with {wasteful.strategy}",
        exact="0 with filters",
        verdict="holds" if not any(row.useless for row in exact) else "does not hold",
    )
    known = [row for row in rows if row.break_even is not None]
    last = max(known, key=lambda row: row.break_even or 0.0)
    covering = next(row for row in known if (row.strategy, row.advertisements) == ("covering", False))
    yield Claim(
        claim=f"{name}: flooding has its place where subscriptions change often",
        measured=f"flooding is cheaper than covering from {number(covering.break_even or 0.0)} changes a publication "
        f"on, and cheapest of all from {number(last.break_even or 0.0)} on, beyond {_called(last)}",
        verdict="holds" if (last.break_even or 0.0) > 0 else "does not hold",
        reason="every link carries every event under flooding, and nothing when a subscription changes",
    )


def _called(row: Compared) -> str:
    return f"{row.strategy} with advertisements" if row.advertisements else row.strategy


def draw(result: Result, folder: Path) -> None:
    """Messages for each publication against the rate of change, without the hierarchical variants."""
    rows = [row for row in result.tables["compare"] if row["strategy"] in COLOURS]
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    with figure(folder / "compare.png", panels=len(workloads)) as panels:
        for panel, workload in zip(panels, workloads, strict=True):
            for row in rows:
                if row["workload"] == workload:
                    _line(panel, row)
            log_log(panel, workload, "subscription changes for each publication", "messages for each publication")


RATES = [10 ** (step / 10) for step in range(-20, 21)]


def _line(panel: Axes, row: Row) -> None:
    costs = [row["messages_per_publication"] + rate * row["messages_per_change"] for rate in RATES]
    label = f"{row['strategy']}{', advertisements' if row['advertisements'] else ''}"
    style, colour, width = "--" if row["advertisements"] else "-", COLOURS[row["strategy"]], WIDTHS[row["strategy"]]
    panel.plot(RATES, costs, style, color=colour, linewidth=width, label=label)
