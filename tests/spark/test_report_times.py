"""Figures of the report say which bins they count in, and of which day a time is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from vestnik.report.times import MICROS, WIDTHS, bin_width, clock_format, dates, duration
from vestnik.spark.whole import Stage, Whole, render
from vestnik.spark.whole.page import _candles, _lines

EVENING = datetime(2026, 11, 16, 23, 10, tzinfo=UTC)


def over(step: timedelta) -> list[dict[str, Any]]:
    times = [(EVENING + place * step).timestamp() for place in range(40)]
    return [{"type": "t", "at": time, "seconds": step.total_seconds(), "events": 1} for time in times]


def candles(step: timedelta) -> list[dict[str, Any]]:
    starts = [EVENING + place * step for place in range(40)]
    prices = {"open": 1.0, "high": 3.0, "low": 0.5, "close": 2.0, "count": 5}
    return [
        {"stage": "candles-1", "key": "ACME", "start": at.isoformat(), "end": (at + step).isoformat(), **prices}
        for at in starts
    ]


def labels(draw: Any, rows: list[dict[str, Any]]) -> tuple[list[str], str, str]:
    drawing = Figure()
    panel = drawing.add_subplot()
    draw(panel, rows)
    drawing.canvas.draw()
    return [text.get_text() for text in panel.get_xticklabels()], panel.get_xlabel(), panel.get_ylabel()


@pytest.mark.parametrize(
    ("step", "name", "days"),
    [
        (timedelta(seconds=15), "15 s", "2026-11-16, UTC"),
        (timedelta(minutes=5), "5 min", "2026-11-16 to 2026-11-17, UTC"),
        (timedelta(hours=3), "3 h", "2026-11-16 to 2026-11-21, UTC"),
        (timedelta(days=2), "2 days", "2026-11-16 to 2027-02-0"),
    ],
)
def test_axes_name_their_bins_and_dates(step: timedelta, name: str, days: str) -> None:
    ticks, below, beside = labels(_lines, over(step))
    assert days in below and beside == f"events in each {name}"
    marks, said, _ = labels(_candles, candles(step))
    assert said.startswith(f"start of each {name}, {days}")
    if "to" in days:
        assert all("-" in text for text in [*ticks, *marks]), "the day of each mark"
    page = render(Whole(stages=[Stage("candles-1", 1, 1, "of", 0, 1.0)], over_time=over(step)), "t")
    assert f"how many in each {name}, {days}" in page
    page = render(Whole(stages=[Stage("candles-1", 1, 1, "of", 0, 1.0)], candles=candles(step)), "t")
    assert f"Candles of ACME, each of {name}, {days}" in page


@given(st.integers(-(10**18), 10**18), st.integers(0, 10**18), st.integers(2, 100))
def test_bins_hold_all_and_are_no_more_than_may_be(first: int, length: int, most: int) -> None:
    width, last = bin_width(first, first + length, most), first + length
    assert last // width - first // width < most
    narrower = [one for one in WIDTHS if one < width]
    assert not narrower or last // narrower[-1] - first // narrower[-1] >= most


@pytest.mark.parametrize(
    ("micros", "said"),
    [(1, "1 us"), (5_000, "5 ms"), (MICROS, "1 s"), (90 * MICROS, "90 s"), (86_400 * MICROS, "1 day")],
)
def test_durations(micros: int, said: str) -> None:
    assert duration(micros) == said


def test_a_moment() -> None:
    at = EVENING.timestamp()
    assert (clock_format(at, at), dates(at, at)) == ("%H:%M:%S.%f", "2026-11-16, UTC")
