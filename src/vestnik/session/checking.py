"""How long to wait until the next question whether anything was lost, given how much was lost in the last interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from vestnik.errors import WrongType, WrongValue

T0 = 20.0


@runtime_checkable
class Checking(Protocol):
    """A strategy. Intervals are in seconds."""

    @property
    def first(self) -> float:
        """The first interval."""

    def next(self, interval: float, lost: int, uniform: Callable[[float, float], float]) -> float:
        """The interval after one in which `lost` notifications were lost; `uniform(a, b)` draws a number."""


class Strategy(Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """One that a file may name."""


class Adaptive(Strategy, frozen=True, tag="adaptive"):
    """Longer by `delta` where nothing was lost, else shorter the more was lost: t (1 + alpha k) / (k + 1)."""

    delta: float = 20.0
    alpha: float = 0.5
    first: float = T0

    def __post_init__(self) -> None:
        _positive(self.first, self.delta)
        if not 0 < self.alpha < 1:
            raise WrongValue("alpha is between 0 and 1", self.alpha)

    def next(self, interval: float, lost: int, uniform: Callable[[float, float], float]) -> float:
        return interval + self.delta if lost == 0 else interval * (1 + self.alpha * lost) / (lost + 1)


class MultiplicativeDecrease(Strategy, frozen=True, tag="multiplicative-decrease"):
    """Shorter by `factor` where something was lost, else the first interval again."""

    factor: float = 0.5
    first: float = T0

    def __post_init__(self) -> None:
        _positive(self.first)
        if not 0 < self.factor < 1:
            raise WrongValue("the factor is between 0 and 1", self.factor)

    def next(self, interval: float, lost: int, uniform: Callable[[float, float], float]) -> float:
        return interval * self.factor if lost else self.first


class RandomInterval(Strategy, frozen=True, tag="random"):
    """Anything between `low` and `high`."""

    low: float = 10.0
    high: float = 30.0
    first: float = T0

    def __post_init__(self) -> None:
        _positive(self.first, self.low)
        if self.low > self.high:
            raise WrongValue(f"an interval from {self.low} on ends behind that", self.high)

    def next(self, interval: float, lost: int, uniform: Callable[[float, float], float]) -> float:
        return uniform(self.low, self.high)


class Constant(Strategy, frozen=True, tag="constant"):
    """Always the first interval."""

    first: float = T0

    def __post_init__(self) -> None:
        _positive(self.first)

    def next(self, interval: float, lost: int, uniform: Callable[[float, float], float]) -> float:
        return self.first


AnyChecking: TypeAlias = Adaptive | MultiplicativeDecrease | RandomInterval | Constant
"""Those that are here."""


def _positive(*intervals: float) -> None:
    for interval in intervals:
        if not isinstance(interval, int | float):
            raise WrongType("an interval is a number of seconds", interval)
        if not interval > 0:
            raise WrongValue("an interval is longer than nothing", interval)
