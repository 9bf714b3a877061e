"""What a client knows of one of its subscriptions, and the order in which its notifications are handed over."""

from __future__ import annotations

from typing import NamedTuple

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.streams import Handed
from vestnik.session.acts import Act, Hand, Lost, Missing
from vestnik.session.checking import Checking
from vestnik.wire.messages import Delivery, Position, Subscribe
from vestnik.wire.replays import Replay


class Early(NamedTuple):
    """What came before its turn, and when in the order of all that came."""

    arrival: int
    delivery: Delivery

    @property
    def is_effect(self) -> bool:
        event = self.delivery.event
        return event is not None and bool(event.causes)


class Seen(NamedTuple):
    """Whoever has all up to a number has seen what brokers took up to a position; if `replaying`, but for the past."""

    number: int
    positions: dict[str, int]
    replaying: bool


class Subscription:
    """Of the numbering `epoch`, all up to `last` was handed over or is lost; `early` is what came before its turn.

    Where the broker forgets the numbering it begins that of `afresh`. An event that was handed over in the one is not
    handed over again in the other. To the application all is one: it is given numbers that go on.
    """

    def __init__(self, name: str, afresh: int) -> None:
        self.name = name
        self.filter = Filter.none()
        self.accepted: Filter | None = None  # the last filter that the broker took
        self.lease = 0.0
        self.keep = 0
        self.replay: Replay | None = None
        self.settled = False
        self.outlives = False  # whether the broker is to keep what the application has not taken for a later life
        self.adopts = False
        self.epoch = 0
        self.afresh = afresh
        self.last = 0
        self.closed = 0  # up to this number the broker has sent all that it has
        self.given = 0  # the last number that the application was given
        self.taken = 0  # up to this number of the broker the application has taken all
        self._passed = 0  # numbers that were not given to it since nothing waited for it
        self.early: dict[int, Early] = {}
        self._handed = Handed()
        self._seen = Seen(0, {}, replaying=True)
        self._to_be_seen: Seen | None = None
        self.is_paused = False
        self.was_paused = False  # then what the next answer brings was not lost
        self.checking: Checking | None = None
        self.interval = 0.0
        self.heard_at = 0.0  # when the last notification came
        self.missed = 0  # how many had to be asked for since the last check, or are lost

    @property
    def position(self) -> Position:
        return Position(self.name, self.epoch, self.last)

    @property
    def seen(self) -> Seen:
        """The position of each broker up to which nothing it took is missing here.

        The broker says all that it knows, with what it was told; of whom it says no more, it has said what is lost.
        """
        if self._to_be_seen is not None and self.last >= self._to_be_seen.number:
            self._seen, self._to_be_seen = self._to_be_seen, None
        return self._seen

    def sees(self, number: int, positions: dict[str, int], *, replaying: bool) -> None:
        """What was taken up to these positions has been seen when all up to a number was handed over."""
        told, known = Seen(number, positions, replaying), self.seen
        if positions and number > self.last:
            self._to_be_seen = self._to_be_seen or told
        elif positions and (number, not replaying) >= (known.number, not known.replaying):
            self._seen = told

    def message(self, request: int) -> Subscribe:
        seen = tuple(self.seen.positions.items())
        last = self.taken if self.outlives else self.last
        terms = self.lease, self.keep, self.epoch, self.afresh, self.replay, last, seen, self.settled, self.adopts
        return Subscribe(self.name, self.filter, *terms, not self._seen.replaying, request=request)

    def begin(self, afresh: int) -> None:
        """The broker numbers from 1; if it forgets that too, it will begin `afresh`."""
        self._seen, self._to_be_seen = self.seen._replace(number=0), None
        self.epoch, self.afresh = self.afresh, afresh
        self.last = self.closed = self.taken = self._passed = 0
        self.was_paused = self.is_paused
        self.early.clear()

    def adopt(self, epoch: int, taken: int) -> None:
        """Go on with a numbering that the broker knows from an earlier life of this client."""
        self.epoch = epoch
        self.last = self.given = self.taken = taken

    def acknowledge(self, waiting: int) -> bool:
        """All but so many that it was given are taken by the application; whether that is news."""
        if not waiting:
            self._passed = 0
        before, self.taken = self.taken, max(self.taken, self.last - waiting - self._passed)
        return self.taken > before

    @property
    def has_gap(self) -> bool:
        """Whether something came early, and what is before it is not here."""
        return bool(self.early) and self.last + 1 not in self.early

    def in_turn(self, *, hold: bool) -> Early | None:
        """What came early and is in turn now; with `hold`, no effect."""
        found = self.early.get(self.last + 1)
        return None if found is None or (hold and found.is_effect) else found

    def takes(self, number: int, delivery: Delivery, *, hold: bool) -> bool:
        """Whether a notification is in turn and new; with `hold`, no effect is in turn."""
        event = delivery.event
        if number != self.last + 1 or event is None or (hold and event.causes):
            return False
        self.last = number
        return self._gives(event, again=delivery.again)

    def keep_early(self, number: int, delivery: Delivery, arrival: int) -> None:
        """Keep what came before its turn."""
        self.early.setdefault(number, Early(arrival, delivery))

    def recover(self, number: int, delivery: Delivery, arrival: int) -> None:
        """Keep what had to be asked for."""
        if number > self.last and number not in self.early:
            self.early[number] = Early(arrival, delivery)
            self.missed += not self.was_paused

    def hand_next(self) -> list[Act]:
        """Hand over what came early and is in turn."""
        self.last += 1
        delivery = self.early.pop(self.last).delivery
        event = delivery.event
        if event is None:
            self._passed += 1
            return [Missing(self.name, delivery.gap)]
        return (
            [Hand(event, ((self.name, self.given),), delivery.replayed)]
            if self._gives(event, again=delivery.again)
            else []
        )

    def pass_lost(self) -> list[Act]:
        """What is in turn and not here, though the broker has sent all that it has, is lost for good."""
        if self.last >= self.closed or self.last + 1 in self.early:
            return []
        next_here = min([number for number in self.early if number <= self.closed], default=self.closed + 1)
        lost = next_here - 1 - self.last
        first = self.given + 1
        self.last += lost
        self.given += lost
        self._passed += lost
        self.missed += 0 if self.was_paused else lost
        return [Lost(self.name, first, self.given)]

    def _gives(self, event: Event, *, again: bool) -> bool:
        """Whether the application is given an event."""
        takes = self._handed.takes(event, again=again)
        self.given += takes
        self._passed += not takes
        return takes
