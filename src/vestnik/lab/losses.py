"""How many notifications are lost in an interval: the laws of the paper, and losses one by one in time."""

from __future__ import annotations

import math
from random import Random
from typing import NamedTuple, Protocol

RATE = 0.05
"""Losses a second, of the Poisson law and in the mean of every other one."""
SLOPE = 2 * RATE
"""The uniform law is on whole numbers from 0 to SLOPE t."""


class Law(Protocol):
    """Of the number k that is lost in an interval of t seconds."""

    def draw(self, t: float, rng: Random) -> int:
        """One k."""

    def mean(self, t: float) -> float:
        """Its expectation."""

    def none(self, t: float) -> float:
        """The probability that it is 0."""


class Poisson:
    """Losses come one by one, RATE a second."""

    def draw(self, t: float, rng: Random) -> int:
        limit, product, k = math.exp(-RATE * t), rng.random(), 0
        while product > limit:
            product *= rng.random()
            k += 1
        return k

    def mean(self, t: float) -> float:
        return RATE * t

    def none(self, t: float) -> float:
        return math.exp(-RATE * t)


class Rounded:
    """A real number between 0 and SLOPE t, rounded down, or with `shift` 1/2 to the nearest whole number."""

    def __init__(self, shift: float) -> None:
        self._shift = shift

    def draw(self, t: float, rng: Random) -> int:
        return math.floor(SLOPE * t * rng.random() + self._shift)

    def mean(self, t: float) -> float:
        most = SLOPE * t + self._shift  # k is j where the number and the shift are between j and j + 1
        whole = math.floor(most)
        return (whole * (whole - 1) / 2 + whole * (most - whole)) / (SLOPE * t)

    def none(self, t: float) -> float:
        return min(1.0, (1 - self._shift) / (SLOPE * t))


class Whole:
    """Any whole number from 0 to SLOPE t, one as probable as the other."""

    def draw(self, t: float, rng: Random) -> int:
        return int(rng.random() * (math.floor(SLOPE * t) + 1))

    def mean(self, t: float) -> float:
        return math.floor(SLOPE * t) / 2

    def none(self, t: float) -> float:
        return 1 / (math.floor(SLOPE * t) + 1)


LAWS: dict[str, Law] = {
    "poisson": Poisson(),
    "uniform, nearest": Rounded(0.5),
    "uniform, down": Rounded(0.0),
    "uniform, whole": Whole(),
}


class Weather(NamedTuple):
    """Losses come one by one, RATE a second in the mean; in storms `contrast` times as often as in between.

    Storms are `length` seconds long and take the given share of the time, after a calm each.
    """

    share: float = 1.0
    length: float = 1000.0
    contrast: float = 1.0

    @property
    def calm(self) -> float:
        """Seconds between two storms."""
        return self.length * (1 - self.share) / self.share

    def losses(self, seconds: float, rng: Random) -> list[float]:
        """When they come, in order."""
        low = RATE / (1 - self.share + self.contrast * self.share)
        found: list[float] = []
        start = 0.0
        while start < seconds:
            for rate, lasting in ((low, self.calm), (self.contrast * low, self.length)):
                at = start + rng.expovariate(rate)
                while at < start + lasting:
                    found.append(at)
                    at += rng.expovariate(rate)
                start += lasting
        return [at for at in found if at <= seconds]


STEADY = Weather()
CONTRAST = 100.0
"""How many times as often something is lost in a storm."""
RARE = Weather(0.05, 400.0, CONTRAST)
