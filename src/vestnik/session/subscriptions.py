"""What a client knows of one of its subscriptions, and the order in which its notifications are handed over."""

from __future__ import annotations

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.streams import Arrivals
from vestnik.session.acts import Act, Hand, Lost
from vestnik.session.checking import Checking
from vestnik.wire.messages import Position, Subscribe


class Subscription:
    """Of the numbering `epoch`, all up to `last` was handed over or is lost; `early` is what came before its turn.

    Where the broker forgets the numbering it begins that of `afresh`. An event that was handed over in the one is not
    handed over again in the other. To the application all is one: it is given numbers that go on.
    """

    def __init__(self, name: str, afresh: int) -> None:
        self.name = name
        self.filter = Filter.none()
        self.lease = 0.0
        self.keep = 0
        self.epoch = 0
        self.afresh = afresh
        self.last = 0
        self.given = 0  # the last number that the application was given
        self.early: dict[int, Event] = {}
        self._handed = Arrivals()
        self.checking: Checking | None = None
        self.interval = 0.0
        self.missed = 0  # how many had to be asked for since the last check

    @property
    def position(self) -> Position:
        return Position(self.name, self.epoch, self.last)

    def message(self, request: int) -> Subscribe:
        epochs = self.epoch, self.afresh
        return Subscribe(self.name, self.filter, self.lease, self.keep, *epochs, request=request)

    def begin(self, afresh: int) -> None:
        """The broker numbers from 1; if it forgets that too, it will begin `afresh`."""
        self.epoch, self.afresh = self.afresh, afresh
        self.last = 0
        self.early.clear()

    def take(self, number: int, event: Event) -> bool:
        """Whether a notification is in turn and new; one that is early is kept."""
        if number == self.last + 1:
            self.last = number
            return self._gives(event)
        if number > self.last:
            self.early[number] = event
        return False

    def catch_up(self) -> list[Act]:
        """Hand over what came early and is in turn now."""
        acts: list[Act] = []
        while self.last + 1 in self.early:
            self.last += 1
            event = self.early.pop(self.last)
            if self._gives(event):
                acts.append(Hand(event, ((self.name, self.given),)))
        return acts

    def close(self, last: int) -> list[Act]:
        """The broker has no more up to number `last`: what is not here is lost for good."""
        acts = self.catch_up()
        while self.last < last:
            next_here = min([number for number in self.early if number <= last], default=last + 1)
            lost = next_here - 1 - self.last
            acts.append(Lost(self.name, self.given + 1, self.given + lost))
            self.given += lost
            self.missed += lost
            self.last = next_here - 1
            acts += self.catch_up()
        return acts

    def _gives(self, event: Event) -> bool:
        """Whether the application is given an event: it was not before."""
        is_new = self._handed.is_new(event)
        self.given += is_new
        return is_new
