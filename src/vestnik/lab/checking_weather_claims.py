"""What the strategies of checking are worth: at equal cost, where the rate of losses changes, and in the client."""

from __future__ import annotations

from vestnik.lab.checking_runs import LEVEL
from vestnik.lab.losses import RATE
from vestnik.lab.results import Claim, Row, verdict
from vestnik.lab.statistics import holm
from vestnik.report.numbers import number


def judge_weather(tables: dict[str, list[Row]]) -> list[Claim]:
    storms, clients = tables["checking-storms"], tables["checking-client"]
    return [
        _outperforms([row for row in storms if row["contrast"] == 1]),
        _separates([row for row in storms if row["contrast"] > 1]),
        _same_line(storms),
        _rates_mislead(storms),
        _as_modelled([row for row in clients if row["situation"] != "half lost"]),
        _gaps([row for row in clients if row["situation"] == "half lost"]),
    ]


def _outperforms(steady: list[Row]) -> Claim:
    adaptive = next(row for row in steady if row["strategy"] == "adaptive")
    is_sooner = adaptive["wait_share"] + adaptive["wait_share_ci"] < 1
    return Claim(
        claim="All in all the adaptive strategy outperforms the others, with losses at a steady rate",
        measured=f"it checks every {number(adaptive['t_avg'])} s in the mean, and what is lost waits "
        f"{number(adaptive['wait'])} s to be found; with a constant interval of as many seconds as much is lost "
        f"between two checks, and waits {number(adaptive['constant_wait'])} s. The waits, as shares of those with a "
        f"constant interval and as many checks: {_shares(steady)}",
        exact="k_avg = 0.05 t_avg for all; a loss waits E[t²] / (2 E[t]), which is least where t does not vary",
        verdict=verdict(is_sooner),
        reason="" if is_sooner else "at a steady rate there is nothing to adapt to: it is another point on one line",
    )


def _separates(changing: list[Row]) -> Claim:
    adaptive = [row for row in changing if row["strategy"] == "adaptive"]
    sooner = [row["wait_share"] + row["wait_share_ci"] < 1 for row in adaptive]
    best = min(changing, key=lambda row: row["wait_share"])
    said = "; ".join(f"{_weather(row)}: {_share(row)}" for row in adaptive)
    others = "; ".join(
        f"{name} {number(min(shares))} to {number(max(shares))}"
        for name in dict.fromkeys(row["strategy"] for row in changing if row["strategy"] != "adaptive")
        for shares in [[row["wait_share"] for row in changing if row["strategy"] == name]]
    )
    return Claim(
        claim="Where the rate of losses changes with time, the adaptive strategy differs more from the others",
        measured=f"the wait of what is lost, as a share of that with a constant interval and as many checks, is for "
        f"the adaptive strategy: {said}; for {others}",
        verdict=verdict(*sooner),
        reason=f"it gains where storms are rare and longer than its intervals have grown in the calm: best with "
        f"{_weather(best)}",
    )


def _same_line(storms: list[Row]) -> Claim:
    ratios = [row["ratio"] for row in storms if row["contrast"] > 1]
    near = [abs(ratio - RATE) < 0.1 * RATE for ratio in ratios]
    return Claim(
        claim="With losses that change with time, k_avg / t_avg tells strategies apart",
        measured=f"it is {number(min(ratios))} to {number(max(ratios))} in all weathers and with all strategies",
        exact=f"in the long run {RATE:g}, the mean rate: what is lost by the seconds in which it is",
        verdict=verdict(not all(near)),
        reason="(k_avg, t_avg) are on one line there, too" if all(near) else "",
    )


def _rates_mislead(storms: list[Row]) -> Claim:
    adaptive = [row for row in storms if row["strategy"] == "adaptive"]
    worst = max(adaptive, key=lambda row: row["ratio_avg"])
    is_less = worst["ratio_avg"] <= RATE
    return Claim(
        claim="A small λ_avg, the mean of k / t, is the sign of a good strategy",
        measured=f"with {_weather(worst)} it is {number(worst['ratio_avg'])} for the adaptive strategy, "
        f"{number(worst['ratio_avg'] / RATE)} times the rate of losses, while what is lost waits "
        f"{worst['wait_share']:.0%} as long as with a constant interval",
        verdict=verdict(is_less or worst["wait_share"] >= 1),
        reason="whoever checks often while much is lost, as it should be, has many checks with a large k / t",
    )


def _as_modelled(clients: list[Row]) -> Claim:
    cells = [(row, name) for row in clients for name in ("checks", "found", "wait")]
    apart = holm([row[f"{name}_p"] for row, name in cells], LEVEL)
    equal = [row for row in clients if row["checks"] == row["model_checks"] and row["found"] == row["model_found"]]
    return Claim(
        claim="The client checks as the model does, where no notification arrives but by checks",
        measured=f"{len(cells) - len(apart)} of {len(cells)} means agree; checks and what they found are the same in "
        f"every mean for {len(equal)} of {len(clients)} strategies and weathers",
        verdict=verdict(not apart),
        reason="the client and the model have the same losses; a random strategy draws other intervals",
    )


def _gaps(clients: list[Row]) -> Claim:
    said = "; ".join(
        f"{row['strategy']} {number(row['wait'])} s with {number(row['checks'])} checks and {number(row['gaps'])} "
        f"questions about gaps, {number(row['model_wait'])} s with {number(row['model_checks'])} checks in the model"
        for row in clients
    )
    return Claim(
        claim="Notifications that do arrive spare checks, and show sooner what was lost before them",
        measured=f"in {number(clients[0]['seconds'])} s with half of all lost, losses wait: {said}",
        verdict=verdict(
            *(row["wait"] < row["model_wait"] for row in clients),
            *(row["checks"] < row["model_checks"] for row in clients),
        ),
        reason="numbers have no gaps; a notification that comes is waited from anew",
    )


def _weather(row: Row) -> str:
    if row["contrast"] == 1:
        return "a steady rate"
    return f"storms of {number(row['length'])} s for {row['share']:.0%} of the time"


def _share(row: Row) -> str:
    return f"{row['wait_share']:.2f} ± {row['wait_share_ci']:.1g}"


def _shares(rows: list[Row]) -> str:
    return ", ".join(f"{_share(row)} ({row['strategy']})" for row in rows)
