"""The text of the error for events that were refused."""

from __future__ import annotations

import pytest

from vestnik.client.batches import not_stored
from vestnik.errors import RefusedEvent


def refused(count: int, reasons: int = 1) -> tuple[RefusedEvent, ...]:
    return tuple([RefusedEvent("s", f"e{n}", f"reason {n % reasons}") for n in range(count)])


@pytest.mark.parametrize(
    ("events", "count", "text"),
    [
        (refused(1), 1, "1 event was refused: e0 of source s: reason 0"),
        (refused(1), 2, "1 of 2 events was refused: e0 of source s: reason 0"),
        (refused(1), "the", "1 of the events was refused: e0 of source s: reason 0"),
        (refused(2), "the", "2 of the events were refused: e0 of source s and 1 more: reason 0"),
        (refused(1000), 1000, "1000 of 1000 events were refused: e0 of source s and 999 more: reason 0"),
        (
            refused(3, 2),
            4,
            "3 of 4 events were refused: e0 of source s and 1 more: reason 0; e1 of source s: reason 1",
        ),
    ],
)
def test_each_reason_is_told_once(events: tuple[RefusedEvent, ...], count: int | str, text: str) -> None:
    assert str(not_stored(events, (), count)) == text


def test_ten_reasons_are_told() -> None:
    text = str(not_stored(refused(1_230, 12), (), 2_000))
    assert text.count("reason ") == 10 and text.endswith("; and 204 more")


@pytest.mark.parametrize(("count", "said"), [(1, "1 event was stored"), (2, "2 of 2 events were stored")])
def test_what_is_unknown_is_told_in_the_same_way(count: int, said: str) -> None:
    assert f"nobody knows whether {said}: e0 of source s" in str(not_stored((), refused(count), count))
