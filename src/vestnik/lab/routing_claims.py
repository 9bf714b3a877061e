"""What the paper says of entries by formulas and figures, held against what was measured and what is exact."""

from __future__ import annotations

from itertools import pairwise

from vestnik.lab.agreement import LEVEL
from vestnik.lab.results import Claim, verdict
from vestnik.lab.routing_evidence import EQUALITY, GRID, INTERVAL, LARGE, LINKS, PAPER, PAPERS_LARGEST, Evidence
from vestnik.report.numbers import number


def judge(evidence: Evidence) -> list[Claim]:
    return [
        _agreement(evidence),
        _simple(evidence),
        _identity(evidence),
        _merging(evidence),
        _lost_limit(evidence),
        _covering_or_merging(evidence),
        _most_helped(evidence),
        _complexity(evidence),
    ]


def _agreement(evidence: Evidence) -> Claim:
    cells, wrong = evidence.cells, evidence.disagreeing
    loads = {cell.subscriptions for cell in cells}
    return Claim(
        claim="entries and messages are as many as is expected exactly",
        measured=f"{len(cells) - len(wrong)} of {len(cells)} cells agree at the level {LEVEL:.0%} for all together, "
        f"x from {min(loads):,} to {max(loads):,}, {min(cell.runs for cell in cells)} runs or more in each",
        verdict=verdict(not wrong),
        reason="; ".join(map(str, wrong)),
    )


def _simple(evidence: Evidence) -> Claim:
    load = evidence.common_load(EQUALITY, "simple")
    entries, factor = evidence.entries("simple", False, EQUALITY, load), evidence.factor("simple", EQUALITY, load)
    exact = LINKS / PAPER.mean_path
    return Claim(
        claim="simple routing needs (|V| - 1) x entries, advertisements reduce them by the factor 28.4 at every load",
        measured=f"{entries} entries at x = {load:,}; factor {factor}",
        exact=f"{number(LINKS * load)} entries; factor {exact:.4g}, for a mean path of {PAPER.mean_path:.4g} links",
        verdict=verdict(evidence.agrees("simple", EQUALITY, load), round(exact, 1) == 28.4),
    )


def _identity(evidence: Evidence) -> Claim:
    load = evidence.common_load(EQUALITY, "identity")
    measured = evidence.entries("identity", False, EQUALITY, load)
    exact, limit = evidence.exact_entries("identity", False, EQUALITY, load), PAPER.limit("identity", False, EQUALITY)
    reached = evidence.exact_entries("identity", False, EQUALITY, PAPERS_LARGEST) / limit
    far = evidence.exact_entries("identity", False, EQUALITY, LARGE) / limit
    return Claim(
        claim="under identity-based routing the entries approach 212,000",
        measured=f"{measured} entries at x = {load:,}",
        exact=f"{number(exact)} at that load; the limit is {number(limit)}",
        verdict=verdict(limit == 212_000, evidence.agrees("identity", EQUALITY, load)),
        reason=f"at x = {PAPERS_LARGEST:,}, the most that the paper looks at, {reached:.0%} of the limit are reached, "
        f"at x = {LARGE:,} {far:.1%}",
    )


def _merging(evidence: Evidence) -> Claim:
    load = evidence.common_load(EQUALITY, "merging")
    sets = evidence.entries("merging", False, EQUALITY, load)
    other = evidence.common_load(INTERVAL, "merging")
    per_stock = evidence.entries("merging", False, INTERVAL, other)
    limits = [PAPER.limit("merging", False, form) for form in (EQUALITY, INTERVAL)]
    return Claim(
        claim="under merging-based routing there are 2 (|V| - 1) = 212 entries",
        measured=f"{sets} at x = {load:,} for stock = s; {per_stock} at x = {other:,} with price intervals",
        exact=f"{number(evidence.exact_entries('merging', False, EQUALITY, load))} and "
        f"{number(evidence.exact_entries('merging', False, INTERVAL, other))}; the limits are "
        f"{number(limits[0])} and {number(limits[1])}",
        verdict=verdict(*(limit == 212 for limit in limits)),
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
        verdict=verdict(limits[0] == LINKS, limits[1] == LINKS * PAPER.stocks),
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
        verdict=verdict(all(one < other for one, other in pairwise(ratios))),
        reason="covering has no limit: of n intervals of a stock 1 + 1/2 + ... + 1/n are maximal, as many as ln x",
    )


def _most_helped(evidence: Evidence) -> Claim:
    def factors(form: str, load: int) -> dict[str, float]:
        return {name: evidence.exact_factor(name, form, load) for name in ("identity", "covering", "merging")}

    load = evidence.common_load(INTERVAL, "identity", "covering", "merging")
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
        verdict=verdict(*facts),
        reason="the more a strategy saves by itself, the less is left to save" if not any(facts) else "",
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
        verdict=verdict(evidence.says_as_much(EQUALITY), evidence.says_as_much(INTERVAL)),
        reason="the number of entries alone tells neither memory nor bytes: one entry for each link holds all stocks "
        "that are wanted behind it, but intervals do become fewer",
    )
