"""Instants and their text."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies_events import fewer, instants
from vestnik.model.times import FIRST, LAST, format_rfc3339, parse_rfc3339, to_micros


@given(instants)
def test_text_and_back_is_the_identity(micros: int) -> None:
    assert parse_rfc3339(format_rfc3339(micros)) == micros


@fewer
@given(instants)
def test_the_text_has_six_digits_of_fraction_or_none(micros: int) -> None:
    text = format_rfc3339(micros)
    assert len(text) == len("2024-05-01T12:30:00Z" if micros % 1_000_000 == 0 else "2024-05-01T12:30:00.123456Z")


offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@fewer
@given(st.datetimes(timezones=offsets))
def test_a_datetime_and_its_text_name_the_same_instant(moment: datetime) -> None:
    try:
        micros = to_micros(moment)
    except ValueError:
        assert moment.year in (1, 9999)
        return
    assert parse_rfc3339(moment.isoformat()) == micros


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:01z", 1_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:30:00-00:30", 0),
        ("1970-01-01T00:00:00-00:00", 0),
        ("1970-01-01T00:00:00.5Z", 500_000),
        ("1970-01-01T00:00:00.1234569Z", 123_456),
        ("1969-12-31T23:59:59.999999999999Z", -1),
        ("1972-06-30T23:59:60Z", 78_796_800_000_000),
        ("1972-07-01T01:59:60.25+02:00", 78_796_800_250_000),
        ("2000-02-29T00:00:00Z", 951_782_400_000_000),
        ("0001-01-01T00:00:00Z", FIRST),
        ("9999-12-31T23:59:59.999999Z", LAST),
    ],
)
def test_what_text_means(text: str, micros: int) -> None:
    assert parse_rfc3339(text) == micros


@pytest.mark.parametrize(
    "text",
    [
        "", "2024", "2024-05-01", "2024-05-01T12:30Z", "2024-05-01T12:30:00", "2024-05-01 12:30:00Z",
        "2024-05-01T12:30:00.Z", "2024-05-01T12:30:00,5Z", "2024-05-01T12:30:00Z ", "2024-05-01T12:30:00Z\n",
        "2024-5-1T12:30:00Z", "20240501T123000Z", "2024-W18-3T12:30:00Z", "2024-05-01T12:30:00+0100",
        "2024-05-01T12:30:00+01", "2024-05-01T12:30:00+24:00", "2024-05-01T12:30:00+01:60",
        "2024-05-01T12:30:00+01:00:00", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z", "2024-00-01T00:00:00Z",
        "2024-05-01T24:00:00Z", "2024-05-01T12:60:00Z", "2024-05-01T12:30:60Z", "2024-05-01T12:30:61Z",
        "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "9999-12-31T23:59:60Z",
        "٢٠٢٤-05-01T12:30:00Z", "12024-05-01T12:30:00Z", "-2024-05-01T12:30:00Z",
    ],
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"RFC 3339|range|beyond|second 60|1\.\.12"):
        parse_rfc3339(text)


@given(st.text("0123456789-:TZtz+. ", max_size=30) | st.text())
def test_any_text_is_an_instant_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert FIRST <= parse_rfc3339(text) <= LAST


def test_an_instant_can_be_given_in_three_ways() -> None:
    assert to_micros(5) == to_micros("1970-01-01T00:00:00.000005Z")
    assert to_micros(5) == to_micros(datetime(1970, 1, 1, microsecond=5, tzinfo=UTC))


@pytest.mark.parametrize("instant", [datetime(2024, 5, 1), True, 1.0, None, b"", FIRST - 1, LAST + 1])
def test_what_is_no_instant(instant: Any) -> None:
    with pytest.raises(ValueError, match=r"zone|microseconds|beyond"):
        to_micros(instant)


@pytest.mark.parametrize("micros", [FIRST - 1, LAST + 1])
def test_an_instant_without_a_text(micros: int) -> None:
    with pytest.raises(ValueError, match="beyond"):
        format_rfc3339(micros)
