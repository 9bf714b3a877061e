"""A broker: what it does with a message, as effects.

It performs nothing itself and reads no clock: `handle` is all there is. The same broker runs behind sockets and in the
simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from itertools import count
from typing import Any, TypeAlias

from msgspec import structs

from vestnik.broker.announcements import Announcements, wishes
from vestnik.broker.bearings import Bearings
from vestnik.broker.catchup import CatchUp
from vestnik.broker.clients import Client
from vestnik.broker.effects import (
    Append,
    Appended,
    ClockSet,
    Consulted,
    Drained,
    Effect,
    Full,
    Gone,
    LinkDown,
    LinkUp,
    NotAppended,
    Past,
    Read,
    Seen,
    Send,
    Tick,
    Wake,
)
from vestnik.broker.intake import Intake
from vestnik.broker.neighbourhood import Neighbourhood
from vestnik.broker.outlet import Outlet
from vestnik.broker.questions import Questions
from vestnik.broker.reach import Surroundings
from vestnik.broker.reception import Reception
from vestnik.broker.reviews import Reviews
from vestnik.model.streams import Arrivals
from vestnik.model.times import FOREVER
from vestnik.routing.router import Router
from vestnik.wire.messages import (
    Addressed,
    AdminA,
    AdminS,
    Advertise,
    Ask,
    Fetch,
    Finding,
    Forward,
    Inquiry,
    Malformed,
    Message,
    NodeId,
    Notify,
    Publish,
    Question,
    Reach,
    Recall,
    Recalled,
    Review,
    Subscribe,
    Taken,
    Took,
    Unadvertise,
    Unsubscribe,
)

Handler: TypeAlias = Callable[[Any, NodeId, float], list[Effect]]


class BrokerCore:
    """One broker. With `sweep`, it looks every so many seconds for what has expired; it wants a first Tick to begin.

    What its clients publish goes further once it is stored: a broker that crashes and is given what was `stored` does
    not number other events as it did those that others have seen. Where not all was stored, each life must begin with a
    `first_seq` that was not come to before. One that `announces` publishes what its clients want and offer.
    """

    def __init__(
        self,
        name: NodeId,
        router: Router,
        sweep: float = FOREVER,
        stored: Iterable[Append] = (),
        first_seq: int = 1,
        announces: bool = False,
    ) -> None:
        self.name = name
        self.router = router
        self.clients: dict[NodeId, Client] = {}
        self.surroundings = Surroundings(name)
        self._sweep = sweep
        self._next_sweep = 0.0
        self._arrivals = Arrivals()
        places = count()
        self._questions = Questions(name, self.surroundings)
        self._reviews = Reviews(name)
        self._intake = Intake(name, router, first_seq, stored)
        self._outlet = Outlet(router, self.clients, places)
        self._announcements = Announcements(name, self._intake.stamped) if announces else None
        self._catch_up = catch_up = CatchUp(
            name, self.clients, self.surroundings, router, self._arrivals, places, first_seq
        )
        self._bearings = Bearings(self.clients, self.surroundings)
        self._reception = reception = Reception(
            self.clients, router, self._bearings, catch_up, self._announcements, self._tell
        )
        self._neighbourhood = Neighbourhood(router, self.surroundings, catch_up, self._bearings, self._tell, self._met)
        self._handlers: dict[type[Message], Handler] = {
            Forward: self._forward,
            AdminS: self._admin,
            AdminA: self._admin,
            Addressed: self._telling(self._addressed),
            Reach: self._telling(self._neighbourhood.reach),
            Publish: self._publish,
            Subscribe: reception.subscribe,
            Unsubscribe: reception.unsubscribe,
            Advertise: reception.advertise,
            Unadvertise: reception.unadvertise,
            Fetch: self._fetch,
            Malformed: reception.malformed,
            Ask: self._telling(reception.ask),
            Took: self._telling(reception.took),
            Question: self._question,
            Review: self._review,
            Seen: self._seen,
            Consulted: self._consulted,
            LinkUp: self._neighbourhood.link_up,
            LinkDown: self._telling(self._neighbourhood.link_down),
            Gone: reception.gone,
            Full: reception.full,
            Drained: reception.drained,
            Tick: self._tick,
            ClockSet: self._clock_set,
            Past: self._telling(self._past),
            Appended: self._appended,
            NotAppended: self._not_appended,
        }

    def handle(self, message: Message, sender: NodeId, now: float) -> list[Effect]:
        """What is to be done about a message from a neighbour, a local client, or the world, whose name is its own."""
        return self._handlers[type(message)](message, sender, now)

    def _telling(self, handler: Handler) -> Handler:
        """A handler of what may be the last on its way to clients: then they are told how far they have come."""
        return lambda message, sender, now: handler(message, sender, now) + self._bearings.arrived()

    # --- events ---

    def _publish(self, message: Publish, client: NodeId, now: float) -> list[Effect]:
        self._reception.client(client)
        return self._intake.publish(message, client, now)

    def _appended(self, message: Appended, sender: NodeId, now: float) -> list[Effect]:
        going, effects = self._intake.appended(message)
        if going:
            effects = [*self._outlet.route(Forward(going), message.what.client, now), *effects]
            effects += self._neighbourhood.report_soon(now)
        return effects

    def _not_appended(self, message: NotAppended, sender: NodeId, now: float) -> list[Effect]:
        return self._intake.not_appended(message, now)

    def _forward(self, message: Forward, sender: NodeId, now: float) -> list[Effect]:
        events = message.events
        new = tuple([event for event in events if self._arrivals.is_new(event)])
        return self._outlet.route(message if len(new) == len(events) else Forward(new), sender, now)

    # --- what clients ask ---

    def under_way(self, client: NodeId) -> set[int]:
        """The requests of a client that wait for other brokers, or for the disk."""
        return self._catch_up.errands.under_way(client) | self._reviews.under_way(client)

    def _fetch(self, message: Fetch, client: NodeId, now: float) -> list[Effect]:
        return self._catch_up.errands.fetch(client, message)

    def _review(self, message: Review, client: NodeId, now: float) -> list[Effect]:
        return self._reviews.asked(message, client)

    def _seen(self, message: Seen, sender: NodeId, now: float) -> list[Effect]:
        return self._reviews.seen(message)

    def _question(self, message: Question, client: NodeId, now: float) -> list[Effect]:
        return self._questions.asked(message, client)

    def _consulted(self, message: Consulted, sender: NodeId, now: float) -> list[Effect]:
        return self._questions.consulted(message)

    # --- neighbours ---

    def _admin(self, message: AdminS | AdminA, sender: NodeId, now: float) -> list[Effect]:
        self.router.take(sender, message, now)
        return self._tell(now)

    def _met(self, before: Set[NodeId], after: Set[NodeId], now: float) -> list[Effect]:
        """Local clients may want to know who came within reach and who is not any more; others see it themselves."""
        if self._announcements is None or not self.router.hearing:
            return []
        events = self._announcements.changes(before, after, now)
        routed = self._outlet.route(Forward(tuple(events)), self.name, now) if events else []
        return [effect for effect in routed if isinstance(effect, Send) and isinstance(effect.message, Notify)]

    def _addressed(self, message: Addressed, sender: NodeId, now: float) -> list[Effect]:
        """What is for nobody that is known goes no further."""
        if message.to != self.name:
            way = self.surroundings.way(message.to)
            return [] if way is None else [Send(way, message)]
        match message.body:
            case Inquiry() as inquiry:
                return self._questions.inquired(inquiry, message.origin)
            case Finding() as finding:
                return self._questions.found(finding)
            case Recall() as recall:
                return [Read(message.origin, recall)]
            case Recalled() as recalled:
                return self._catch_up.recalled(message.origin, recalled, now)
            case Forward() as forward:
                return self._forward(forward, sender, now)

    def _past(self, message: Past, sender: NodeId, now: float) -> list[Effect]:
        """What was found here goes to the broker that recalls it; behind it, what is announced and open."""
        broker, found = message.what.broker, message.found
        if self._announcements is not None and not found.is_part:
            wished = wishes(self.clients, self.router.advertised)
            opened = self._announcements.open(message.what.recall.filters, wished, now)
            taken = [Taken(found.upto + 1, event.time or 0, event) for event in opened]
            found = structs.replace(found, taken=(*found.taken, *taken))
        if broker == self.name:
            return self._catch_up.recalled(broker, found, now)
        way = self.surroundings.way(broker)
        return [] if way is None else [Send(way, Addressed(broker, self.name, found))]

    def _tell(self, now: float) -> list[Effect]:
        """What neighbours have to know, and then what is announced of it: who hears of it can be answered."""
        effects: list[Effect] = [Send(neighbour, message) for neighbour, message in self.router.flush(now)]
        if self._announcements is not None:
            news = self._announcements.news(now, self.router.hearing)
            effects += self._outlet.route(Forward(tuple(news)), self.name, now) if news else []
        return effects

    # --- time ---

    def _clock_set(self, message: ClockSet, sender: NodeId, now: float) -> list[Effect]:
        """Only the times of events are those of the clock."""
        self._next_sweep += message.by
        for one in (self.router, self._neighbourhood, self._bearings, self._catch_up):
            one.shift(message.by)
        return []

    def _tick(self, message: Tick, sender: NodeId, now: float) -> list[Effect]:
        self.surroundings.position = max(self.surroundings.position, message.position)
        effects = self._intake.tick(now)
        effects += (*self._neighbourhood.tick(now), *self._catch_up.tick(now))
        effects += self._bearings.tick(now)
        if self._sweep < FOREVER and now >= self._next_sweep:
            self._next_sweep = now + self._sweep
            effects += (*self._neighbourhood.sweep(), *self._reception.expire(now), *self._tell(now))
            effects.append(Wake(self._next_sweep))
        return effects
