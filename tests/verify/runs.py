"""Traces of all kinds, right and wrong: by hand, by planted mistakes, by simulations with faults, and by chance."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from msgspec import structs

from verify.catching_up import MISTAKES, small_pages
from verify.planted import BUGS
from verify.test_kept import rough
from verify.test_traces import MORTAL, RIGHT, SPOILED, WANTED, event, handed
from vestnik.sim.runs import Run
from vestnik.sim.scenarios import Scenario
from vestnik.sim.soak import random_scenario
from vestnik.trace.files import Begin, End, to_line
from vestnik.trace.records import (
    AnyRecord,
    Attached,
    Crashed,
    Dropped,
    Lost,
    Notified,
    Published,
    Sent,
    Settled,
    Subscribed,
)
from vestnik.verify.network import MakeRouter, Network
from vestnik.verify.scripts import random_script
from vestnik.wire.replays import Replay

SIMULATED = (0, 9, 12, 26, 28, 34)
"""Seeds of scenarios with faults, replays, advertisements, causes and events that expire, and of such that flood."""
LONGEST = 1_200
"""Records of a simulation, of which the rest is left out."""


BEFORE: list[AnyRecord] = [
    Attached(0.0, "c", "b"),
    Subscribed(0.0, "c", "s", WANTED),
    Published(0.5, "p", event(9)),
    handed(0.5, event(9), 1),
    Settled(1.0),
]
ACROSS: dict[str, list[AnyRecord]] = {
    "who published before is a client, and no broker that crashes": [
        *BEFORE,
        Published(2.0, "q", event(1, source="q")),
        Crashed(2.5, "p"),
        Settled(3.0),
    ],
    "who was sent something before is seen to be sent in time": [
        Sent(0.5, "b", "c", "Notify", (("p", "e9"),)),
        *BEFORE,
        Published(2.0, "p", MORTAL),
        Settled(3.5),
        handed(4.0, MORTAL, 2),
    ],
    "what was dropped is a reason for losses": [
        *BEFORE,
        Dropped(1.5, "b", event(8), "shed"),
        Dropped(1.5, "d", event(8), "shed"),
        Lost(2.0, "c", "s", 2, 2),
    ],
    "what was published before a replay is missing in it": [
        *BEFORE,
        Subscribed(2.0, "c", "t", WANTED, Replay(all=True)),
        Settled(3.0),
    ],
}
"""Traces in which a rule asks for records of other events and clients."""


def traces() -> Iterator[tuple[str, list[AnyRecord]]]:
    """By name; the same ones each time."""
    yield "right", RIGHT
    yield from ((f"by hand: {name}", spoiled.records) for name, spoiled in SPOILED.items())
    yield from ACROSS.items()
    for name, bug in BUGS.items():
        yield f"planted: {name}", played(bug.make, 0)
    for seed in SIMULATED:
        found = simulated(random_scenario(seed), all_sent=seed % 4 == 0)[:LONGEST]
        yield f"scenario {seed}", found
        yield f"scenario {seed}, spoiled", spoiled_at_random(found, Random(seed))
    for name, (plant, _) in MISTAKES.items():
        with pytest.MonkeyPatch.context() as patch:
            small_pages(patch)
            plant(patch)
            yield f"planted: {name}", simulated(rough())


def played(make: MakeRouter, seed: int) -> list[AnyRecord]:
    """What happens in a network of such routers, until one fails."""
    script = random_script(Random(seed))
    network = Network(script.parents, make)
    try:
        for step in script.steps:
            step(network)
    except Exception:  # a planted one
        return network.records
    return network.records


def simulated(scenario: Scenario, *, all_sent: bool = False) -> list[AnyRecord]:
    found: list[AnyRecord] = []
    for _ in Run(scenario, found.append, all_sent=all_sent).steps():
        pass
    return found


def spoiled_at_random(records: list[AnyRecord], rng: Random) -> list[AnyRecord]:
    """Some records are gone, some come twice or late, some are of another event or client, some at another time."""
    found: list[AnyRecord] = []
    late: list[AnyRecord] = []
    events = [record.event for record in records if isinstance(record, Published)]
    clients = sorted({record.client for record in records if isinstance(record, Notified)})
    for record in records:
        match rng.randrange(120):
            case 0:
                continue
            case 1:
                found += [record, record]
            case 2:
                late.append(record)
            case 3 if isinstance(record, Notified | Published):
                found.append(structs.replace(record, event=rng.choice(events)))
            case 4 if isinstance(record, Notified):
                found.append(structs.replace(record, client=rng.choice(clients)))
            case 5:
                found.append(structs.replace(record, at=max(0.0, record.at + rng.uniform(-2, 2))))
            case 6 if isinstance(record, Published):
                causes = tuple((cause.source, cause.id) for cause in rng.sample(events, min(2, len(events))))
                found.append(structs.replace(record, event=record.event.replace(causes=causes)))
            case 7 if isinstance(record, Published):
                expires = int((record.at + rng.random()) * 1_000_000)
                found.append(structs.replace(record, event=record.event.replace(expires=expires)))
            case _:
                found.append(record)
        if late and rng.random() < 0.2:
            found.append(late.pop())
    return found


def in_files(records: list[AnyRecord], rng: Random) -> list[list[bytes]]:
    """The lines of the traces of three brokers, each in two lives, of which some are cut off."""
    files = []
    for number in range(3):
        own = [record for place, record in enumerate(records) if place % 3 == number]
        half = len(own) // 2
        lines: list[bytes] = []
        for life in (own[:half], own[half:]):
            lines += [to_line(Begin(f"b{number}")), *map(to_line, life)]
            lines += [to_line(End())] if rng.random() < 0.5 else []
        files.append(lines)
    return files
