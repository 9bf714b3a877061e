"""What subscriptions of a client have missed, and what comes for it meanwhile, become one sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from itertools import count
from typing import TYPE_CHECKING, Final

from vestnik.broker.catching import TOO_MANY
from vestnik.broker.confluence import Confluence, Late
from vestnik.broker.sequences import Place, place_of
from vestnik.model.events import Event
from vestnik.model.reserved import is_reserved
from vestnik.wire.messages import NodeId, Taken

if TYPE_CHECKING:
    from vestnik.broker.clients import Subscription

MOST_LATE: Final = 10_000
"""Events that wait for what a client has missed. Where there are more, they are recalled as well."""


class MakingUp:
    """What subscriptions of a client lack is being asked for.

    What comes for any of its subscriptions meanwhile waits: it may be an effect of what is missing. Where too much
    waits, it is dropped, and missing as well: of a broker, behind the position up to which all of it had come when
    something of it began to wait. `position_of` tells how far brokers within reach have come by now.
    """

    def __init__(self, position_of: Callable[[NodeId], int | None]) -> None:
        self.lost: list[tuple[Subscription, str]] = []
        self.asked: dict[NodeId, set[Subscription]] = {}  # of which brokers something is missing, and for whom
        self.held: dict[NodeId, set[Subscription]] = {}  # for whom of these it has to be asked for
        self.concerned: set[Subscription] = set()  # those that lack something, or did
        self._position_of = position_of
        self._flow = Confluence({})
        self._wanted_by: dict[Place, list[Subscription]] = {}
        self._behind: set[tuple[Subscription, NodeId]] = set()  # of whom something was dropped that is not asked for
        self._since: dict[tuple[Subscription, NodeId], int | None] = {}  # behind these positions there is what waits
        self._late: dict[int, tuple[Event, list[Subscription]]] = {}  # what waits, and for whom, as it came
        self._late_at: dict[Place, int] = {}
        self._arrivals = count()

    # --- what is missing ---

    def ask(self, broker: NodeId, subscription: Subscription) -> None:
        """A subscription lacks something of a broker: what waits of it comes again with that."""
        since = self._since.pop((subscription, broker), None)
        if since is not None:
            subscription.lacks[broker] = min(since, subscription.lacks.get(broker, since))
            subscription.had.pop(broker, None)
        self.without(subscription, broker)
        self.concerned.add(subscription)
        self.asked.setdefault(broker, set()).add(subscription)
        self.held.get(broker, set()).discard(subscription)

    def hold(self, broker: NodeId, subscription: Subscription) -> None:
        """The rest of what is missing is to be asked for when there is room for it."""
        self.asked.setdefault(broker, set()).add(subscription)
        self.held.setdefault(broker, set()).add(subscription)
        self.concerned.add(subscription)

    def take(self, broker: NodeId, subscription: Subscription, taken: Taken) -> None:
        wanted_by = self._wanted_by.setdefault(place_of(taken.event), [])
        if not wanted_by:
            self._flow.take(broker, [taken])
        if subscription not in wanted_by:
            wanted_by.append(subscription)

    def end(self, broker: NodeId, subscription: Subscription) -> None:
        """A subscription lacks nothing more of a broker, but for what was dropped meanwhile."""
        if (subscription, broker) in self._behind:
            self._behind.discard((subscription, broker))
            self.hold(broker, subscription)
            return
        self._since[subscription, broker] = subscription.lacks.pop(broker)
        subscription.had.pop(broker, None)
        self.asked.get(broker, set()).discard(subscription)

    def lose(self, broker: NodeId) -> None:
        """A broker is out of reach again; it will be asked again, also for what came of it meanwhile."""
        for subscription in self.asked.pop(broker, ()):
            self._behind.discard((subscription, broker))
            self.without(subscription, broker)
        self.held.pop(broker, None)
        self._flow.end(broker)

    def wants(self, broker: NodeId) -> bool:
        """Whether so little of what is missing of a broker is here that more may be asked for."""
        return self._flow.wants(broker)

    def look(self, there: Collection[Subscription]) -> None:
        """Only these subscriptions are there still; see how far what they lack has come."""
        for subscriptions in (self.concerned, *self.asked.values(), *self.held.values()):
            subscriptions.intersection_update(there)
        for broker, subscriptions in list(self.asked.items()):
            if subscriptions:
                self._flow.open(broker, min(subscription.lacks[broker] for subscription in subscriptions))
            else:
                self.lose(broker)

    # --- what waits ---

    def wait(self, event: Event, subscriptions: Iterable[Subscription]) -> None:
        """An event has come; what it follows is missing still."""
        origin = _origin(event)
        wanting: list[Subscription] = []
        for one in subscriptions:
            is_asked = one in self.asked.get(origin, ())
            if origin in one.lacks and not is_asked:
                continue  # it comes with what is missing, when that is asked for
            if not is_asked and (one, origin) not in self._since:
                self._since[one, origin] = self._position_of(origin)
            wanting.append(one)
        if wanting:
            arrival = next(self._arrivals)
            self._late[arrival] = event, wanting
            self._late_at[place_of(event)] = arrival
            self._flow.take(Late(origin), [Taken(arrival, 0, event)])
        if len(self._late) > MOST_LATE:
            self._drop()

    def _drop(self) -> None:
        """Too much waits: what can be recalled is missing now."""
        origins = {(one, _origin(event)): None for event, wanting in self._late.values() for one in wanting}
        missing = {key for key in origins if self._is_missing(*key)}
        for arrival, (event, wanting) in list(self._late.items()):
            wanting[:] = [one for one in wanting if (one, _origin(event)) not in missing]
            if not wanting:
                self._forget(arrival)
        for arrival in list(self._late)[: -MOST_LATE // 2]:
            _, wanting = self._forget(arrival)
            news = [(one, TOO_MANY) for one in wanting]
            self.lost += [one for one in news if one not in self.lost]
        self._flow.keep_late(lambda taken: taken.position in self._late)

    def _is_missing(self, subscription: Subscription, broker: NodeId) -> bool:
        """Let a subscription lack what waits of a broker, if that can be asked for it, now or when it is back."""
        if subscription in self.asked.get(broker, ()):
            if subscription not in self.held.get(broker, ()):
                self._behind.add((subscription, broker))
            return True
        since = self._since.get((subscription, broker))
        if since is None:
            return False
        del self._since[subscription, broker]
        subscription.lacks[broker] = min(since, subscription.lacks.get(broker, since))
        subscription.had.pop(broker, None)
        if self._position_of(broker) is not None:
            self.hold(broker, subscription)
        return True

    def without(self, subscription: Subscription, broker: NodeId) -> None:
        """What waits of a broker comes for a subscription with what is missing."""
        for event, wanting in self._late.values():
            if subscription in wanting and _origin(event) == broker:
                wanting.remove(subscription)

    def only(self, subscription: Subscription, follows: Callable[[Event], bool]) -> None:
        """Of what waits, a subscription wants only what follows the past that it was replayed."""
        for event, wanting in self._late.values():
            if subscription in wanting and not follows(event):
                wanting.remove(subscription)

    def _forget(self, arrival: int) -> tuple[Event, list[Subscription]]:
        event, wanting = self._late.pop(arrival)
        if self._late_at.get(place_of(event)) == arrival:
            del self._late_at[place_of(event)]
        return event, wanting

    # --- what comes of it ---

    @property
    def is_over(self) -> bool:
        return not self.asked and self._flow.is_over

    @property
    def is_late(self) -> bool:
        """Whether nothing is missing any more."""
        return not self.asked and self._flow.is_late

    def waiting(self) -> Counter[Subscription]:
        """How much waits for each subscription."""
        return Counter(one for _, wanting in self._late.values() for one in wanting)

    def next(self) -> tuple[Event, list[Subscription], bool] | None:
        """What comes next, for whom, and whether it comes again; None where that is not known yet, or nothing does."""
        found = self._flow.next()
        if found is None:
            return None
        key, taken = found
        if isinstance(key, Late):
            return *self._forget(taken.position), False
        place = place_of(taken.event)
        wanted_by = self._wanted_by.pop(place)
        if place in self._late_at:
            _, wanting = self._late[self._late_at[place]]
            wanting[:] = [one for one in wanting if one not in wanted_by]
        return taken.event, wanted_by, True


def _origin(event: Event) -> NodeId:
    """The broker that has stored an event, if any."""
    return "" if event.stream is None or is_reserved(event.type) else event.stream[0]
