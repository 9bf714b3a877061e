"""The filters and events that speed is measured on. Equal seeds give equal data.

Each filter comes as text and as a plain structure, a union of boxes of constraints, so that `truth.py` can count its
matches without the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.columns import Columns, Numbers, Words

Value: TypeAlias = str | int | float


class Constraint(NamedTuple):
    """`path operator operands`. `denied`: the path is there and the value is not in the set (`!=`, `NOT IN`, ...)."""

    path: str
    operator: str
    operands: tuple[Value, ...]
    denied: bool = False

    def __str__(self) -> str:
        values = [literal(value) for value in self.operands]
        match self.operator:
            case "=" if self.denied:
                return f"{self.path} != {values[0]}"
            case "BETWEEN":
                tail = f"{values[0]} AND {values[1]}"
            case "IN":
                tail = f"({', '.join(values)})"
            case _:
                tail = values[0]
        return f"{self.path} {'NOT ' * self.denied}{self.operator} {tail}"


Box: TypeAlias = tuple[Constraint, ...]


class PlainFilter(NamedTuple):
    """A union of boxes."""

    boxes: tuple[Box, ...]

    def __str__(self) -> str:
        texts = [" AND ".join(map(str, box)) for box in self.boxes]
        return texts[0] if len(texts) == 1 else " OR ".join(f"({text})" for text in texts)


def literal(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else repr(value)


@dataclass(frozen=True)
class Workload:
    filters: list[PlainFilter]
    events: Columns


@dataclass(frozen=True)
class Stock:
    """`symbol = X AND price BETWEEN lo AND hi`, filters and events as arrays; `symbols[code]` is the name."""

    symbols: list[str]
    symbol: NDArray[np.int32]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    events: Columns

    def filters(self) -> Iterator[PlainFilter]:
        for code, lo, hi in zip(self.symbol.tolist(), self.lo.tolist(), self.hi.tolist(), strict=True):
            name = self.symbols[code]
            yield PlainFilter(((Constraint("symbol", "=", (name,)), Constraint("price", "BETWEEN", (lo, hi))),))


def stock(filters: int, events: int = 100_000, symbols: int = 1_000, seed: int = 1) -> Stock:
    """Each event matches half of the filters on its symbol: 50 at 100,000 filters."""
    rng = np.random.default_rng(seed)
    names = [f"S{number:04}" for number in range(symbols)]
    there = np.ones(events, dtype=np.bool_)
    return Stock(
        symbols=names,
        symbol=rng.integers(symbols, size=filters, dtype=np.int32),
        lo=50 - rng.uniform(0, 50, filters),
        hi=50 + rng.uniform(0, 50, filters),
        events={
            "symbol": Words(names, rng.integers(symbols, size=events, dtype=np.int32), there),
            "price": Numbers(rng.uniform(0, 100, events), there),
        },
    )


STRINGS = [f"s{number}" for number in range(10)]
NUMBERS = [f"n{number}" for number in range(10)]
DISCRETE = [*STRINGS, "n8", "n9"]


@dataclass(frozen=True)
class Mix:
    """What general filters are made of."""

    free: float  # share of boxes without equality
    breadth: float  # share of the events in a range, on average
    keys: list[str]  # attributes of a box's first equality
    letters: int  # in the shortest pattern
    paths: list[str]  # attributes of the rest
    only_ranges: bool = False


# Tuned to the matches an event has at 100,000 filters: 850, 90 and 850.
MIXES = {
    "general": Mix(free=0.1, breadth=0.33, keys=DISCRETE, letters=1, paths=NUMBERS + STRINGS),
    "selective": Mix(free=0.1, breadth=0.05, keys=STRINGS[5:], letters=2, paths=NUMBERS + STRINGS),
    "range-only": Mix(free=1.0, breadth=0.174, keys=[], letters=0, paths=NUMBERS, only_ranges=True),
}

VOCABULARIES = (8, 16, 40, 100, 200, 400, 800, 1_500, 3_000, 6_000)
LETTERS = np.array(list("abcdefghijkl"))
SPARSE = ("s3", "s7", "n3", "n7")


def general(filters: int, events: int = 10_000, mix: str = "general", seed: int = 2) -> Workload:
    """2 to 8 constraints over 20 attributes: s0 to s9 are strings, n0 to n9 numbers; a few are missing now and then."""
    columns = _general_events(events, np.random.default_rng(seed))
    ladders = {path: _ladder(column) for path, column in _general_events(4_096, np.random.default_rng(0)).items()}
    maker = _FilterMaker(ladders, MIXES[mix], _uniform(np.random.default_rng([seed, 1])))
    return Workload([maker.filter() for _ in range(filters)], columns)


def _general_events(count: int, rng: np.random.Generator) -> Columns:
    words = np.random.default_rng(0)
    columns: Columns = {}
    for number, size in enumerate(VOCABULARIES):
        vocabulary = sorted({"".join(words.choice(LETTERS, 6)) for _ in range(size)})
        weights = words.permutation(1 / (np.arange(len(vocabulary)) + 3) ** 0.7)
        codes = rng.choice(len(vocabulary), count, p=weights / weights.sum()).astype(np.int32)
        columns[f"s{number}"] = Words(vocabulary, codes, _present(f"s{number}", count, rng))
    values: list[NDArray[np.float64] | NDArray[np.int64]] = [rng.uniform(0, 1_000, count).round(2) for _ in range(5)]
    values += [rng.lognormal(3, 1, count).round(2), rng.normal(0, 100, count).round(3)]
    values += [rng.integers(limit, size=count) for limit in (1_000_000, 10, 100)]
    for number, column in enumerate(values):
        columns[f"n{number}"] = Numbers(column, _present(f"n{number}", count, rng))
    return columns


def _present(path: str, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    return rng.random(count) >= (0.1 if path in SPARSE else 0.0)


def _ladder(column: Words | Numbers) -> list[Value]:
    """Sorted values as they occur: the one at a uniform place is a draw, those at two places bound a range."""
    if isinstance(column, Numbers):
        return sorted(column.values.tolist())
    return sorted(column.vocabulary[code] for code in column.codes.tolist())


def _uniform(rng: np.random.Generator) -> Callable[[], float]:
    def numbers() -> Iterator[float]:
        while True:
            yield from rng.random(65_536).tolist()

    return numbers().__next__


class _FilterMaker:
    """Draws filters. Constants come from the distribution of the events: what is frequent is asked for often."""

    def __init__(self, ladders: dict[str, list[Value]], mix: Mix, draw: Callable[[], float]) -> None:
        self.ladders = ladders
        self.mix = mix
        self.draw = draw

    def filter(self) -> PlainFilter:
        if self.draw() < 0.85:
            return PlainFilter((self.box(2 + int(self.draw() * 7)),))
        return PlainFilter((self.box(2 + int(self.draw() * 3)), self.box(2 + int(self.draw() * 3))))

    def box(self, size: int) -> Box:
        paths = self.mix.paths.copy()
        constraints = []
        equality = self.draw() >= self.mix.free
        if equality:
            first = self.pick(self.mix.keys)
            constraints.append(self.equality(first))
            paths.remove(first)
        while len(constraints) < size:
            path = self.pick(paths)
            paths.remove(path)
            constraints.append(self.constraint(path, equality))
        return tuple(constraints)

    def constraint(self, path: str, equality: bool) -> Constraint:
        """A further constraint on `path`; no equality unless the box has one already."""
        luck = 1.0 if self.mix.only_ranges else self.draw()
        if luck < 0.15:
            return self.denial(path)
        if luck < 0.3 and equality and path in DISCRETE:
            return self.equality(path)
        if luck < 0.8 and path in STRINGS:
            return self.pattern(path)
        return self.range(path)

    def equality(self, path: str) -> Constraint:
        if self.draw() < 0.7:
            return Constraint(path, "=", (self.value(path),))
        values = {self.value(path) for _ in range(2 + int(self.draw() * 5))}
        return Constraint(path, "IN", tuple(sorted(values, key=str)))

    def range(self, path: str) -> Constraint:
        ladder = self.ladders[path]
        width = min(0.98, self.mix.breadth * (0.2 + 1.6 * self.draw()))
        if self.draw() < 0.3:
            below = self.draw() < 0.5
            place = int((width if below else 1 - width) * (len(ladder) - 1))
            return Constraint(path, ("<" if below else ">="), (ladder[place],))
        low = self.draw() * (1 - width)
        ends = (ladder[int(place * (len(ladder) - 1))] for place in (low, low + width))
        return Constraint(path, "BETWEEN", tuple(ends))

    def pattern(self, path: str) -> Constraint:
        word = str(self.value(path))
        length = self.mix.letters + (self.draw() < 0.5)
        kind = self.draw()
        if kind < 0.6:
            text = word[:length] + "%"
        elif kind < 0.75:
            text = "%" + word[-length:]
        elif kind < 0.9:
            text = "%" + word[2 : 2 + length] + "%"
        else:
            text = word[0] + "_" + word[2] + "%"
        return Constraint(path, "LIKE", (text,))

    def denial(self, path: str) -> Constraint:
        if path in STRINGS and self.draw() < 0.3:
            return self.pattern(path)._replace(denied=True)
        if path in DISCRETE:
            return self.equality(path)._replace(denied=True)
        low = self.draw() * 0.8
        ladder = self.ladders[path]
        ends = (ladder[int(place * (len(ladder) - 1))] for place in (low, low + 0.2))
        return Constraint(path, "BETWEEN", tuple(ends), denied=True)

    def pick(self, paths: list[str]) -> str:
        return paths[int(self.draw() * len(paths))]

    def value(self, path: str) -> Value:
        ladder = self.ladders[path]
        return ladder[int(self.draw() * len(ladder))]
