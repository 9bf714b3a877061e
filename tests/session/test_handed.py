"""A client remembers the events that it was handed, within bounds."""

from __future__ import annotations

import pytest

from vestnik.model.events import Event
from vestnik.session import handed
from vestnik.session.handed import Handed


def numbered(number: int) -> Event:
    return Event("t", source="s", id=str(number))


def test_at_least_the_last_events_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed, "REMEMBERED", 10)
    known = Handed()
    for number in range(100):
        assert known.takes(numbered(number))
        assert not any(known.takes(numbered(one)) for one in range(max(0, number - 9), number + 1))
    assert known.takes(numbered(50)), "it is forgotten"
