"""Who wants what, and what is published. Equal seeds give equal filters and events."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import Protocol

from msgspec import Struct

from vestnik.model.cuts import number_range
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.regions import Region
from vestnik.model.spaces import DATA, EVENT
from vestnik.model.values import ValueSet

REGION = 0.1
"""The share of all stocks that is of interest around one place."""
TRIES = 100

_parse = lru_cache(maxsize=4096)(Filter.parse)


class Workload(Protocol):
    """What clients want and publish. A place is a number from 0 to 1: clients with near ones may want the same."""

    def interests(self, rng: Random, place: float) -> Iterator[Filter]:
        """What one client subscribes to, without end."""

    def offer(self) -> Filter:
        """What a producer advertises: all that it may publish."""

    def event(self, rng: Random, source: str, id: str) -> Event:
        """The next event of a producer."""


class Stock(Struct, frozen=True, tag="stock", tag_field="kind", forbid_unknown_fields=True):
    """`stock = s`, with `intervals` also `price BETWEEN 50 - t1 AND 50 + t2`, each t uniform from 0 to 50.

    The r-th stock is as popular as 1/r^zipf; a share `locality` of what a client wants is of the region of its place.
    """

    stocks: int = 1000
    intervals: bool = False
    zipf: float = 0.0
    locality: float = 0.0

    def __post_init__(self) -> None:
        if self.stocks < 1 or self.zipf < 0 or not 0 <= self.locality <= 1:
            raise ValueError("needs at least 1 stock, a zipf exponent from 0 and a locality from 0 to 1")

    def interests(self, rng: Random, place: float) -> Iterator[Filter]:
        for stock in _distinct(lambda: self._wanted(rng, place), self.stocks):
            wanted = _parse(f"stock = 's{stock}'")
            if self.intervals:
                prices = number_range(50 - 50 * rng.random(), 50 + 50 * rng.random())
                wanted &= Filter(Region.at(EVENT, (DATA, "price"), ValueSet(numbers=prices)))
            yield wanted

    def _wanted(self, rng: Random, place: float) -> int:
        if self.locality and rng.random() < self.locality:
            return int(self.stocks * (place + REGION * rng.random())) % self.stocks
        return self._popular(rng)

    def _popular(self, rng: Random) -> int:
        if not self.zipf:
            return rng.randrange(self.stocks)
        weights = _zipf(self.stocks, self.zipf)
        return bisect(weights, rng.random() * weights[-1])

    def offer(self) -> Filter:
        return _parse("price BETWEEN 0 AND 100 AND type = 'quote'")

    def event(self, rng: Random, source: str, id: str) -> Event:
        data = {"stock": f"s{self._popular(rng)}", "price": round(100 * rng.random(), 2)}
        return Event("quote", data, source=source, id=id)


@lru_cache
def _zipf(size: int, exponent: float) -> list[float]:
    """The weights 1/r^exponent, added up."""
    return list(accumulate(1 / rank**exponent for rank in range(1, size + 1)))


def _distinct(draw: Callable[[], int], size: int) -> Iterator[int]:
    """Numbers below `size`, each once in a round; what is not drawn for long is taken in order."""
    while True:
        left = dict.fromkeys(range(size))
        while left:
            drawn = next((n for n in (draw() for _ in range(TRIES)) if n in left), next(iter(left)))
            del left[drawn]
            yield drawn


VALUES = 20
"""How many numbers there are in random filters and events."""


class RandomFilters(Struct, frozen=True, tag="random", tag_field="kind", forbid_unknown_fields=True):
    """Conjunctions of one to three constraints on some of `attributes` whole numbers, sometimes two of them with OR."""

    attributes: int = 6

    def __post_init__(self) -> None:
        if self.attributes < 1:
            raise ValueError("filters need at least one attribute")

    def interests(self, rng: Random, place: float) -> Iterator[Filter]:
        while True:
            boxes = [self._conjunction(rng) for _ in range(2 if rng.random() < 0.2 else 1)]
            yield Filter.parse(" OR ".join(f"({box})" for box in boxes))

    def _conjunction(self, rng: Random) -> str:
        names = rng.sample(range(self.attributes), min(self.attributes, rng.randint(1, 3)))
        return " AND ".join(f"a{name} {_constraint(rng)}" for name in names)

    def offer(self) -> Filter:
        return _parse("type = 'random'")

    def event(self, rng: Random, source: str, id: str) -> Event:
        data = {f"a{name}": rng.randrange(VALUES) for name in range(self.attributes) if rng.random() < 0.8}
        return Event("random", data, source=source, id=id)


def _constraint(rng: Random) -> str:
    low, high = sorted(rng.sample(range(VALUES), 2))
    several = [f"BETWEEN {low} AND {high}", f"IN ({low}, {high})"]
    return rng.choice([f"= {low}", f"!= {low}", f"< {high}", f">= {low}", *several])


PATIENTS, ALARMS = 10, ("heart", "breath", "fall")
"""How many patients there are in a ward, and what alarms are about."""


class Medical(Struct, frozen=True, tag="medical", tag_field="kind", forbid_unknown_fields=True):
    """Patients in wards with vitals and a list of alarms, watched by ward, by patient, by vitals and by alarms.

    A share `locality` of what a client wants is of the ward of its place.
    """

    wards: int = 20
    locality: float = 0.0

    def __post_init__(self) -> None:
        if self.wards < 1 or not 0 <= self.locality <= 1:
            raise ValueError("needs at least 1 ward and a locality from 0 to 1")

    def interests(self, rng: Random, place: float) -> Iterator[Filter]:
        while True:
            here = rng.random() < self.locality
            ward = min(int(self.wards * place), self.wards - 1) if here else rng.randrange(self.wards)
            yield _parse(rng.choice(_WATCHES)(rng, f"w{ward}"))

    def offer(self) -> Filter:
        return _parse("type = 'observation' AND EXISTS patient.ward")

    def event(self, rng: Random, source: str, id: str) -> Event:
        ward = f"w{rng.randrange(self.wards)}"
        data = {
            "patient": {"id": _patient(rng, ward), "ward": ward},
            "vitals": {"pulse": round(rng.gauss(90, 20)), "oxygen": min(100, round(rng.gauss(95, 3)))},
            "alarms": [{"about": about, "level": rng.randint(1, 3)} for about in ALARMS if rng.random() < 0.1],
        }
        return Event("observation", data, source=source, id=id)


def _patient(rng: Random, ward: str) -> str:
    return f"{ward}-{rng.randrange(PATIENTS)}"


_WATCHES: tuple[Callable[[Random, str], str], ...] = (
    lambda rng, ward: f"patient.ward = '{ward}' AND vitals.pulse > {rng.randrange(80, 150, 10)}",
    lambda rng, ward: f"patient.ward = '{ward}' AND vitals.oxygen < {rng.randint(86, 94)}",
    lambda rng, ward: f"patient.ward = '{ward}' AND ANY alarms (level >= {rng.randint(1, 3)})",
    lambda rng, ward: f"patient.id = '{_patient(rng, ward)}'",
    lambda rng, ward: f"ANY alarms (about = '{rng.choice(ALARMS)}' AND level >= {rng.randint(2, 3)})",
)
