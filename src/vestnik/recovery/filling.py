"""Gaps at the start of logs that a replay reads: histories may fill them.

A log that has dropped its beginning says so in its first page. Whether anything is missing is known when each history
that is read beside it has said which parts of logs it has. One that is lost before it was read has filled nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from vestnik.wire.messages import Gap
from vestnik.wire.origins import Cover, Origin, Span


class Filling:
    """The gaps at the start of logs of one reader, and what the `histories` that it reads have of them."""

    def __init__(self, histories: Iterable[Origin]) -> None:
        self._unheard = set(histories)
        self._covers: dict[Origin, tuple[Cover, ...]] = {}  # by the history
        self._gaps: list[Gap] = []
        self._told: list[Gap] = []

    def hold(self, gap: Gap) -> None:
        """Keep a gap until all histories have said what they have."""
        self._gaps.append(gap)

    def covered(self, history: Origin, covers: tuple[Cover, ...]) -> None:
        """Note which parts of logs a history has; it may have less than before."""
        self._unheard.discard(history)
        self._covers[history] = covers

    def lost(self, history: Origin) -> None:
        """Go on without a history that was not read to its end."""
        self._unheard.discard(history)
        self._covers.pop(history, None)

    def take_left(self) -> list[Gap]:
        """Return gaps that no history fills and that were not told; none while a history has not said what it has."""
        if self._unheard:
            return []
        covers = [cover for one in self._covers.values() for cover in one]
        left: list[Gap] = []
        for gap in self._gaps:
            filled = [one.span for one in covers if str(one.origin) == gap.log]
            told = [Span(one.first, one.end) for one in self._told if one.log == gap.log]
            spans = without(Span(gap.first, gap.end), [*filled, *told])
            left += [Gap(gap.log, span.first, span.end, gap.reason) for span in spans]
        self._told += left
        return left


def without(span: Span, others: Iterable[Span]) -> list[Span]:
    """Return the parts of a span that are in no other span."""
    left, at = list[Span](), span.first
    for other in sorted(others):
        if other.first > at and at < span.end:
            left.append(Span(at, min(other.first, span.end)))
        at = max(at, other.end)
    return [*left, Span(at, span.end)] if at < span.end else left
