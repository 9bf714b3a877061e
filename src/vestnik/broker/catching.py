"""What is found of the past, at several brokers, becomes one sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vestnik.broker.selection import Selection
from vestnik.broker.sequences import Place, by_origin, merge, place_of
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.messages import NodeId, Taken
from vestnik.wire.replays import Replay


class Replaying:
    """The past is being asked for, by numbered recalls, and what comes meanwhile waits. What is `told` is known."""

    def __init__(self, replay: Replay, told: Filter | None = None) -> None:
        self.waiting: set[int] = set()  # the numbers of the recalls
        self.lost: list[str] = []
        self.live: list[tuple[Event, bool]] = []  # and whether it comes again
        self.told = told
        self._replay = replay
        self._found: dict[NodeId, list[Taken]] = {}

    def take(self, broker: NodeId, taken: Iterable[Taken]) -> None:
        self._found.setdefault(broker, []).extend(taken)

    def past(self, wanted: Filter) -> list[Event]:
        """What is replayed; what is left out is lost."""
        selection = Selection((wanted,), self._replay)
        for taken in merge(by_origin(self._found)):
            selection.take(taken)
        events = [taken.event for taken in selection.taken()]
        self.lost += [selection.left_out] if selection.left_out else []
        return events if self.told is None else [event for event in events if not self.told.matches(event)]


class MakingUp:
    """What subscriptions of a client lack is being asked for, by numbered recalls.

    What comes for any of its subscriptions meanwhile waits: it may be an effect of what is missing. Subscriptions go by
    their numbering.
    """

    def __init__(self) -> None:
        self.waiting: set[int] = set()  # the numbers of the recalls
        self.lost: list[tuple[int, str]] = []  # for which subscription, and why
        self.live: list[tuple[Event, list[int]]] = []  # and the subscriptions that want it
        self.holes: set[tuple[int, NodeId]] = set()  # the subscriptions, and the brokers that have not sent all
        self._found: dict[NodeId, list[Taken]] = {}
        self._wanted_by: dict[Place, list[int]] = {}

    def take(self, broker: NodeId, epoch: int, taken: Taken) -> None:
        wanted_by = self._wanted_by.setdefault(place_of(taken.event), [])
        if not wanted_by:
            self._found.setdefault(broker, []).append(taken)
        wanted_by.append(epoch)

    def is_behind_hole(self, event: Event, epoch: int) -> bool:
        """Whether something is missing before an event: it will come again with that."""
        return event.stream is not None and (epoch, event.stream[0]) in self.holes

    def missed(self) -> Iterator[tuple[Event, list[int]]]:
        """What is made up for, and the subscriptions that want it."""
        in_order = [sorted(taken, key=lambda one: (one.position, one.event.seq or 0)) for taken in self._found.values()]
        for taken in merge(in_order):
            yield taken.event, self._wanted_by[place_of(taken.event)]
