"""What a client knows of one of its subscriptions, and the order in which its notifications are handed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.session.acts import Act, Hand, Lost, Missing, Passed
from vestnik.session.checking import Checking
from vestnik.session.cursors import Cursors
from vestnik.session.handed import Handed
from vestnik.wire.messages import Delivery, Gap, Position, Subscribe
from vestnik.wire.origins import ENDLESS
from vestnik.wire.replays import Replay

WINDOW: Final = 1000
"""Notifications that the broker sends before the first of them was taken, unless told otherwise."""
_UNTOLD: Final = Gap("", 0, 0, "the broker does not say why")


class Early(NamedTuple):
    """A notification that came before its turn, the log of its event, and its place in the order of arrival."""

    arrival: int
    delivery: Delivery
    log: str | None

    @property
    def is_effect(self) -> bool:
        event = self.delivery.event
        return event is not None and bool(event.causes)


class Subscription:
    """In the numbering `epoch`, everything up to `last` was handed over or is lost; `early` came before its turn.

    A broker that forgets the numbering starts the numbering `afresh` at the cursors. The application sees one numbering
    that goes on: `given` is the last number it was given. Numbers of the broker that the application is not given, gaps
    and repeats, shift the two against each other.
    """

    def __init__(self, name: str, afresh: int) -> None:
        self.name = name
        self.filter = Filter.none()
        self.accepted: Filter | None = None  # the last filter that the broker accepted
        self.lease = 0.0
        self.window = WINDOW
        self.replay: Replay | None = None
        self.settled = False
        self.adopts = False
        self.made = 0
        self.epoch = 0
        self.afresh = afresh
        self.last = 0
        self.closed = 0  # up to this number the broker has sent all that it has
        self.given = 0
        self.taken = 0  # up to this number of the broker the application has taken everything
        self.early: dict[int, Early] = {}
        self.cursors = Cursors()
        self.offsets = self.cursors.offsets
        self._handed = Handed()
        self._shifts = [(1, 0)]  # from a number of the application on, how much greater the number of the broker is
        self.checking: Checking | None = None
        self.interval = 0.0
        self.heard_at = 0.0  # when the last notification came
        self.missed = 0  # how many had to be asked for since the last check, or are lost

    # --- what the application wants, and what the broker says of it ---

    def start(self, seen: Mapping[str, int], replay: Replay | None, *, adopts: bool) -> None:
        """Start at cursors, or with a replay; or adopt what the broker kept for an earlier life of this client."""
        self.adopts = adopts
        self.cursors.start(seen, replay)

    def want(self, wanted: Filter, lease: float, window: int, replay: Replay | None, *, settled: bool) -> None:
        """Set the terms."""
        self.filter, self.lease, self.window, self.replay, self.settled = wanted, lease, window, replay, settled

    def change(self, wanted: Filter) -> None:
        """Set another filter."""
        self.filter = wanted

    def accept(self, wanted: Filter) -> None:
        """Note that the broker has accepted a filter."""
        self.accepted, self.settled = wanted, False

    def learn_made(self, made: int) -> None:
        """Note when the broker says that the subscription was made, if it does."""
        self.made = made or self.made

    # --- checks ---

    def check_by(self, checking: Checking | None) -> None:
        """Check in another way from now on, or not at all."""
        self.checking = checking
        if checking is not None:
            self.interval = checking.first

    def next_interval(self, checking: Checking, uniform: Callable[[float, float], float]) -> float:
        """Return the time until the next check, by what was missed since the last one."""
        self.interval = checking.next(self.interval, self.missed, uniform)
        self.missed = 0
        return self.interval

    # --- numberings and cursors ---

    @property
    def position(self) -> Position:
        return Position(self.name, self.epoch, self.last, self.taken)

    @property
    def seen(self) -> dict[str, int]:
        """The cursors as they are now, not a copy; empty while the broker of a replay has not said where logs stand."""
        self.cursors.settle(self.last)
        return self.cursors.said

    def sees(self, number: int, offsets: Mapping[str, int]) -> None:
        """Note the cursors that hold once everything up to a number was handed over."""
        self.cursors.claim(number, offsets)
        self.cursors.settle(self.last)

    def message(self, request: int) -> Subscribe:
        """Return the request to subscribe, or to renew. `last` is what was taken: the rest still fills the window."""
        return Subscribe(
            self.name,
            self.filter,
            self.lease,
            self.window,
            self.epoch,
            self.afresh,
            self.replay,
            self.taken,
            tuple(self.seen.items()),
            self.settled,
            self.adopts,
            self.made,
            request=request,
        )

    def propose(self, afresh: int) -> None:
        """Propose another numbering, should the broker begin one."""
        self.afresh = afresh

    def begin(self, afresh: int) -> None:
        """Follow a broker that numbers from 1; if it forgets that too, it will number `afresh`."""
        self.cursors.settle(self.last)
        self.cursors.drop_claims()
        self.epoch, self.afresh = self.afresh, afresh
        self.last = self.closed = self.taken = 0
        self._shifts = [(self.given + 1, -self.given)]
        self.early.clear()

    def adopt(self, epoch: int, taken: int) -> None:
        """Go on with a numbering that the broker knows from an earlier life of this client."""
        self.adopts = False
        self.epoch = epoch
        self.last = self.given = self.taken = taken

    def adopt_nothing(self) -> None:
        """Note that the broker has begun a numbering of its own."""
        self.adopts = False

    def close(self, number: int) -> None:
        """Note that the broker has sent all that it has up to a number."""
        self.closed = max(self.closed, number)

    def acknowledge(self, number: int) -> bool:
        """Note that the application has taken everything below one of its numbers; return whether that is news.

        A gap counts as taken with the notification after it, or if there is none yet.
        """
        before, shifts = self.taken, self._shifts
        if number > self.given:
            del shifts[:-1]
            self.taken = self.last
        else:
            while len(shifts) > 1 and shifts[1][0] < number:
                del shifts[0]
            self.taken = max(before, number - 1 + shifts[0][1])
        return self.taken > before

    @property
    def has_gap(self) -> bool:
        """Whether something came early, and what is before it is not here."""
        return bool(self.early) and self.last + 1 not in self.early

    def in_turn(self, *, hold: bool) -> Early | None:
        """Return what came early and is in turn now; with `hold`, no effect."""
        found = self.early.get(self.last + 1)
        return None if found is None or (hold and found.is_effect) else found

    # --- what comes ---

    def takes(self, number: int, event: Event, log: str | None, now: float, *, replayed: bool, hold: bool) -> bool:
        """Hand over an ordinary event if it is in turn; with `hold`, no effect is. Else it is to be kept as early."""
        self.heard_at = now
        if number != self.last + 1 or (hold and event.causes):
            return False
        if log is not None:
            offset, offsets = event.seq or 0, self.offsets
            if offset < offsets.get(log, 0) or (replayed and self.cursors.is_picking):
                return False
            if not self._handed.takes(event):
                return False
            offsets[log] = offset + 1
        self.last = number
        self.given += 1
        return True

    def keep_early(self, number: int, delivery: Delivery, log: str | None, arrival: int, now: float) -> None:
        """Keep what came before its turn."""
        self.heard_at = now
        self.early.setdefault(number, Early(arrival, delivery, log))

    def drop_early(self) -> None:
        """Forget what came before its turn."""
        self.early.clear()

    def recover(self, number: int, delivery: Delivery, log: str | None, arrival: int) -> None:
        """Keep what had to be asked for."""
        if number > self.last and number not in self.early:
            self.early[number] = Early(arrival, delivery, log)
            self.missed += 1

    def hand_next(self) -> Act:
        """Hand over what came early and is in turn."""
        _, delivery, log = self.early.pop(self.last + 1)
        event = delivery.event
        if event is None:
            gap = delivery.gap or _UNTOLD
            self.cursors.settle(self.last)
            self.cursors.skip(gap)
            self._pass()
            return Missing(self.name, gap_text(gap))
        is_new = self.cursors.takes(event, log, replayed=delivery.replayed)
        if not is_new or (log is not None and not self._handed.takes(event)):
            self._pass()
            return Passed(self.name)
        self.last += 1
        self.given += 1
        return Hand(event, ((self.name, self.given),), delivery.replayed)

    def pass_lost(self) -> list[Act]:
        """Give up what is in turn and not here, if the broker has sent all that it has."""
        if self.last >= self.closed or self.last + 1 in self.early:
            return []
        next_here = min([number for number in self.early if number <= self.closed], default=self.closed + 1)
        lost = next_here - 1 - self.last
        first = self.given + 1
        self.last += lost
        self.given += lost
        self.missed += lost
        return [Lost(self.name, first, self.given)]

    def _pass(self) -> None:
        """Pass a number of the broker for which the application is given none."""
        self.last += 1
        first, shift = self.given + 1, self.last - self.given
        if len(self._shifts) > 1 and self._shifts[-1][0] == first:
            del self._shifts[-1]
        self._shifts.append((first, shift))


def gap_text(gap: Gap) -> str:
    """Return in words why events will not come, and which."""
    if not gap.log:
        return gap.reason
    which = f"from offset {gap.first:,} on" if gap.end == ENDLESS else f"offsets {gap.first:,} to {gap.end - 1:,}"
    return f"{gap.reason} (log {gap.log}, {which})"
