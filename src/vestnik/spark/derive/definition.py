"""What candles, rates and triggers are: slowly, for the readings of a whole history, which may come in any order.

What is found is given once the watermark has reached it, the end of a window or the time at which a trigger fires.
The watermark is the latest time of all readings, in whole milliseconds, less a delay. With no delay given (None), all
is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from vestnik.spark.derive.series import Candle, Firing, Rate, Reading
from vestnik.spark.derive.triggers import MICROS_IN_MILLI, Relative, Trigger


def watermark(readings: Iterable[Reading], delay: int) -> int:
    """In microseconds; `delay` is in milliseconds."""
    latest = max((reading.time for reading in readings), default=0)
    return (latest // MICROS_IN_MILLI - delay) * MICROS_IN_MILLI


def candles(readings: Sequence[Reading], window: int, delay: int | None) -> list[Candle]:
    """Of windows of so many milliseconds, counted from 1970 on, in which a key has readings."""
    found = []
    for (key, start, end), some in _windows(readings, window, delay).items():
        values = [reading.value for reading in sorted(some)]
        volumes = [reading.volume for reading in some if reading.volume is not None]
        volume = sum(volumes) if volumes else None
        found.append(Candle(key, start, end, values[0], max(values), min(values), values[-1], len(values), volume))
    return sorted(found)


def rates(readings: Sequence[Reading], window: int, delay: int | None) -> list[Rate]:
    """Of windows in which a key has readings."""
    return sorted(Rate(*place, len(some)) for place, some in _windows(readings, window, delay).items())


def firings(trigger: Trigger, readings: Sequence[Reading], delay: int | None) -> list[Firing]:
    """Where the readings of each key, in order, fire the trigger.

    A threshold compares each with the one before it: so it fires again only after the value was back.

    A rise or fall compares each with those at most the interval before it, from the one on at which it fired last.
    The base is the lowest (for a fall, highest) of them, of equals the latest. Values that are not above 0 are none.
    """
    found: list[Firing] = []
    last = None if delay is None else watermark(readings, delay)
    for key in sorted({reading.key for reading in readings}):
        series = sorted(reading for reading in readings if reading.key == key)
        since = 0
        for at, reading in enumerate(series):
            base = _base(trigger, series[since:at], reading)
            if base is not None and trigger.holds(base.value, reading.value):
                since = at if isinstance(trigger, Relative) else 0
                if last is None or reading.time <= last:
                    found.append(Firing(reading, base))
    return found


def _base(trigger: Trigger, earlier: Sequence[Reading], reading: Reading) -> Reading | None:
    if not isinstance(trigger, Relative):
        return earlier[-1] if earlier else None
    near = [one for one in earlier if one.value > 0 and reading.time - one.time <= trigger.micros]
    if not near:
        return None
    values = [one.value for one in near]
    extreme = min(values) if trigger.name == "rise" else max(values)
    return [one for one in near if one.value == extreme][-1]


def _windows(readings: Sequence[Reading], window: int, delay: int | None) -> dict[tuple[str, int, int], list[Reading]]:
    """The readings by key, start and end of their window."""
    length = window * MICROS_IN_MILLI
    last = None if delay is None else watermark(readings, delay)
    found: dict[tuple[str, int, int], list[Reading]] = defaultdict(list)
    for reading in readings:
        start = reading.time - reading.time % length
        if last is None or start + length <= last:
            found[reading.key, start, start + length].append(reading)
    return found
