"""What came of a run, as a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from html import escape
from math import floor, log10
from typing import TYPE_CHECKING

import msgspec

from vestnik.report import page as parts
from vestnik.report.drawing import figure
from vestnik.report.page import heading, page, quiet, table
from vestnik.report.times import MICROS, clock, clock_format, dates, duration, marks
from vestnik.spark.temporary import temporary
from vestnik.spark.whole.performing import Row, Whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RISING, FALLING = "#2c8a3c", "#c0392b"
BAR = "#1f5f9f"
SHOWN = 15
"""Bars of a figure."""
MARKS = 8
"""Times on an axis."""
LONGEST = 40
"""Letters of a name in a figure."""
MISSING = (
    "Positions of the journals of brokers, since the lake was begun: dropped by retention before they were read, "
    "damaged, no event, or lost as another journal took the place of one (how many is not known then). "
    "The lake's quarantine has a row for each stretch."
)
PANELS = 4
"""Keys whose candles are drawn."""


def render(whole: Whole, title: str) -> str:
    """The page."""
    sections = {"stages": _stages(whole), "events": _events(whole)}
    names = {stage.stage.partition("-")[0] for stage in whole.stages}
    if "match" in names:
        sections["subscriptions"] = _subscriptions(whole)
    if names & {"candles", "triggers", "rates"}:
        sections["derived"] = _derived(whole)
    if "verify" in names:
        sections["delivery"] = _delivery(whole)
    return page(title, sections)


def _stages(whole: Whole) -> str:
    rows = [msgspec.to_builtins(stage) for stage in whole.stages]
    below = "Left out is what could not be read, was lost before it was read, or lacks a key, a value or a time."
    return heading("Stages") + table("what was done", rows, below) + _missing(whole)


def _missing(whole: Whole) -> str:
    """Say which positions the lake does not have; those that this run found lost first."""
    if not whole.missing:
        return ""
    found = "".join(f"<p>{escape(str(loss))}</p>" for loss in whole.losses)
    said = f'<article class="fails"><h3>Lost since the last run</h3>{found}</article>\n' if found else ""
    return said + table("not in the lake", whole.missing, MISSING)


def _events(whole: Whole) -> str:
    shown = ""
    if whole.over_time:
        title = f"Events by type: how many in each {_bin(whole.over_time)}, {_dates(whole.over_time)}"
        shown = _drawn(title, lambda panel: _lines(panel, whole.over_time))
    return heading("Events") + shown + table("types", whole.types, "The types of which there is most.")


def _subscriptions(whole: Whole) -> str:
    rows = whole.subscriptions
    shown = ""
    if rows:
        shown = _drawn("The subscriptions that most events satisfy", lambda panel: _bars(panel, rows))
    below = f"{whole.unwanted:,} subscriptions are satisfied by no event."
    return heading("Subscriptions") + shown + table("top subscriptions", rows, below)


def _derived(whole: Whole) -> str:
    series: dict[tuple[str, str], list[Row]] = {}
    for row in whole.candles:
        series.setdefault((row["stage"], row["key"]), []).append(row)
    most = sorted(series, key=lambda one: sum(row["count"] for row in series[one]), reverse=True)[:PANELS]
    several = len({stage for stage, _ in series}) > 1
    titles = {one: _candle_title(*one, series[one], several=several) for one in most}
    shown = "".join(_drawn(title, partial(_candles, rows=series[one])) for one, title in titles.items())
    fired = table("triggers", whole.triggers, "The last that fired.") if whole.triggers else ""
    return heading("Derived") + (shown or quiet("There are no candles.")) + fired


def _candle_title(stage: str, key: str, rows: list[Row], *, several: bool) -> str:
    times = [_seconds(row["start"]) for row in rows]
    of = f" ({stage})" if several else ""
    return f"Candles of {key}{of}, each of {_window(rows)}, {dates(times[0], times[-1])}"


def _delivery(whole: Whole) -> str:
    found = sum(stage.made for stage in whole.stages if stage.stage == "verify")
    verdict = f"{found:,} violations" if found > 1 else "1 violation" if found else "nothing is wrong"
    said = f'<article class="{"fails" if found else "holds"}"><h3>{escape(verdict)}</h3></article>\n'
    if whole.violations:
        said += table("violations", whole.violations, "The records that show each are in the table violations.")
    if whole.latency:
        said += _drawn("Seconds from publication to client", lambda panel: _latency(panel, whole.latency))
        said += table("latency", whole.latency, "In seconds: of all, at each broker, and of each client.")
    if whole.useless:
        said += table("links", whole.useless, "Copies that nobody behind the link needed are useless.")
    return heading("Delivery") + said


# --- figures ---


def _drawn(title: str, draw: Callable[[Axes], None]) -> str:
    with temporary("vestnik-figure-") as folder:
        path = folder / "figure.png"
        with figure(path, width=10.0, height=3.6) as (panel,):
            draw(panel)
        return parts.figure(path, title)


def _lines(panel: Axes, rows: list[Row]) -> None:
    types = list(dict.fromkeys(row["type"] for row in rows))
    lines = []
    for type in types:
        own = [row for row in rows if row["type"] == type]
        lines += panel.plot([row["at"] for row in own], [row["events"] for row in own], ".-")
    first, last = rows[0]["at"], rows[-1]["at"]
    times, format = marks(first, last, MARKS), clock_format(first, last)
    panel.set_xticks(times, [clock(time, format) for time in times], fontsize=8)
    panel.set(xlabel=f"start of each {_bin(rows)}, {_dates(rows)}")
    panel.set(ylabel=f"events in each {_bin(rows)}", ylim=(0, None))
    panel.legend(lines, list(map(_short, types)), fontsize=8, frameon=False)


def _bars(panel: Axes, rows: list[Row]) -> None:
    shown = rows[:SHOWN][::-1]
    panel.barh(range(len(shown)), [row["events"] for row in shown], color=BAR)
    panel.set_yticks(range(len(shown)), [_short(row["subscription"]) for row in shown])
    panel.set(xlabel="events")


def _short(name: str) -> str:
    """A name that leaves room for a figure beside it."""
    line = " ".join(name.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def _candles(panel: Axes, rows: list[Row]) -> None:
    """A line from the lowest to the highest, and a bar from the first to the last."""
    for place, row in enumerate(rows):
        colour = RISING if row["close"] >= row["open"] else FALLING
        panel.plot([place, place], [row["low"], row["high"]], color=colour, linewidth=0.8)
        panel.bar(place, row["close"] - row["open"], 0.7, row["open"], color=colour, edgecolor=colour)
    step = -(-len(rows) // MARKS)
    times = [_seconds(row["start"]) for row in rows]
    format = clock_format(times[0], times[-1])
    panel.set_xticks(range(0, len(rows), step), [clock(time, format) for time in times[::step]], fontsize=8)
    panel.set(xlabel=f"start of each {_window(rows)}, {dates(times[0], times[-1])}")


def _bin(rows: list[Row]) -> str:
    return duration(round(rows[0]["seconds"] * MICROS))


def _dates(rows: list[Row]) -> str:
    return dates(rows[0]["at"], rows[-1]["at"])


def _window(rows: list[Row]) -> str:
    return duration(round((_seconds(rows[0]["end"]) - _seconds(rows[0]["start"])) * MICROS))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _latency(panel: Axes, rows: list[Row]) -> None:
    shown = [row for row in rows if row["scope"] != "client"][:SHOWN]
    ranks = ("p50", "p90", "p99", "max")
    for number, rank in enumerate(ranks):
        places = [place + (number - 1.5) * 0.2 for place in range(len(shown))]
        panel.bar(places, [row[rank] for row in shown], 0.18, label=rank)
    panel.set_xticks(range(len(shown)), [_short(row["name"]) or "all" for row in shown])
    panel.set(ylabel="seconds")
    above = [row[rank] for row in shown for rank in ranks if row[rank] > 0]
    if above:  # clocks that do not agree have some below
        panel.set(yscale="log", ylim=(10 ** floor(log10(min(above))), None))
    panel.legend(fontsize=8, frameon=False)
