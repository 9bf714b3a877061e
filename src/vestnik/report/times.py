"""Times on the axes of figures: which bins they are counted in, and how they are written. All are in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

MICROS: Final = 1_000_000
MINUTE, HOUR, DAY = 60 * MICROS, 3_600 * MICROS, 86_400 * MICROS
WIDTHS: Final = (
    *(count * 10**power for power in range(6) for count in (1, 2, 5)),
    *(count * MICROS for count in (1, 2, 5, 10, 15, 30)),
    *(count * MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * HOUR for count in (1, 2, 3, 6, 12)),
    *(count * DAY for count in (1, 2, 7, 14, 28, 91, 182, 365)),
)
"""Microseconds of bins that people have a name for."""
UNITS: Final = ((DAY, "day"), (HOUR, "h"), (MINUTE, "min"), (MICROS, "s"), (1_000, "ms"), (1, "us"))


def bin_width(first: int, last: int, most: int) -> int:
    """Return the narrowest width, in microseconds, of which at most `most` bins have all from `first` to `last`.

    Bins begin at multiples of their width, counted from 1970.
    """
    fitting = (width for width in WIDTHS if last // width - first // width < most)
    return next(fitting, -(-(last - first + 1) // max(most - 1, 1)))


def marks(first: float, last: float, most: int) -> list[float]:
    """Return round times, in seconds, at most `most`, from `first` to `last`; `first` if there are none."""
    begin, end = round(first * MICROS), round(last * MICROS)
    step = bin_width(begin, end, most)
    found = range(-(-begin // step) * step, end + 1, step)
    return [at / MICROS for at in found] or [first]


def duration(micros: int) -> str:
    """Write a duration in the largest unit of which it is a whole number: 15 s, 2 h, 1 day, 7 days."""
    size, name = next(unit for unit in UNITS if micros % unit[0] == 0)
    count = micros // size
    return f"{count:,} {name}s" if name == "day" and count != 1 else f"{count:,} {name}"


def clock_format(first: float, last: float) -> str:
    """Return how to write the times from `first` to `last`, in seconds: with the date if they are not of one day."""
    length = last - first
    if _date(first)[:4] != _date(last)[:4]:
        return "%Y-%m-%d"
    if _date(first) != _date(last):
        return "%m-%d" if length > 8 * DAY / MICROS else "%m-%d %H:%M"
    if length < 1:
        return "%H:%M:%S.%f"
    return "%H:%M" if length >= 600 else "%H:%M:%S"


def dates(first: float, last: float) -> str:
    """Write the date of two times, or both dates if there are two."""
    begin, end = _date(first), _date(last)
    return f"{begin}, UTC" if begin == end else f"{begin} to {end}, UTC"


def clock(seconds: float, format: str) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(format)


def _date(seconds: float) -> str:
    return clock(seconds, "%Y-%m-%d")
