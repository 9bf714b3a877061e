"""The result of a fetch."""

from __future__ import annotations

from collections.abc import Iterable

from vestnik.model.events import Event


class Past(list[Event]):
    """Past events, oldest first. `missing` says what was not found and why; it is empty if all was."""

    def __init__(self, events: Iterable[Event] = (), missing: Iterable[str] = ()) -> None:
        super().__init__(events)
        self.missing = tuple(missing)
