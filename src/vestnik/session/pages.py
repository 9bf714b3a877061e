"""The pages that have come of answers about past events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from vestnik.model.events import Event

Past: TypeAlias = tuple[list[Event], list[str]]
"""Past events, and in words what could not be found."""


class Pages:
    """What has come, by the number of the request. A fetch that starts again starts with nothing."""

    def __init__(self) -> None:
        self._found: dict[int, Past] = {}

    def add(self, request: int, events: Iterable[Event], lost: Iterable[str]) -> None:
        found, missing = self._found.setdefault(request, ([], []))
        found.extend(events)
        missing.extend(lost)

    def pop(self, request: int) -> Past:
        """Return what has come, and forget it."""
        return self._found.pop(request, ([], []))

    def clear(self) -> None:
        self._found.clear()
