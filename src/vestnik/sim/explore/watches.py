"""Watches one subscription: the events that it is promised, and those that it got. A watch knows no brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.sim.explore.settings import Wrong
from vestnik.wire.messages import Gap

Number: TypeAlias = tuple[int, int]
"""A numbering of a subscription, and a number in it."""


class Got(NamedTuple):
    """An event that was handed over: its address and its id."""

    log: str
    offset: int
    id: str


class Watch:
    """A subscription of an application. Its events are kept in the order of logs, not of arrival.

    `filters` are those that may be in force: the last one, and those before it until the broker has accepted it. What
    the broker had numbered by then may still come by the filters before. An event is `due` if it was published after
    the subscription was settled, and is wanted by all of them.
    """

    def __init__(self, filters: tuple[Filter, ...]) -> None:
        self.filters = filters
        self.is_settled = False
        self._before: tuple[Filter, ...] = ()
        self._before_until: Number = 0, 0
        self.got: tuple[Got, ...] = ()
        self.gaps: tuple[tuple[str, int, int], ...] = ()
        self.due: tuple[Event, ...] = ()
        self.logs: tuple[str, ...] = ()  # of which there was ever a cursor

    def change(self, wanted: Filter) -> None:
        """Note that another filter is asked for: what it does not want is not due any more."""
        self.filters = *[one for one in self.filters if one != wanted], wanted
        self.due = tuple([event for event in self.due if wanted.matches(event)])

    def settle(self, wanted: Filter, numbered: Number) -> None:
        """Note that the broker has accepted a filter, and up to which number it has numbered events by then."""
        self.is_settled = True
        if wanted == self.filters[-1]:
            if len(self.filters) > 1:
                self._before, self._before_until = self.filters[:-1], numbered
            self.filters = (wanted,)

    def expect(self, event: Event) -> None:
        """Note that an event is about to be published."""
        if self.is_settled and all(one.matches(event) for one in self.filters):
            self.due = *self.due, event

    def know(self, logs: Iterable[str]) -> None:
        fresh = [log for log in logs if log not in self.logs]
        if fresh:
            self.logs = tuple(sorted([*self.logs, *fresh]))

    def give(self, event: Event, numbers: Iterable[Number], log: str) -> None:
        """Take an event: once, also if its publisher has repeated it at another broker."""
        got = Got(log, event.seq or 0, event.id)
        for one in self.got:
            if one.id == got.id:
                raise Wrong(f"{got.id} came twice: {one.log} {one.offset}, {log} {got.offset}")
            if one.log == log and one.offset > got.offset:
                raise Wrong(f"{one.id} came before {got.id}: {log} {one.offset}, {got.offset}")
        epoch, last = self._before_until
        is_earlier = any(one == epoch and number <= last for one, number in numbers)
        if not any(one.matches(event) for one in (*self.filters, *(self._before if is_earlier else ()))):
            raise Wrong(f"{got.id} is not wanted by {self.filters[-1]}")
        self.got = tuple(sorted([*self.got, got]))
        self.due = tuple([one for one in self.due if one.id != event.id])

    def tell(self, gap: Gap) -> None:
        if not gap.log and self.is_settled:
            raise Wrong(f"a settled subscription has lost its place: {gap.reason}")
        for one in self.got:
            if one.log == gap.log and gap.first <= one.offset < gap.end:
                raise Wrong(f"{one.id} is in a gap, and came: {gap}")
        self.gaps = tuple(sorted([*self.gaps, (gap.log, gap.first, gap.end)]))

    def is_told(self, log: str, offset: int) -> bool:
        return any(one == log and first <= offset < end for one, first, end in self.gaps)
