"""The same load with interests of other kinds, imperfect merging, and producers elsewhere."""

from __future__ import annotations

from itertools import pairwise

from vestnik.lab.results import Claim, verdict
from vestnik.lab.routing import Measured
from vestnik.lab.statistics import Estimate, estimate


class Variants:
    """The rows of the table of variants."""

    def __init__(self, rows: list[Measured]) -> None:
        self._rows = rows
        self.load = rows[0].subscriptions

    def entries(self, strategy: str, **kind: float) -> Estimate:
        """The entries of a strategy where the settings in `kind` are as given and all others are 0."""
        wanted = {"locality": 0.0, "zipf": 0.0, "tolerance": 0.0, "producers": 0} | kind
        return estimate(
            [
                row.entries
                for row in self._rows
                if row.strategy == strategy and all(getattr(row, name) == value for name, value in wanted.items())
            ]
        )


def judge(variants: Variants) -> list[Claim]:
    return [_imperfect(variants), _producers(variants)]


def _imperfect(variants: Variants) -> Claim:
    found = {tolerance: variants.entries("merging", tolerance=tolerance) for tolerance in (0.0, 0.1, 0.3, 0.6)}
    listed = ", ".join(f"{entries} with {tolerance:.0%}" for tolerance, entries in found.items())
    means = [entries.mean for entries in found.values()]
    return Claim(
        claim="imperfect merging saves more entries the more unwanted events it lets in",
        measured=f"entries at x = {variants.load:,} with advertisements and intervals, by tolerance: {listed}",
        verdict=verdict(*(one >= other for one, other in pairwise(means)), means[0] > means[-1]),
    )


def _producers(variants: Variants) -> Claim:
    root, one, five = (variants.entries("covering", producers=count) for count in (0, 1, 5))
    return Claim(
        claim="the mean path, and with it the number of entries, is least with the producer at the root router",
        measured=f"entries under covering at x = {variants.load:,}: {root} with one at the root, {one} with one at a "
        f"uniform local broker, {five} with five there",
        verdict=verdict(root.mean < one.mean, one.mean < five.mean),
    )
