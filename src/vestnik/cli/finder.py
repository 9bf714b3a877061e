"""Which filters each event of a long stream matches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vestnik.errors import MissingExtra
from vestnik.matching import Matcher
from vestnik.model.events import Event
from vestnik.model.filters import Filter

if TYPE_CHECKING:
    from vestnik.matching import CompiledFilters

COMPILE_AFTER = 10_000
"""Events after which compiling the filters, and loading what does it, is worth the wait."""


class Finder:
    """Filters, by their positions. The first events are matched one by one, later ones in compiled batches.

    Where the optional part for batches is not installed, all are matched one by one. The answers are the same.
    """

    def __init__(self, filters: Sequence[Filter], compile_after: int = COMPILE_AFTER) -> None:
        self._filters = filters
        self._left = compile_after
        self._compiled: CompiledFilters | None = None
        self._matcher: Matcher[int] = Matcher()
        for position, wanted in enumerate(filters):
            self._matcher.add(position, wanted)

    def find(self, events: Sequence[Event]) -> list[list[int]]:
        """The filters of each event, in order."""
        compiled = self._compiled_for(len(events))
        if compiled is None:
            return [sorted(self._matcher.match(event)) for event in events]
        return [sorted(found.tolist()) for found in compiled.match_batch(events).by_event()]

    def count(self, events: Sequence[Event]) -> list[int]:
        """The number of filters of each event."""
        compiled = self._compiled_for(len(events))
        if compiled is None:
            return [len(self._matcher.match(event)) for event in events]
        counts: list[int] = compiled.count_batch(events).tolist()
        return counts

    def _compiled_for(self, count: int) -> CompiledFilters | None:
        """The compiled filters, if `count` more events are to be matched by them."""
        if self._compiled is None and self._left <= 0:
            self._compile()
        self._left -= count
        return self._compiled

    def _compile(self) -> None:
        try:
            from vestnik.matching import compile_filters
        except MissingExtra:
            self._left = sys.maxsize
            return
        self._compiled = compile_filters(enumerate(self._filters))
        self._matcher = Matcher()
