"""The claims of the paper on routing, each held against what was measured and what is exact."""

from __future__ import annotations

from itertools import pairwise
from math import hypot

from vestnik.lab.exact import EACH
from vestnik.lab.results import Claim
from vestnik.lab.routing_evidence import PAPER, Evidence, Variants
from vestnik.lab.statistics import Estimate, number, p_value

HOLDS, PARTLY, FAILS = "holds", "holds in part", "does not hold"
LEVEL = 0.001
PAPERS_LARGEST, LARGE = 2_000, 100_000
GRID = [10, 100, 1_000, PAPERS_LARGEST, 10_000, LARGE, 1_000_000]
EQUALITY, INTERVAL = "equality", "interval"
LINKS = len(PAPER.topology.edges)


def judge(evidence: Evidence, variants: Variants) -> list[Claim]:
    return [
        _simple(evidence),
        _identity(evidence),
        _factor(evidence),
        _merging(evidence),
        _lost_limit(evidence),
        _covering_or_merging(evidence),
        _most_helped(evidence),
        _large_systems(evidence),
        _dynamic(evidence),
        _uneven(variants),
        _half(evidence),
        _complexity(evidence),
        _imperfect(variants),
        _producers(variants),
    ]


def _agrees(measured: Estimate, exact: float) -> bool:
    """Whether a mean is as expected; where all runs gave the same, there is no telling."""
    return measured.error == 0 or p_value(measured, exact) > LEVEL


def _clearly_less(one: Estimate, other: Estimate) -> bool:
    return other.mean - one.mean > 2 * hypot(one.error, other.error)


def _verdict(*facts: bool) -> str:
    return HOLDS if all(facts) else PARTLY if any(facts) else FAILS


def _simple(evidence: Evidence) -> Claim:
    load = evidence.common_load("simple", EQUALITY)
    entries, factor = evidence.entries("simple", False, EQUALITY, load), evidence.factor("simple", EQUALITY, load)
    exact = LINKS / PAPER.mean_path
    return Claim(
        claim="simple routing needs (|V| - 1) x entries, advertisements reduce them by the factor 28.4 at every load",
        measured=f"{entries} entries at x = {load:,}; factor {factor}",
        exact=f"{number(LINKS * load)} entries; factor {exact:.4g}, for a mean path of {PAPER.mean_path:.4g} links",
        verdict=_verdict(entries.mean == LINKS * load, _agrees(factor, exact) and round(exact, 1) == 28.4),
    )


def _identity(evidence: Evidence) -> Claim:
    load = evidence.common_load("identity", EQUALITY)
    measured = evidence.entries("identity", False, EQUALITY, load)
    exact, limit = evidence.exact_entries("identity", False, EQUALITY, load), PAPER.limit("identity", False, EQUALITY)
    reached = evidence.exact_entries("identity", False, EQUALITY, PAPERS_LARGEST) / limit
    far = evidence.exact_entries("identity", False, EQUALITY, LARGE) / limit
    return Claim(
        claim="under identity-based routing the entries approach 212,000",
        measured=f"{measured} entries at x = {load:,}",
        exact=f"{number(exact)} at that load; the limit is {number(limit)}",
        verdict=_verdict(limit == 212_000, _agrees(measured, exact)),
        reason=f"at x = {PAPERS_LARGEST:,}, the most that the paper looks at, {reached:.0%} of the limit are reached, "
        f"at x = {LARGE:,} {far:.1%}",
    )


def _factor(evidence: Evidence) -> Claim:
    load = evidence.common_load("identity", EQUALITY)
    measured = evidence.factor("identity", EQUALITY, load)
    factors = [evidence.exact_factor("identity", EQUALITY, x) for x in GRID]
    falls = all(one > other > 2 for one, other in pairwise(factors))
    listed = ", ".join(f"{factor:.3g} at x = {x:,}" for x, factor in zip(GRID, factors, strict=True))
    return Claim(
        claim="with identity-based routing the factor due to advertisements is about 28.4 for few subscriptions, and "
        "falls to 2: at least one half is saved (second conclusion)",
        measured=f"{measured} at x = {load:,}",
        exact=f"{evidence.exact_factor('identity', EQUALITY, load):.4g} at that load; {listed}",
        verdict=_verdict(falls, round(factors[0]) == 28, abs(factors[-1] - 2) < 0.01),
        reason=f"it falls slowly: within the paper's loads it stays above {factors[GRID.index(PAPERS_LARGEST)]:.3g}",
    )


def _merging(evidence: Evidence) -> Claim:
    load = evidence.common_load("merging", EQUALITY)
    sets = evidence.entries("merging", False, EQUALITY, load)
    other = evidence.common_load("merging", INTERVAL)
    per_stock = evidence.entries("merging", False, INTERVAL, other)
    limits = [PAPER.limit("merging", False, form) for form in (EQUALITY, INTERVAL)]
    return Claim(
        claim="under merging-based routing there are 2 (|V| - 1) = 212 entries",
        measured=f"{sets} at x = {load:,} for stock = s; {per_stock} at x = {other:,} with price intervals",
        exact=f"{number(evidence.exact_entries('merging', False, EQUALITY, load))} and "
        f"{number(evidence.exact_entries('merging', False, INTERVAL, other))}; the limits are "
        f"{number(limits[0])} and {number(limits[1])}",
        verdict=_verdict(*(limit == 212 for limit in limits)),
        reason="filters on stocks alone merge into one set for each link, intervals only with those of the same stock, "
        "so their number follows the law of identity-based routing",
    )


def _lost_limit(evidence: Evidence) -> Claim:
    load = evidence.loads("merging", True, EQUALITY)[-1]
    measured = evidence.entries("merging", True, EQUALITY, load)
    limits = [PAPER.limit("merging", True, form) for form in (EQUALITY, INTERVAL)]
    return Claim(
        claim="merging with advertisements has a limit, which is lost in the text",
        measured=f"{measured} at x = {load:,} for stock = s",
        exact=f"{number(evidence.exact_entries('merging', True, EQUALITY, load))} at that load; the limit is |V| - 1 = "
        f"{number(limits[0])}, with intervals m (|V| - 1) = {number(limits[1])}: one direction of each link is left",
        verdict=_verdict(limits[0] == LINKS, limits[1] == LINKS * PAPER.stocks),
    )


def _covering_or_merging(evidence: Evidence) -> Claim:
    load = evidence.advertised_load("covering", "merging")
    ratios = [evidence.exact_ratio("covering", "merging", False, x) for x in GRID]
    listed = ", ".join(f"{ratio:.3g} at x = {x:,}" for x, ratio in zip(GRID, ratios, strict=True))
    return Claim(
        claim="merging improves the scalability beyond covering (figure 17)",
        measured=f"covering needs {evidence.ratio('covering', 'merging', load)} times the entries of merging at "
        f"x = {load:,} with advertisements",
        exact=f"{evidence.exact_ratio('covering', 'merging', True, load):.4g} there; without advertisements {listed}",
        verdict=_verdict(all(one < other for one, other in pairwise(ratios))),
        reason="covering has no limit: of n intervals of a stock 1 + 1/2 + ... + 1/n are maximal, as many as ln x",
    )


def _most_helped(evidence: Evidence) -> Claim:
    def factors(form: str, load: int) -> dict[str, float]:
        return {name: evidence.exact_factor(name, form, load) for name in ("identity", "covering", "merging")}

    load = evidence.common_load("covering", INTERVAL)
    measured = [f"{name} {evidence.factor(name, INTERVAL, load)}" for name in ("identity", "covering", "merging")]
    found = {form: factors(form, PAPERS_LARGEST) for form in (EQUALITY, INTERVAL)}
    listed = "; ".join(
        f"{form}: " + ", ".join(f"{name} {factor:.3g}" for name, factor in found[form].items()) for form in found
    )
    facts = [min(f["covering"], f["merging"]) > f["identity"] for f in found.values()]
    return Claim(
        claim="advertisements help covering and merging most (figure 18)",
        measured=f"factors with intervals at x = {load:,}: {', '.join(measured)}",
        exact=f"factors at x = {PAPERS_LARGEST:,}: {listed}",
        verdict=_verdict(*facts),
        reason="the more a strategy saves by itself, the less is left to save" if not any(facts) else "",
    )


def _large_systems(evidence: Evidence) -> Claim:
    def saved(strategy: str, clients: int) -> float:
        return evidence.exact_ratio("simple", strategy, False, clients * EACH)

    load = evidence.advertised_load("simple", "covering", "merging")
    names = ("covering", "merging")
    measured = [f"{name} {evidence.ratio('simple', name, load)}" for name in names]
    exact = [f"{name} {evidence.exact_ratio('simple', name, True, load):.4g}" for name in names]
    sizes = (100, 1_000, 10_000)
    listed = [f"{n:,} clients: covering {saved('covering', n):.3g}, merging {saved('merging', n):.3g}" for n in sizes]
    return Claim(
        claim="the algorithms pay in systems of 100 to 1,000 clients and more (first conclusion)",
        measured=f"simple routing needs this many times the entries at x = {load:,} with advertisements: "
        f"{', '.join(measured)}",
        exact=f"{', '.join(exact)} there; without advertisements {'; '.join(listed)}",
        verdict=_verdict(*(min(saved("covering", n), saved("merging", n)) >= 2 for n in sizes)),
        reason="to pay is taken to mean at most half of the entries",
    )


def _dynamic(evidence: Evidence) -> Claim:
    strategies = ("identity", "covering", "merging")
    load = evidence.advertised_load(*strategies)
    measured = [f"{name} {evidence.admin(name, True, INTERVAL, load)}" for name in strategies]
    there = [f"{name} {evidence.exact_admin(name, True, INTERVAL, load):.4g}" for name in strategies]
    exact = {
        x: {name: evidence.exact_admin(name, False, INTERVAL, x) for name in strategies}
        for x in (PAPERS_LARGEST, LARGE)
    }
    listed = "; ".join(
        f"x = {x:,}: " + ", ".join(f"{name} {messages:.3g}" for name, messages in found.items())
        for x, found in exact.items()
    )
    better = [exact[x][name] < LINKS / 2 for x in exact for name in ("covering", "merging")]
    return Claim(
        claim="the algorithms are more efficient in dynamic environments (third conclusion)",
        measured=f"messages for a subscription or its end at x = {load:,} with advertisements and intervals: "
        f"{', '.join(measured)}",
        exact=f"{', '.join(there)} there, {PAPER.mean_path:.4g} under simple routing; without advertisements {listed}, "
        f"{LINKS} under simple routing",
        verdict=_verdict(*better),
        reason="efficient is taken to mean at most half of the messages of simple routing; flooding needs none for a "
        "change, and the experiment compare tells from which rate of change on it is cheapest",
    )


def _uneven(variants: Variants) -> Claim:
    strategies = ("identity", "covering", "merging")
    kinds = {"half of the interests near": {"locality": 0.5}, "all near": {"locality": 1.0}, "Zipf": {"zipf": 1.0}}
    found = [(name, {k: variants.entries(name, **kind) for k, kind in kinds.items()}) for name in strategies]
    listed = "; ".join(
        f"{name} {variants.entries(name)}, " + ", ".join(f"{kind} {entries}" for kind, entries in by_kind.items())
        for name, by_kind in found
    )
    fewer = [
        _clearly_less(entries, variants.entries(name))
        for name, by_kind in found
        for entries in by_kind.values()
        if name != "identity"
    ]
    return Claim(
        claim="the algorithms do better where interests are not uniform (fourth conclusion)",
        measured=f"entries at x = {variants.load:,} with advertisements and intervals, uniform and otherwise: {listed}",
        verdict=_verdict(*fewer),
        reason="less is what is less by two standard errors; identity-based routing sees no two equal filters here",
    )


def _half(evidence: Evidence) -> Claim:
    load = evidence.advertised_load("merging", "identity")
    measured = evidence.ratio("merging", "identity", load)

    def share(form: str, other: str, x: int) -> float:
        exact = evidence.exact_entries
        return exact("merging", False, form, x) / exact("identity", False, other, x)

    xs = (PAPERS_LARGEST, LARGE)
    readings = {
        "intervals under both": [share(INTERVAL, INTERVAL, x) for x in xs],
        "intervals merged, stocks under identity": [share(INTERVAL, EQUALITY, x) for x in xs],
        "stocks under both": [share(EQUALITY, EQUALITY, x) for x in xs],
    }
    listed = "; ".join(f"{name} {small:.3g} and {large:.3g}" for name, (small, large) in readings.items())
    return Claim(
        claim="merging needs down to 50 % of the entries of identity-based routing (fifth conclusion)",
        measured=f"the share is {measured} at x = {load:,} with advertisements and intervals under both",
        exact=f"{evidence.exact_ratio('merging', 'identity', True, load):.4g} there; without advertisements at "
        f"x = {xs[0]:,} and {xs[1]:,}: {listed}",
        verdict=_verdict(*(abs(small - 0.5) < 0.1 for small, _ in readings.values())),
        reason="one half is what intervals under both give at the largest load of the paper, and no bound: with more "
        "subscriptions the share goes to 0",
    )


def _complexity(evidence: Evidence) -> Claim:
    def said(form: str) -> str:
        load = max(set(evidence.loads("identity", True, form)) & set(evidence.loads("merging", True, form)))
        return f"{form} at x = {load:,}: " + ", ".join(
            f"{name} {evidence.entries(name, True, form, load)} with {evidence.complexity(name, True, form, load)}"
            for name in ("identity", "covering", "merging")
            if load in evidence.loads(name, True, form)
        )

    return Claim(
        claim="merging leaves entries that are fewer and say as much in all",
        measured=f"entries with advertisements, and values and intervals in each; {said(EQUALITY)}; {said(INTERVAL)}",
        exact="a set of stocks has as many values as there are entries under identity; intervals that meet are one",
        verdict=_verdict(evidence.says_as_much(EQUALITY), evidence.says_as_much(INTERVAL)),
        reason="the number of entries alone tells neither memory nor bytes: one entry for each link holds all stocks "
        "that are wanted behind it, but intervals do become fewer",
    )


def _imperfect(variants: Variants) -> Claim:
    found = {tolerance: variants.entries("merging", tolerance=tolerance) for tolerance in (0.0, 0.1, 0.3, 0.6)}
    listed = ", ".join(f"{entries} with {tolerance:.0%}" for tolerance, entries in found.items())
    means = [entries.mean for entries in found.values()]
    return Claim(
        claim="imperfect merging saves more entries the more unwanted events it lets in",
        measured=f"entries at x = {variants.load:,} with advertisements and intervals, by tolerance: {listed}",
        verdict=_verdict(*(one >= other for one, other in pairwise(means)), means[0] > means[-1]),
    )


def _producers(variants: Variants) -> Claim:
    root, one, five = (variants.entries("covering", producers=count) for count in (0, 1, 5))
    return Claim(
        claim="the mean path, and with it the number of entries, is least with the producer at the root router",
        measured=f"entries under covering at x = {variants.load:,}: {root} with one at the root, {one} with one at a "
        f"uniform local broker, {five} with five there",
        verdict=_verdict(root.mean < one.mean, one.mean < five.mean),
    )
