"""Random operations for a random tree of brokers.

Filters and events are drawn from a few values, so that filters cover, overlap and complete each other often.
"""

from __future__ import annotations

from operator import methodcaller
from random import Random
from typing import NamedTuple

from vestnik.model.events import Event
from vestnik.model.filters import Filter

BROKERS, STEPS, VALUES = 5, 40, 5
LONGEST_WAIT = 6.0
CHANCES = {
    "subscribe": 6,
    "unsubscribe": 4,
    "advertise": 4,
    "unadvertise": 2,
    "publish": 5,
    "arrive": 12,
    "settle": 2,
    "wait": 6,
    "sweep": 2,
    "lapse": 2,
    "visit": 3,
    "cut": 1,
    "join": 2,
    "corrupt": 0.5,
}


class Script(NamedTuple):
    """A tree, as a network takes it, and what is to happen in it: methods of a network with their arguments."""

    parents: tuple[int, ...]
    steps: tuple[methodcaller, ...]


def random_script(rng: Random) -> Script:
    """Some steps in the course of which messages overtake each other, and some in peace."""
    parents = tuple(rng.randrange(child) for child in range(1, rng.randint(2, BROKERS)))
    brokers = len(parents) + 1
    operations = rng.choices(list(CHANCES), list(CHANCES.values()), k=STEPS)
    steps = [random_step(rng, operation, brokers) for operation in operations]
    steps += [random_step(rng, operation, brokers) for operation in ("recover", *["publish"] * brokers, "settle")]
    return Script(parents, tuple(steps))


def random_step(rng: Random, operation: str, brokers: int) -> methodcaller:
    client, name = f"{rng.choice('cd')}{rng.randrange(brokers)}", rng.choice("st")
    match operation:
        case "subscribe" | "advertise":
            return methodcaller(operation, client, name, random_filter(rng))
        case "publish":
            return methodcaller(operation, client, random_event(rng))
        case "visit":
            return methodcaller(operation, client, name, random_filter(rng), LONGEST_WAIT * rng.random())
        case "wait":
            return methodcaller(operation, LONGEST_WAIT * rng.random())
        case "sweep":
            return methodcaller(operation, f"b{rng.randrange(brokers)}")
        case "corrupt":
            return methodcaller(operation, f"b{rng.randrange(brokers)}", rng.getrandbits(32))
        case "arrive" | "cut" | "join":
            return methodcaller(operation, rng.random())
        case "settle" | "recover":
            return methodcaller(operation)
        case _:
            return methodcaller(operation, client, name)


def random_filter(rng: Random) -> Filter:
    match rng.randrange(12):
        case 0:
            return Filter.all()
        case 1:
            return random_box(rng) | random_box(rng)
        case 2:
            return ~random_box(rng)
        case _:
            return random_box(rng)


def random_box(rng: Random) -> Filter:
    low, high = sorted(rng.choices(range(VALUES), k=2))
    wanted = Filter.parse(f"x BETWEEN {low} AND {high}")
    return wanted & Filter.parse(f"s = '{rng.choice('ab')}'") if rng.random() < 0.4 else wanted


def random_event(rng: Random) -> Event:
    return Event("example", {"x": rng.randrange(VALUES), "s": rng.choice("abc")}, id="example")
