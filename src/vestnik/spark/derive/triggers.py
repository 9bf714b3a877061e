"""Triggers, reading by reading: what of the past has to be kept to know whether one fires.

`definition.firings` says when that is. Here `look` is given the readings of one key in order, and what it has kept of
them, which it changes; it gives the base when the trigger fires.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import ClassVar

from vestnik.errors import WrongValue
from vestnik.spark.derive.durations import millis
from vestnik.spark.derive.series import Reading

MICROS_IN_MILLI = 1_000


class Trigger(ABC):
    """Fires at a reading when it `holds` for it and an earlier one."""

    name: ClassVar[str]

    @abstractmethod
    def holds(self, base: float, value: float) -> bool:
        """Whether it fires where the value was `base` and has become `value`."""

    @abstractmethod
    def look(self, kept: deque[Reading], reading: Reading) -> Reading | None:
        """The base, if it fires at `reading`."""

    @abstractmethod
    def matters_until(self, kept: deque[Reading]) -> float:
        """The time behind which nothing of what is kept can matter; infinite where it may for ever."""

    @abstractmethod
    def said(self) -> dict[str, float]:
        """What is wanted, by name."""


@dataclass(frozen=True)
class _Threshold(Trigger):
    """Compares each value with the one before it."""

    threshold: float

    def __post_init__(self) -> None:
        _check("a threshold is a number", self.threshold, isfinite(self.threshold))

    def said(self) -> dict[str, float]:
        return {self.name: float(self.threshold)}

    def look(self, kept: deque[Reading], reading: Reading) -> Reading | None:
        before = kept.popleft() if kept else None
        kept.append(reading)
        return before if before is not None and self.holds(before.value, reading.value) else None

    def matters_until(self, kept: deque[Reading]) -> float:
        return inf if kept else -inf


@dataclass(frozen=True)
class Above(_Threshold):
    """The value is above `threshold`, and the one before it was not."""

    name: ClassVar[str] = "above"

    def holds(self, base: float, value: float) -> bool:
        return base <= self.threshold < value


@dataclass(frozen=True)
class Below(_Threshold):
    """The value is below `threshold`, and the one before it was not."""

    name: ClassVar[str] = "below"

    def holds(self, base: float, value: float) -> bool:
        return value < self.threshold <= base


class Relative(Trigger):
    """Compares each value with the one within the interval before it from which it is farthest.

    Kept are those that may yet be that one: each is a better base than the later ones, which are near for longer.
    """

    percent: float
    within: str
    micros: int

    @abstractmethod
    def is_better(self, one: float, other: float) -> bool:
        """Whether `one` is at least as good a base as `other`."""

    def look(self, kept: deque[Reading], reading: Reading) -> Reading | None:
        while kept and reading.time - kept[0].time > self.micros:
            kept.popleft()
        base = kept[0] if kept and self.holds(kept[0].value, reading.value) else None
        if base is not None:
            kept.clear()
        if reading.value > 0:
            while kept and self.is_better(reading.value, kept[-1].value):
                kept.pop()
            kept.append(reading)
        return base

    def matters_until(self, kept: deque[Reading]) -> float:
        return kept[-1].time + self.micros if kept else -inf

    def said(self) -> dict[str, float]:
        return {self.name: float(self.percent), "within": self.micros / 1_000_000}


@dataclass(frozen=True)
class Rise(Relative):
    """The value has risen by `percent` or more `within` an interval."""

    percent: float
    within: str
    micros: int = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "rise"

    def __post_init__(self) -> None:
        _check("a rise is of more than 0 percent", self.percent, isfinite(self.percent) and self.percent > 0)
        object.__setattr__(self, "micros", millis(self.within, 1) * MICROS_IN_MILLI)

    def holds(self, base: float, value: float) -> bool:
        return base > 0 and value >= base * (1 + self.percent / 100)

    def is_better(self, one: float, other: float) -> bool:
        return one <= other


@dataclass(frozen=True)
class Fall(Relative):
    """The value has fallen by `percent` or more `within` an interval."""

    percent: float
    within: str
    micros: int = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "fall"

    def __post_init__(self) -> None:
        _check("a fall is of more than 0 and at most 100 percent", self.percent, 0 < self.percent <= 100)
        object.__setattr__(self, "micros", millis(self.within, 1) * MICROS_IN_MILLI)

    def holds(self, base: float, value: float) -> bool:
        return base > 0 and value <= base * (1 - self.percent / 100)

    def is_better(self, one: float, other: float) -> bool:
        return one >= other


def _check(expected: str, given: float, holds: bool) -> None:
    if not holds:
        raise WrongValue(expected, given)
