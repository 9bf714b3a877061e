"""How long: `1m`, `10 seconds`, `250ms`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from vestnik.errors import WrongValue

_UNITS: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_TEXT: Final = re.compile(r"\s*([0-9]{1,12})\s*([A-Za-z]+)\s*", re.ASCII)
LONGEST: Final = 366 * _UNITS["day"]


def millis(duration: str | timedelta, least: int = 0) -> int:
    """The milliseconds of a duration, `least` or more; WrongValue where it is none."""
    found = duration // timedelta(milliseconds=1) if isinstance(duration, timedelta) else _read(duration)
    if found is None or not least <= found <= LONGEST:
        raise WrongValue(f"a duration is such as 1m, 10s or 250ms, from {least} ms to 366 days", str(duration))
    return found


def _read(text: str) -> int | None:
    found = _TEXT.fullmatch(text)
    unit = _UNITS.get(found[2].lower()) if found else None
    return int(found[1]) * unit if found and unit else None
