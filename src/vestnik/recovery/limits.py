"""Bounds on what a broker remembers, and on how long it waits for a reader."""

from __future__ import annotations

from typing import Final, NamedTuple

REPEAT_WINDOW: Final = 100_000
"""Events among which a repeat at another broker is recognised, unless told otherwise."""
REPEAT_WINDOW_AGE: Final = 600.0
"""Seconds for which it is recognised, unless told otherwise."""
STALLED: Final = 5.0
"""Seconds without progress after which a reader is not waited for, unless told otherwise."""

IN_FLIGHT: Final = 256 * 1024 * 1024
"""Bytes in flight to all readers together, unless told otherwise."""


class RecoveryLimits(NamedTuple):
    """A repeat is recognised among the last `repeat_window` events, and for `repeat_window_age` seconds.

    Publishers do not wait for a reader that has read nothing for `stalled` seconds. At most `in_flight` bytes are in
    flight to all readers together, or a share for each reader.
    """

    repeat_window: int = REPEAT_WINDOW
    repeat_window_age: float = REPEAT_WINDOW_AGE
    stalled: float = STALLED
    in_flight: int = IN_FLIGHT
