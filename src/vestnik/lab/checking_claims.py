"""What becomes of each claim of the paper on the checking of notifications. Every verdict follows from the tables."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from vestnik.lab.checking import DELTAS
from vestnik.lab.checking_printed import PRINTED
from vestnik.lab.checking_runs import LEVEL
from vestnik.lab.checking_weather_claims import judge_weather
from vestnik.lab.losses import RATE
from vestnik.lab.results import Claim, Row, verdict
from vestnik.lab.statistics import WIDE, Estimate, holm, p_value
from vestnik.report.numbers import number


def judge(tables: dict[str, list[Row]]) -> list[Claim]:
    rows = tables["checking"]
    poisson = [row for row in rows if row["law"] == "poisson"]
    table_2 = [row for row in poisson if row["delta"] in (0, 20)]
    table_3 = [row for row in poisson if row["delta"]]
    return [
        _case(tables["checking-cases"], 1, "t_i = t_0 + δ (i - 1)"),
        _case(tables["checking-cases"], 2, "t_i = t_0 ((α k + 1) / (k + 1))^(i - 1)"),
        _linear(tables["checking-cases"]),
        _peaks(rows),
        _extremes(table_2),
        _ratios(table_2, tables["checking-ranks"]),
        _deltas(table_3),
        _best_delta(table_3),
        _quotients(),
        _impossible(tables["checking-printed"]),
        _single_runs(tables["checking-printed"]),
        _alike(rows),
        *judge_weather(tables),
    ]


# --- the model ---


def _case(cases: list[Row], case: int, formula: str) -> Claim:
    rows = [row for row in cases if row["case"] == case]
    right = all(_same(row["printed"], row["by_rule"]) for row in rows)
    late = all(_same(row["printed_for_next"], row["by_rule"]) for row in rows)
    first = rows[0]
    return Claim(
        claim=f"Case {case}, {'the same losses k' if first['k'] else 'no losses'} in each interval: {formula}",
        measured=f"rule (3) gives t_1 = {number(first['by_rule'])} from t_0 = 20 and k_0 = {first['k']}, the formula "
        f"{number(first['printed'])}; {sum(_same(row['printed'], row['by_rule']) for row in rows)} of {len(rows)} "
        "intervals are the same",
        verdict=verdict(right),
        reason="it is one step behind: with i in place of i - 1 it is right, or where t_1 = t_0" if late else "",
    )


def _linear(cases: list[Row]) -> Claim:
    by_rule = [row["by_rule"] for row in cases if row["k"] == 1]
    steps = [one - other for one, other in pairwise(by_rule)]
    shares = [other / one for one, other in pairwise(by_rule)]
    return Claim(
        claim="The interval shrinks linearly, as formula (4) shows",
        measured=f"where one is lost in each interval, it is {', '.join(map(number, by_rule))} seconds: shorter by "
        f"{number(steps[0])} at first and by {number(steps[-1])} at last, each time to {shares[0]:.0%}",
        verdict=verdict(_same(steps[0], steps[-1])),
        reason="formula (4) is geometric",
    )


def _peaks(rows: list[Row]) -> Claim:
    adaptive = {row["law"]: row for row in rows if row["delta"] == 20}
    poisson = adaptive.pop("poisson")
    most = poisson["longest"] + poisson["longest_ci"]
    higher = [row["longest"] - row["longest_ci"] > most for row in adaptive.values()]
    said = ", ".join(f"{_with(row, 'longest')} s ({law})" for law, row in adaptive.items())
    return Claim(
        claim="Peaks of the interval are higher with uniform losses than with Poisson losses (figure 2)",
        measured=f"the longest of 100 intervals is {said}, {_with(poisson, 'longest')} s (poisson), in the mean",
        verdict=verdict(*higher),
        reason="how a number between 0 and t / 10 becomes a whole one decides: the paper does not say",
    )


# --- table 2 ---


def _extremes(table_2: list[Row]) -> Claim:
    by_name = {row["strategy"]: row for row in table_2}
    halving, adaptive = by_name["multiplicative decrease"], by_name["adaptive"]
    others = [row for name, row in by_name.items() if name not in (halving["strategy"], adaptive["strategy"])]
    said = ", ".join(f"{name} ({_with(row, 'k_avg')}, {_with(row, 't_avg')})" for name, row in by_name.items())
    return Claim(
        claim="Multiplicative decrease loses least between two checks and checks most; adaptive checks least",
        measured=f"(k_avg, t_avg) are {said}",
        exact=", ".join(
            f"{row['strategy']} ({number(row['exact_k_avg'])}, {number(row['exact_t_avg'])})"
            for row in table_2
            if row["exact_k_avg"] is not None
        ),
        verdict=verdict(
            all(halving["k_avg"] < row["k_avg"] for row in (*others, adaptive)),
            all(halving["t_avg"] < row["t_avg"] for row in (*others, adaptive)),
            all(adaptive["t_avg"] > row["t_avg"] for row in others),
        ),
    )


def _ratios(table_2: list[Row], ranks: list[Row]) -> Claim:
    adaptive = next(row for row in table_2 if row["strategy"] == "adaptive")
    better = _is_best(adaptive, table_2)
    first = ", ".join(f"{row['least']:.0%} {row['strategy']}" for row in ranks if row["quantity"] == "ratio")
    first_avg = ", ".join(f"{row['least']:.0%} {row['strategy']}" for row in ranks if row["quantity"] == "ratio_avg")
    return Claim(
        claim="By λ = k_avg / t_avg and by λ_avg the adaptive strategy is the best of four (table 2)",
        measured=f"λ is {_all(table_2, 'ratio')}, λ_avg {_all(table_2, 'ratio_avg')}; of single runs as the paper's, λ "
        f"is least with {first}, λ_avg with {first_avg}",
        exact=f"{RATE:g} for every strategy, since E[k | t] = {RATE:g} t",
        verdict=verdict(*better),
        reason="" if any(better) else "both rows rank noise",
    )


def _is_best(one: Row, rows: list[Row]) -> list[bool]:
    """Whether a row has the least ratio, of each kind, and ratios do differ."""
    differ = bool(_differ(rows))
    return [differ and one[name] == min(row[name] for row in rows) for name in ("ratio", "ratio_avg")]


def _differ(rows: list[Row]) -> list[int]:
    """The ratios, of both kinds, that are not the rate of losses."""
    return holm(
        [
            p_value(Estimate(row[name], row[f"{name}_ci"] / WIDE, row["runs"]), RATE)
            for row in rows
            for name in ("ratio", "ratio_avg")
        ],
        LEVEL,
    )


# --- table 3, and both tables as they are printed ---


def _deltas(table_3: list[Row]) -> Claim:
    ordered = sorted(table_3, key=lambda row: row["delta"])
    pairs = list(pairwise(ordered))
    return Claim(
        claim="A small δ loses less between two checks, a large one checks less (table 3)",
        measured=f"δ = {', '.join(map(str, DELTAS))}: k_avg {_all(ordered, 'k_avg')}, t_avg {_all(ordered, 't_avg')}",
        verdict=verdict(*(one[name] < other[name] for one, other in pairs for name in ("k_avg", "t_avg"))),
    )


def _best_delta(table_3: list[Row]) -> Claim:
    better = _is_best(next(row for row in table_3 if row["delta"] == 20), table_3)
    return Claim(
        claim="δ = 20 is the best (table 3)",
        measured=f"λ is {_all(table_3, 'ratio')}, λ_avg {_all(table_3, 'ratio_avg')} for δ = "
        f"{', '.join(map(str, DELTAS))}",
        exact=f"{RATE:g} for every δ",
        verdict=verdict(*better),
        reason="" if any(better) else "the rows by which it was chosen rank noise; k_avg and t_avg only trade",
    )


def _quotients() -> Claim:
    wrong = [column for column in PRINTED if not column.is_consistent]
    said = "; ".join(
        f"table {c.table}, {_called(c.strategy, c.delta)}: {c.k_avg} / {c.t_avg} = {c.quotient:.4f}, printed {c.ratio}"
        for c in wrong
    )
    table_2 = [column for column in PRINTED if column.table == 2]
    best = min(table_2, key=lambda column: column.quotient)
    return Claim(
        claim="The printed λ is the printed k_avg / t_avg, up to rounding",
        measured=f"{len(PRINTED) - len(wrong)} of {len(PRINTED)} are; {said}",
        verdict=verdict(*(column.is_consistent for column in PRINTED)),
        reason=f"by its own k_avg and t_avg, {best.strategy} has the least λ of table 2, {best.quotient:.4f}",
    )


def _impossible(printed: list[Row]) -> Claim:
    rows = [row for row in printed if (row["table"], row["quantity"]) == (3, "k_avg")]
    columns = [column for column in PRINTED if column.table == 3]
    wrong = [
        (row, column) for row, column in zip(rows, columns, strict=True) if not (row["agrees"] or column.is_consistent)
    ]
    said = "; ".join(
        f"δ = {row['delta']}: printed {column.k_avg}, runs come to {number(row['mean'])} with a spread of "
        f"{number(row['spread'])}, and the printed λ and t_avg to {float(column.ratio) * float(column.t_avg):.2f}"
        for row, column in wrong
    )
    copied = [column.k_avg for column in PRINTED if column.table == 2][-len(wrong) or None :]
    same = [column.k_avg for _, column in wrong] == copied
    return Claim(
        claim="k_avg is 1.06, 1.14, 0.89, 1.23 for δ = 10, 20, 40, 60 (table 3)",
        measured=f"{len(wrong)} of {len(rows)} cannot be right; {said}" if wrong else "all may be right",
        verdict=verdict(*(row not in [bad for bad, _ in wrong] for row in rows)),
        reason=f"{' and '.join(copied)} are the last k_avg of table 2, for other strategies" if same else "",
    )


def _single_runs(printed: list[Row]) -> Claim:
    apart = [row for row in printed if not row["agrees"]]
    said = ", ".join(
        f"{row['quantity']} {row['printed']:g} of {_called(row['strategy'], row['delta'])} in table {row['table']} "
        f"({number(row['mean'])} ± {number(row['spread'])})"
        for row in apart
    )
    return Claim(
        claim="Tables 2 and 3 are what one run of 100 steps comes to",
        measured=f"{len(printed) - len(apart)} of {len(printed)} numbers are within what single runs give"
        + (f"; not {said}" if apart else ""),
        verdict=verdict(not apart, len(apart) < len(printed)),
        reason=f"Holm's procedure at {LEVEL:.0%} for all numbers together",
    )


def _alike(rows: list[Row]) -> Claim:
    uniform = [row for row in rows if row["law"] != "poisson" and row["strategy"] in ("constant", "adaptive")]
    uniform = [row for row in uniform if row["delta"] in (0, 20)]
    said = ", ".join(f"{row['strategy']} {_with(row, 'ratio')} ({row['law']})" for row in uniform)
    return Claim(
        claim="With uniform losses, too, one notification is lost every 20 s",
        measured=f"k_avg / t_avg is {said}",
        exact=", ".join(f"constant {row['exact_ratio']:g} ({row['law']})" for row in uniform if row["exact_ratio"]),
        verdict=verdict(*(abs(row["ratio"] - RATE) <= 2 * row["ratio_ci"] for row in uniform)),
        reason="the ratio depends on how k becomes a whole number, and then on the strategy, too",
    )


# --- words ---


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other))


def _with(row: Row, name: str) -> str:
    return f"{number(row[name])} ± {row[f'{name}_ci']:.1g}" if row[f"{name}_ci"] else number(row[name])


def _all(rows: Iterable[Row], name: str) -> str:
    return ", ".join(_with(row, name) for row in rows)


def _called(strategy: str, delta: int) -> str:
    return f"{strategy} with δ = {delta}" if delta else strategy
