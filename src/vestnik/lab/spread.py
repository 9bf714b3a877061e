"""How far single runs of the routing experiment lie from what is expected.

Variances are sums over pairs of directed links. Shares p and p' of the access brokers are behind the two, and a share r
is behind both. Where something is not known of two links together, no more is taken than each of them allows; so the
variances of messages, and of entries of intervals under covering, are bounds from above. In these, what two stocks have
in common by consumers who want both counts to first order, which is all but a hundredth of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod, sqrt

from vestnik.lab.exact import EACH, Exact, changes, law


@dataclass(frozen=True)
class Spread:
    """Variances of what `exact` expects."""

    exact: Exact

    def entries(self, strategy: str, advertisements: bool, form: str, consumers: int) -> float:
        """The variance of the number of remote entries. The maximal ones are all but those that are hidden."""
        kind, pairs = law(strategy, form), _pairs(self.exact, strategy, advertisements)

        def deviation(kind: str) -> float:
            covariance = _COVARIANCES[kind]
            found = sum(count * covariance(*pair, consumers, self.exact.stocks) for pair, count in pairs.items())
            return sqrt(max(0.0, found))

        return (deviation("simple") + deviation("hidden") if kind == "maximal" else deviation(kind)) ** 2

    def admin(self, strategy: str, advertisements: bool, form: str, consumers: int, operations: int) -> float:
        """The variance of the mean of messages over `operations`, which all find the same consumers."""
        kind, m = law(strategy, form), self.exact.stocks
        squares = shared = 0.0
        for (p, other, both), count in _pairs(self.exact, strategy, advertisements).items():
            f, g = changes(kind, p, consumers, m), changes(kind, other, consumers, m)
            squares += count * both * min(f, g)
            same = sqrt(f * (1 - f) * g * (1 - g)) if both else 0.0
            slopes = _slope(kind, p, consumers, m) * _slope(kind, other, consumers, m)
            unlike = consumers * _together(p, other, both, m) * slopes
            shared += count * p * other * (same + (m - 1) * unlike) / m
        alone = squares - self.exact.admin(strategy, advertisements, form, consumers) ** 2
        return (max(0.0, alone) + (operations - 1) * max(0.0, shared)) / operations


@lru_cache(maxsize=16)
def _pairs(exact: Exact, strategy: str, advertisements: bool) -> Counter[tuple[float, float, float]]:
    """How many ordered pairs of links have which p, p' and r."""
    sides = [exact.behind[link] for link in exact.counted(strategy, advertisements)]
    share = exact.share
    return Counter((share(one), share(other), share(one & other)) for one in sides for other in sides)


def _together(p: float, other: float, both: float, stocks: int) -> float:
    """The covariance of that a consumer behind one link wants one stock, and behind the other link another stock."""
    pair = EACH * (EACH - 1) / (stocks * (stocks - 1))
    return both * pair - p * other * (EACH / stocks) ** 2


def _slope(kind: str, p: float, consumers: int, stocks: int) -> float:
    """By how much it is more probable that a message goes over a link if one consumer more wants the stock."""
    more = changes(kind, p, consumers, stocks) - changes(kind, p, consumers - 1, stocks)
    return more / (EACH * p / stocks)


def _none_of_two(one: float, other: float, both: float, consumers: int) -> float:
    """The covariance of that nobody does the one and that nobody does the other, by the probabilities of each."""
    return max(0.0, 1 - one - other + both) ** consumers - ((1 - one) * (1 - other)) ** consumers


def _wanted(p: float, other: float, both: float, consumers: int, stocks: int) -> float:
    each, pair = EACH / stocks, EACH * (EACH - 1) / (stocks * (stocks - 1))
    same = _none_of_two(each * p, each * other, each * both, consumers)
    unlike = _none_of_two(each * p, each * other, pair * both, consumers)
    return stocks * (same + (stocks - 1) * unlike)


def _hidden(p: float, other: float, both: float, consumers: int, stocks: int) -> float:
    """Of intervals that others hide: if one consumer more wants a stock, another 1 - (1 - (1 - q)^c) / (c q) is."""
    wanted = EACH * p / stocks, EACH * other / stocks
    same = sqrt(prod(_variance_of_hidden(q, consumers) for q in wanted)) if both else 0.0
    slopes = prod(1 - (1 - (1 - q) ** consumers) / (consumers * q) for q in wanted)
    return stocks * (same + (stocks - 1) * consumers * _together(p, other, both, stocks) * slopes)


@lru_cache(maxsize=4096)
def _variance_of_hidden(q: float, n: int) -> float:
    """Of binomially many intervals. The i-th longest to one side is maximal with probability 1/i, independently."""
    weight, hidden, variance = (1 - q) ** n, 0.0, 0.0
    mean = square = 0.0
    for k in range(1, n + 1):
        weight *= (n - k + 1) / k * q / (1 - q)
        hidden, variance = hidden + 1 - 1 / k, variance + 1 / k - 1 / k**2
        mean += weight * hidden
        square += weight * (variance + hidden**2)
    return square - mean**2


_COVARIANCES: dict[str, Callable[[float, float, float, int, int], float]] = {
    "nothing": lambda p, other, both, c, m: 0.0,
    "simple": lambda p, other, both, c, m: EACH**2 * c * (both - p * other),
    "identity": _wanted,
    "per stock": _wanted,
    "hidden": _hidden,
    "sets": lambda p, other, both, c, m: _none_of_two(p, other, both, c),
}
