"""The reader: a subscription as its feeds see it.

A reader numbers what it is given, without gaps, so that a client sees a loss as a loss. It bounds what is in flight
between broker and client, never what can be had: what does not fit stays in the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.streams import Recent
from vestnik.recovery.allowance import Allowance
from vestnik.recovery.fingerprints import Fingerprints
from vestnik.recovery.flight import Flight, gap_in_flight
from vestnik.recovery.limits import IN_FLIGHT
from vestnik.recovery.repeats import Repeats, Twin, Until
from vestnik.wire.messages import Gap, NodeId
from vestnik.wire.origins import ENDLESS, Origin, Placed

EARLIER: Final = 8
"""Filters that a reader had before, and gaps that it was told, by which it knows what it was given."""
ANNOUNCED: Final = 10_000
"""Events of brokers that a reader is not given again."""

ReaderKey: TypeAlias = tuple[NodeId, str]
"""The client and the name of a subscription."""


class Reader:
    """One subscription. New origins are read from what they accepted since it was `made`, a time in microseconds.

    At most `window` notifications are in flight. While the client does not take any, there is no room. A reader that
    `replays` starts in the past; what is replayed has a time from `past_since` on, if that is given. A reader that
    `ends` is done when it has read what there was when it started, and does not wait for what is open at brokers.
    `number` is the last that was given, in the numbering `epoch`; `taken` is the last that the client has taken.
    """

    __slots__ = (
        "_allowance",
        "_flights",
        "_gaps",
        "_had",
        "_size",
        "announced",
        "began",
        "client",
        "earlier",
        "ends",
        "epoch",
        "filter",
        "forgets",
        "from_past",
        "in_flight",
        "is_young",
        "key",
        "known_from",
        "made",
        "moved_at",
        "number",
        "past_since",
        "remembered",
        "replays",
        "taken",
        "takes",
        "waits_for_open",
        "window",
    )

    def __init__(
        self,
        key: ReaderKey,
        wanted: Filter,
        made: int,
        window: int,
        *,
        replays: bool = False,
        past_since: int | None = None,
        ends: bool = False,
        waits_for_open: bool = False,
        takes: bool = True,
        epoch: int = 0,
    ) -> None:
        self.key = key
        self.client = key[0]
        self.replays = replays
        self.past_since = past_since
        self.filter = wanted
        self.made = made
        self.window = window
        self.ends = ends
        self.waits_for_open = waits_for_open
        self.takes = takes
        self.from_past = False  # it started in the past, and has not come to the present
        self.earlier: list[tuple[int, Filter]] = []  # what was accepted before a time must match this filter, too
        self.moved_at = 0.0  # when it took something last, or began to lag
        self.epoch = epoch
        self.number = 0
        self.taken = 0
        self.in_flight = 0  # how many were given and not taken
        self.known_from = ENDLESS  # offset of the own log from which on the router knows this filter
        self.is_young = False  # it has not come to the present in all logs since it started
        self.began = 0  # the serial number of the last event before that, or before it changed its filter
        # Filters, from one serial number to another, and how far the reader had come then in logs in which it lagged.
        self._had: deque[tuple[int, int, Filter, Mapping[Origin, int]]] = deque(maxlen=EARLIER)
        self._gaps: deque[Gap] = deque(maxlen=EARLIER)  # what it was told instead of events
        self.forgets = Until(0, 0.0)  # how long it has to remember what it was given
        self.remembered: Fingerprints | None = None
        self.announced: Recent[str, bool] = Recent(ANNOUNCED)  # ids of events of brokers
        self._allowance = Allowance(IN_FLIGHT)
        self._size = 0
        self._flights: deque[Flight] = deque()  # what is in flight; the last of them ends with the last number

    # --- what is in flight, over all readers ---

    def join(self, allowance: Allowance) -> None:
        """Share what may be in flight with the other readers of a broker."""
        self._allowance = allowance
        allowance.join(self._size)

    def leave(self) -> None:
        """Count no longer among the readers of the broker."""
        self._allowance.leave(self._size)
        self._allowance = Allowance(IN_FLIGHT)

    # --- what happens to it ---

    def begin(self, now: float, known_from: int, serial: int, *, from_past: bool) -> None:
        """Start to read, when the router knows the filter from an offset of the own log on."""
        self.moved_at = now
        self.known_from = known_from
        self.began = serial
        self.from_past = from_past

    def go_on(self) -> None:
        """Note that the client takes notifications."""
        self.takes = True

    def pause(self) -> None:
        """Note that the client takes no notifications for now. Nothing has room until it does."""
        self.takes = False

    def bound(self, window: int) -> None:
        """Set how many notifications may be in flight."""
        self.window = window

    def want(self, wanted: Filter, known_from: int) -> None:
        """Change the filter. The router knows the new one from an offset of the own log on."""
        self.filter, self.known_from = wanted, known_from

    def match_earlier(self, until: int, wanted: Filter) -> None:
        """Take what was accepted before a time only if it matches this filter, too."""
        self.earlier.append((until, wanted))

    def move(self, now: float) -> None:
        """Note that the reader took something, or begins to lag."""
        self.moved_at = now

    def shift(self, by: float) -> None:
        """Move all times, as the clock was."""
        self.moved_at += by

    def know_open(self) -> None:
        """Note that the reader was given what is open at brokers."""
        self.waits_for_open = False

    def is_before_past(self, placed: Placed) -> bool:
        """Return whether an event is too old to be replayed."""
        return self.past_since is not None and placed.time < self.past_since

    def may_have(self, placed: Placed) -> bool:
        """Return whether an event was wanted when it was accepted; True if the filter has not changed since."""
        return all(placed.accepted >= until or one.matches(placed.event) for until, one in self.earlier)

    @property
    def room(self) -> int:
        """How many notifications can be given now."""
        if not self.takes or self._allowance.room(self._size) <= 0:
            return 0
        return self.window - self.in_flight

    # --- what it was given ---

    def look_back(self, serial: int, lagging: Mapping[Origin, int]) -> None:
        """Note that the reader does not have all that is below its cursors: it is not in the present."""
        self.note_had(serial, lagging)
        self.is_young = True

    def come_to_present(self, repeats: Repeats) -> None:
        """Note that the reader has come to the present in all logs, after the last event that came."""
        self.from_past = False
        self.earlier.clear()
        if self.is_young:
            self.is_young, self.began = False, repeats.serial
            self.forgets = repeats.until()

    def note_had(self, serial: int, lagging: Mapping[Origin, int]) -> None:
        """Note that the reader was given what came until now, but in `lagging` logs only up to these cursors.

        While it is young, it remembers by itself what it is given.
        """
        if not self.is_young and serial > self.began:
            self._had.append((self.began, serial, self.filter, lagging))
        self.began = serial

    def had_before(self, event: Event, twin: Twin) -> bool:
        """Return whether an event that came as a twin was given before the filter changed or the reader was young."""
        return any(
            first < twin.serial <= last and twin.offset < lagging.get(twin.origin, ENDLESS) and wanted.matches(event)
            for first, last, wanted, lagging in self._had
        )

    def missed(self, twin: Twin) -> bool:
        """Return whether an event was told as a gap."""
        log = str(twin.origin) if self._gaps else ""
        return any(gap.log == log and gap.first <= twin.offset < gap.end for gap in self._gaps)

    def remember(self, pair: Pair, repeats: Repeats) -> None:
        """Remember an event that is given, because it may come again from another log."""
        self.remembered = self.remembered or Fingerprints(repeats.window)
        self.forgets = repeats.until()
        self.remembered.add(pair)

    def remembers(self, pair: Pair, repeats: Repeats) -> bool:
        """Return whether an event was given that is remembered; forget all of them when it is time."""
        if self.remembered is None:
            return False
        if not self.is_young and repeats.is_over(self.forgets):
            self.remembered = None
            return False
        return pair in self.remembered

    def is_announced(self, id: str) -> bool:
        """Return whether an event of a broker was given before. It is now."""
        is_known = self.announced.get(id) is not None
        if not is_known:
            self.announced.put(id, True)
        return is_known

    # --- what is in flight ---

    def give(self, flight: Flight) -> Flight | None:
        """Let as much be in flight as there is room for; return that, or None. Its last number is `number`."""
        is_small = self._size + flight.size < self._allowance.share
        if not is_small or not self.takes or flight.count > self.window - self.in_flight:
            count = min(self.room, flight.fitting(self._allowance.room(self._size)))
            if count <= 0:
                return None
            flight = flight.part(0, count)
        self.force(flight)
        return flight

    def force(self, flight: Flight) -> None:
        """Let something be in flight, also without room."""
        count = flight.count
        self._flights.append(flight)
        self.in_flight += count
        self.number += count
        self._size += flight.size
        self._allowance.change(flight.size)

    def tell(self, gap: Gap) -> Flight:
        """Let a gap be in flight."""
        if gap.log and not gap.rewinds:
            self._gaps.append(gap)
        flight = gap_in_flight(gap)
        self.force(flight)
        return flight

    @property
    def first_in_flight(self) -> int:
        """The number of the first that is in flight."""
        return self.number - self.in_flight + 1

    def take(self, number: int) -> None:
        """Note that the client has taken everything up to a number."""
        self.taken = max(self.taken, min(number, self.number))
        left = min(self.in_flight, number + 1 - self.first_in_flight)
        if left <= 0:
            return
        self.in_flight -= left
        flights, size = self._flights, self._size
        while left > 0:
            flight = flights.popleft()
            taken = flight if flight.count <= left else flight.part(0, left)
            if taken is not flight:
                flights.appendleft(flight.part(left, flight.count))
            left -= taken.count
            size -= taken.size
        self._allowance.change(size - self._size)
        self._size = size

    def after(self, number: int) -> Iterator[tuple[int, Flight]]:
        """Yield what is in flight after a number, one by one."""
        at = self.first_in_flight
        for flight in self._flights:
            for place in range(max(0, number + 1 - at), flight.count):
                yield at + place, flight.part(place, place + 1)
            at += flight.count
