"""What is found of the past, at several brokers, becomes one sequence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from vestnik.broker.confluence import Confluence
from vestnik.broker.selection import Selection
from vestnik.broker.sequences import Place, by_origin, merge
from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import is_reserved
from vestnik.wire.messages import UNBOUND, NodeId, Recalled, Taken
from vestnik.wire.replays import Replay

MOST_LIVE: Final = 10_000
"""Events that wait for the past of a subscription. Where there are more, they are recalled as well."""
TOO_MANY: Final = f"more than {MOST_LIVE:,} came before all that precedes them"


class Replaying:
    """The past is being asked for, by numbered recalls, and what comes meanwhile waits.

    It is handed over as it comes, where that can be: not where it depends on later events what is wanted, and not where
    a history has copies of what others took. `told` is known to a subscription that was there before. One that is asked
    for announcements only is `partial`: what waits for it cannot be recalled.
    """

    def __init__(self, replay: Replay, told: Filter | None = None, *, partial: bool = False) -> None:
        self.waiting: set[int] = set()  # the numbers of the recalls
        self.lost: list[str] = []
        self.live: list[tuple[Event, bool]] = []  # and whether it comes again
        self.told = told
        self.told_next: Filter | None = None  # what was, where the filter was changed meanwhile
        self.flow: Confluence | None = None
        self.newest: dict[Pair | None, int] = {}  # of what was handed over, by stream
        self.handed: set[Place] = set()  # of what was, where all was found first
        self.asked: set[NodeId] = set()
        self.left_out: set[NodeId] = set()  # those whose past is missing, and comes as such
        self.cut_off: set[NodeId] = set()  # those of whom only a part has come
        self.reached: dict[NodeId, int] = {}  # the position of each broker up to which it has sent all
        self.is_behind = False  # not all that waits is here
        self.is_later = False  # what waited and was not here is being asked for
        self._past_ends: dict[NodeId, int] = {}
        self._replay = replay
        self._partial = partial or told is not None
        self._found: dict[NodeId, list[Taken]] = {}

    def take(self, broker: NodeId, message: Recalled) -> None:
        self.lost += [f"{broker}: {message.lost}"] if message.lost else []
        self.reached[broker] = message.after
        self._past_ends.setdefault(broker, message.upto)
        if self.flow is None:
            self._found.setdefault(broker, []).extend(message.taken)
        else:
            self.flow.take(broker, message.taken)
            self.flow.open(broker, message.after)

    def await_past(self, event: Event, *, again: bool) -> None:
        """Hand out an event when all that precedes it was."""
        self.live.append((event, again))
        if len(self.live) <= MOST_LIVE:
            return
        recalled = set() if self._partial else self.asked
        left = [one for one in self.live if not _is_taken_by(one[0], recalled)]
        self.is_behind = self.is_behind or len(left) < len(self.live)
        if len(left) > MOST_LIVE // 2:
            left = left[-MOST_LIVE // 2 :]
            self.lost += [] if TOO_MANY in self.lost else [TOO_MANY]
        self.live = left

    def interrupted(self, broker: NodeId) -> int:
        """The position behind which nothing of a broker was handed over: it is to be recalled later, with all here."""
        self.live = [one for one in self.live if not _is_taken_by(one[0], (broker,))]
        self.cut_off.add(broker)
        return self.reached.setdefault(broker, UNBOUND)

    @property
    def wants_all(self) -> bool:
        """Whether all that there is is wanted, whenever it comes."""
        return not (self._replay.picks or self._replay.since is not None or self._partial)

    @property
    def can_flow(self) -> bool:
        """Whether events can be handed over before all are found."""
        return self.flow is not None or not (self._replay.picks or self._partial or self._has_copies)

    @property
    def _has_copies(self) -> bool:
        found = ((broker, taken) for broker, sequence in self._found.items() for taken in sequence[:1])
        return any(taken.event.stream is not None and taken.event.stream[0] != broker for broker, taken in found)

    def begin_flow(self) -> Confluence:
        """From now on, what is found is handed over as it comes."""
        self.flow = Confluence(self.reached)
        for broker, taken in self._found.items():
            self.flow.take(broker, taken)
        self._found = {}
        return self.flow

    def is_past(self, taken: Taken) -> bool:
        """Whether it was taken before it was asked for, and not since."""
        origin = taken.event.stream[0] if taken.event.stream else ""
        return taken.position <= self._past_ends.get(origin, 0) or is_reserved(taken.event.type)

    def past(self, wanted: Filter) -> list[Event]:
        """What is replayed; what is left out is lost."""
        selection = Selection((wanted,), self._replay)
        for taken in merge(by_origin(self._found)):
            selection.take(taken)
        events = [taken.event for taken in selection.taken()]
        self.lost += [selection.left_out] if selection.left_out else []
        return events if self.told is None else [event for event in events if not self.told.matches(event)]


def _is_taken_by(event: Event, brokers: Iterable[NodeId]) -> bool:
    """Whether one of these has stored an event."""
    return event.stream is not None and event.stream[0] in brokers and not is_reserved(event.type)
