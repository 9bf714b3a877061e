"""Instants: whole microseconds since 1970-01-01T00:00:00Z, and their RFC 3339 text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
MICROS: Final = 1_000_000
"""In a second."""
_DAY = 86_400 * MICROS

FOREVER: Final = float("inf")
"""Seconds of what does not end, and the time that does not come."""

FIRST = (datetime.min - _EPOCH) // _MICROSECOND
"""0001-01-01T00:00:00Z, the first instant that has a text."""
LAST = (datetime.max - _EPOCH) // _MICROSECOND
"""9999-12-31T23:59:59.999999Z, the last one."""

_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_RFC3339 = re.compile(
    rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt]{_CLOCK}:(?:[0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|[+-]{_CLOCK})"
)


def parse_rfc3339(text: str) -> int:
    """The instant that `text` names; ValueError with the reason when it names none.

    Digits of the fraction beyond microseconds are cut off. A leap second, 23:59:60 UTC, is the second after it;
    second 60 of any other minute is refused.
    """
    if not _RFC3339.fullmatch(text):
        raise ValueError("not an RFC 3339 time such as 2024-05-01T12:30:00Z")
    if text[17:19] == "60":
        return _after_leap_second(f"{text[:17]}59{text[19:]}")
    return _within((datetime.fromisoformat(text.upper()) - _EPOCH_UTC) // _MICROSECOND)


def format_rfc3339(micros: int) -> str:
    """UTC with `Z`, and six digits of fraction or none; `parse_rfc3339` gives `micros` back."""
    return (_EPOCH + timedelta(microseconds=_within(micros))).isoformat() + "Z"


def to_micros(instant: datetime | int | str) -> int:
    """The instant given as microseconds, aware datetime or RFC 3339 text; ValueError when it is none of these."""
    if isinstance(instant, str):
        return parse_rfc3339(instant)
    if isinstance(instant, datetime):
        if instant.utcoffset() is None:
            raise ValueError("a datetime needs a time zone")
        return _within((instant - _EPOCH_UTC) // _MICROSECOND)
    if isinstance(instant, int) and not isinstance(instant, bool):
        return _within(int(instant))
    raise ValueError(f"an instant is microseconds, an aware datetime or RFC 3339 text, not {type(instant).__name__}")


def _within(micros: int) -> int:
    if FIRST <= micros <= LAST:
        return micros
    raise ValueError("beyond the years 0001 to 9999")


def _after_leap_second(text: str) -> int:
    """The second after `text`, second 59 of its minute; ValueError unless a day of UTC ends there."""
    micros = parse_rfc3339(text) + MICROS
    if micros % _DAY >= MICROS:
        raise ValueError("second 60 is only at 23:59:60 UTC")
    return _within(micros)
