"""A client: what to send next, given what was heard.

Notifications are handed over in the order of their numbers, each once. Where numbers are missing the broker is asked
for them at once; what it no longer has is said to be lost. With a checking strategy the broker is also asked in
between, since what is lost at the end leaves no gap to be seen. What is requested is said again until it is answered.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final, Literal, NamedTuple

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import asks
from vestnik.session.acts import Act, Alarm, Done, Found, Hand, Missing, Say, Told
from vestnik.session.agenda import FOREVER, Agenda
from vestnik.session.checking import Checking
from vestnik.session.requests import Requests
from vestnik.session.subscriptions import Subscription
from vestnik.wire.messages import (
    Accepted,
    Advertise,
    Answer,
    Ask,
    Delivery,
    Fetch,
    Fetched,
    Last,
    Message,
    Notify,
    Position,
    Publish,
    Question,
    Refused,
    Report,
    Request,
    Stored,
    Subscribe,
    Took,
    Unadvertise,
    Unknown,
    Unsubscribe,
)
from vestnik.wire.replays import Replay

PATIENCE = 5.0
"""Seconds after which a question that was not answered is asked again."""

RENEWALS = 3
"""How often something is renewed within its lease, unless the session has a time of its own for it."""


ERRANDS: Final = ("renew", "check", "ask")
"""That are about a subscription."""


class Errand(NamedTuple):
    """Something to be done later."""

    what: Literal["renew", "offer", "check", "ask", "repeat"]
    about: str | int  # the name of a subscription or of an advertisement, or the number of a request


class Session:
    """One client of one broker. What has a lease is renewed every `refresh` seconds, or as often as the lease needs.

    `uniform(a, b)` draws a number: for epochs that no earlier life of this client has used, for strategies of checking
    that want one, and to spread renewals by a tenth.
    """

    def __init__(self, name: str, uniform: Callable[[float, float], float], refresh: float = FOREVER) -> None:
        self.name = name
        self._uniform = uniform
        self._refresh = refresh
        self._subscriptions: dict[str, Subscription] = {}
        self._by_epoch: dict[int, Subscription] = {}  # by the numbering that there is, and that there may be
        self._missing: set[str] = set()  # the subscriptions of which something is missing
        self._advertisements: dict[str, Advertise] = {}
        self._requests = Requests()
        self._parts: dict[int, list[Event]] = {}  # of the past, by the request for it
        self._arrivals = count()
        self._epochs = count(int(uniform(1, 2**52)))
        self._agenda: Agenda[Errand] = Agenda()
        self._alarm_at = FOREVER

    # --- what the application wants ---

    def subscribe(
        self,
        name: str,
        wanted: Filter,
        now: float,
        *,
        lease: float = FOREVER,
        keep: int = 0,
        checking: Checking | None = None,
        replay: Replay | None = None,
        settled: bool = False,
        adopts: bool = False,
    ) -> list[Act]:
        """Subscribe under a name, or change the subscription that has it. A broker that forgets it replays again.

        It is to be answered when the broker has it; where it is to be `settled`, when all brokers within reach do. A
        client that lived before `adopts` what the broker kept for it.
        """
        known = self._subscriptions.get(name)
        if known is None:
            known = self._subscriptions[name] = Subscription(name, self._new_epoch())
            known.outlives = known.adopts = adopts
            self._by_epoch[known.afresh] = known
        known.filter, known.lease, known.keep, known.replay, known.settled = wanted, lease, keep, replay, settled
        if known.checking != checking:
            known.checking = checking
            self._agenda.drop(Errand("check", name))
            if checking is not None:
                known.interval = checking.first
                self._agenda.put(Errand("check", name), now + known.interval)
        return [self._say_subscription(known, now), *self._alarm()]

    def change(self, name: str, wanted: Filter, now: float) -> list[Act]:
        """Give a subscription another filter."""
        known = self._subscriptions[name]
        known.filter = wanted
        return [self._say_subscription(known, now), *self._alarm()]

    def pause(self, name: str) -> None:
        """Hand over nothing of a subscription for now."""
        known = self._subscriptions[name]
        known.is_paused = known.was_paused = True
        self._no_longer_ask(known)

    def took(self, waiting: Mapping[str, int]) -> list[Act]:
        """Tell the broker what the application has taken: all but so many of each subscription."""
        known = [(self._subscriptions[name], left) for name, left in waiting.items() if name in self._subscriptions]
        positions = [
            Position(one.name, one.epoch, one.taken) for one, left in known if one.epoch and one.acknowledge(left)
        ]
        return [Say(Took(tuple(positions)))] if positions else []

    def unpause(self, name: str, now: float) -> list[Act]:
        """Go on, with what was missed meanwhile."""
        known = self._subscriptions[name]
        known.is_paused = False
        return [*self._ask([known], now), *self._alarm()]

    def unsubscribe(self, name: str, now: float) -> list[Act]:
        known = self._subscriptions.get(name)
        if known is not None:
            self._forget(known)
        return [self._request(Unsubscribe(name, request=self._requests.new_number()), now), *self._alarm()]

    def advertise(self, name: str, offered: Filter, now: float, *, lease: float = FOREVER) -> list[Act]:
        """Advertise under a name, or change the advertisement that has it."""
        self._advertisements[name] = Advertise(name, offered, lease)
        return [self._say_advertisement(name, now), *self._alarm()]

    def unadvertise(self, name: str, now: float) -> list[Act]:
        self._advertisements.pop(name, None)
        self._agenda.drop(Errand("offer", name))
        return [self._request(Unadvertise(name, request=self._requests.new_number()), now), *self._alarm()]

    def publish(self, events: Iterable[Event], now: float, *, answered: bool = True) -> list[Act]:
        """Publish; where it shall not be `answered`, what is lost on the way is lost."""
        return self.publication(events, now)[1] if answered else [Say(Publish(tuple(events)))]

    def publication(self, events: Iterable[Event], now: float) -> tuple[int, list[Act]]:
        """Publish, and the number of the request."""
        number = self._requests.new_number()
        return number, [self._request(Publish(tuple(events), request=number), now), *self._alarm()]

    def fetch(self, wanted: Filter, replay: Replay, now: float) -> tuple[int, list[Act]]:
        """Ask for past events; the number of the request."""
        number = self._requests.new_number()
        return number, [self._request(Fetch(wanted, replay, request=number), now), *self._alarm()]

    def question(self, kind: str, about: dict[str, Any], to: str, now: float) -> tuple[int, list[Act]]:
        """Ask about a broker; the number of the request."""
        number = self._requests.new_number()
        return number, [self._request(Question(kind, about, to, request=number), now), *self._alarm()]

    def resume(self, now: float) -> list[Act]:
        """Say everything again to a broker that may have forgotten it, and ask for what was missed meanwhile.

        Alarms that came while there was no broker may have been ignored.
        """
        self._alarm_at = FOREVER
        self._parts.clear()
        acts: list[Act] = [self._say_advertisement(name, now) for name in self._advertisements]
        for known in self._subscriptions.values():
            acts.append(self._say_subscription(known, now))
            self._no_longer_ask(known)
        followed = [known for known in self._subscriptions.values() if known.epoch and not known.is_paused]
        self._missing.update(known.name for known in followed)
        acts += self._ask(followed, now)
        acts += [self._request(r, now) for r in self._requests if not isinstance(r, Subscribe | Advertise)]
        return acts + self._alarm()

    # --- what is heard ---

    def handle(self, message: Message, now: float) -> list[Act]:
        return self._heard(message, now) + self._alarm()

    def notified(self, deliveries: Iterable[Delivery], now: float) -> Iterator[Act]:
        """As `handle` of Notify, one after another: in between, a subscription may be paused."""
        for delivery in deliveries:
            yield from self._take(delivery, now)
        yield from self._alarm()

    def _heard(self, message: Message, now: float) -> list[Act]:
        match message:
            case Notify(deliveries):
                return [act for delivery in deliveries for act in self._take(delivery, now)]
            case Answer(last, kept):
                return self._answered(last, kept, now)
            case Last(last):
                known = [(self._by_epoch.get(epoch), number) for epoch, number in last]
                return self._ask([one for one, number in known if one is not None and one.last < number], now)
            case Unknown(position):
                return self._forgotten(position, now)
            case Accepted(request, lease, epoch, last, seen, taken):
                acts = self._adopt(request, epoch, taken, now) + self._follow(epoch, now)
                if epoch in self._by_epoch:
                    self._by_epoch[epoch].sees(last, dict(seen))
                return [*acts, *self._accepted(request, lease, now)]
            case Refused(request, reason):
                return self._refused(request, reason)
            case Fetched(request, events, lost, more):
                return self._fetched(request, events, lost, more=more)
            case Report(request, data):
                return [Told(request, data) for _ in self._done(request)]
            case Stored(request, refused):
                done = self._done(request) or [Done(Publish(()))]
                return [Done(act.what, "", refused) for act in done if refused or act.what.request]
        raise TypeError(f"a broker does not say {type(message).__name__} to a client")

    def _adopt(self, request: int, epoch: int, taken: int, now: float) -> list[Act]:
        """Where the broker goes on with a numbering from before this client's life, ask for what was not taken."""
        asked = self._requests.get(request)
        known = self._subscriptions.get(asked.name) if isinstance(asked, Subscribe) else None
        if known is None or not known.adopts:
            return []
        known.adopts = False
        if epoch == known.afresh or not epoch:
            return []
        known.adopt(epoch, taken)
        self._by_epoch[epoch] = known
        return self._ask([known], now)

    def _follow(self, epoch: int, now: float) -> list[Act]:
        """Where the broker has begun to number a subscription anew, begin too. What brokers announce is not kept."""
        known = self._by_epoch.get(epoch)
        if known is None or epoch == known.epoch:
            return []
        is_lost = known.epoch and (not known.seen or asks(known.filter))
        acts: list[Act] = [Missing(known.name, "the broker had forgotten the subscription")] if is_lost else []
        self._by_epoch.pop(known.epoch, None)
        self._no_longer_ask(known)
        self._check_later(known, now)
        known.begin(self._new_epoch())
        self._by_epoch[known.afresh] = known
        return acts

    def _take(self, delivery: Delivery, now: float) -> list[Act]:
        """Hand over what is in turn; keep what is early, and ask for what is missing before it."""
        acts: list[Act] = []
        in_turn: list[tuple[str, int]] = []
        early: list[Subscription] = []
        for epoch, number in delivery.numbers:
            known = self._by_epoch.get(epoch)
            if known is not None and epoch != known.epoch:
                acts += self._follow(epoch, now)
            if known is not None and not known.is_paused:
                known.heard_at = now
                if known.take(number, delivery, next(self._arrivals), hold=bool(self._missing)):
                    in_turn.append((known.name, known.given))
                if known.early:
                    early.append(known)
        if in_turn and delivery.event is not None:
            acts.append(Hand(delivery.event, tuple(in_turn), delivery.replayed))
        return acts + self._release(early, now) if early else acts

    def _release(self, subscriptions: Iterable[Subscription], now: float) -> list[Act]:
        """Hand over what came early and is in turn, as it arrived in all of these, and ask for what is missing.

        Effects wait for the answer, which may bring their causes.
        """
        known = list(subscriptions)
        acts = [act for subscription in known for act in subscription.pass_lost()]
        self._missing.update(subscription.name for subscription in known if subscription.has_gap)
        queue: list[tuple[int, int]] = []

        def turn(place: int) -> None:
            acts.extend(known[place].pass_lost())
            found = known[place].in_turn(hold=bool(self._missing))
            if found is not None:
                heapq.heappush(queue, (found.arrival, place))

        for place in range(len(known)):
            turn(place)
        while queue:
            _, place = heapq.heappop(queue)
            acts += known[place].hand_next()
            turn(place)
        gaps = [subscription for subscription in known if subscription.has_gap]
        self._missing.update(subscription.name for subscription in gaps)
        return acts + self._ask(gaps, now)

    def _ask(self, subscriptions: Iterable[Subscription], now: float) -> list[Act]:
        """Ask what there is, unless that was asked already."""
        wanted = [known for known in subscriptions if not known.is_paused]
        positions = [known.position for known in wanted if Errand("ask", known.name) not in self._agenda]
        for position in positions:
            self._agenda.put(Errand("ask", position.name), now + PATIENCE)
        return [Say(Ask(tuple(positions)))] if positions else []

    def _no_longer_ask(self, known: Subscription) -> None:
        """A question is answered, or it has become pointless."""
        self._missing.discard(known.name)
        self._agenda.drop(Errand("ask", known.name))

    def _answered(self, last: tuple[tuple[int, int], ...], kept: tuple[Delivery, ...], now: float) -> list[Act]:
        """Hand over what was missed, in the order of all subscriptions, and say what is lost.

        What had to be asked for is older than all that has arrived since.
        """
        acts = [act for epoch, _ in last for act in self._follow(epoch, now)]
        for arrival, delivery in enumerate(kept, start=-len(kept)):
            for epoch, number in delivery.numbers:
                known = self._by_epoch.get(epoch)
                if known is not None and not known.is_paused:
                    known.recover(number, delivery, arrival)
        answered = [(known, number) for epoch, number in last if (known := self._by_epoch.get(epoch))]
        answered = [(known, number) for known, number in answered if not known.is_paused]
        for known, number in answered:
            known.closed = max(known.closed, number)
            self._no_longer_ask(known)
        waiting = [known for known in self._subscriptions.values() if known.early or known.last < known.closed]
        acts += self._release(waiting, now)
        for known, _ in answered:
            known.was_paused = False
            self._check_later(known, now)
        return acts

    def _check_later(self, known: Subscription, now: float) -> None:
        """After a check, decide when the next is due."""
        check = Errand("check", known.name)
        if known.checking is not None and check not in self._agenda:
            known.interval = known.checking.next(known.interval, known.missed, self._uniform)
            known.missed = 0
            self._agenda.put(check, now + known.interval)

    def _forgotten(self, position: Position, now: float) -> list[Act]:
        """The broker does not know a subscription that it was asked about: what is missing of it is lost."""
        known = self._subscriptions.get(position.name)
        if known is None or known.epoch != position.epoch:
            return []
        known.closed = max(known.early, default=known.last)
        self._no_longer_ask(known)
        self._check_later(known, now)
        return [*self._release([known], now), self._say_subscription(known, now)]

    def _accepted(self, request: int, lease: float, now: float) -> list[Act]:
        done = self._done(request)
        for act in done:
            if isinstance(act.what, Subscribe) and act.what.name in self._subscriptions:
                known = self._subscriptions[act.what.name]
                known.accepted, known.settled = act.what.filter, False
        if lease < FOREVER:
            for act in done:
                match act.what:
                    case Subscribe(name) if name in self._subscriptions:
                        self._renew_later(Errand("renew", name), lease, now)
                    case Advertise(name) if name in self._advertisements:
                        self._renew_later(Errand("offer", name), lease, now)
        return [*done]

    def _refused(self, number: int, reason: str) -> list[Act]:
        """What was there before stays as it was; what was not is not."""
        done = self._done(number, reason)
        for act in done:
            match act.what:
                case Subscribe(name) if name in self._subscriptions:
                    known = self._subscriptions[name]
                    if known.accepted is None:
                        self._forget(known)
                    else:
                        known.filter = known.accepted
                case Advertise(name):
                    self._advertisements.pop(name, None)
                    self._agenda.drop(Errand("offer", name))
        return [*done]

    def _fetched(self, request: int, events: tuple[Event, ...], lost: tuple[str, ...], *, more: bool) -> list[Act]:
        """Past events come in parts; what is repeated in between begins again."""
        found = self._parts.setdefault(request, [])
        found += events
        if more:
            return []
        del self._parts[request]
        return [Found(request, tuple(found), lost) for _ in self._done(request)]

    def _forget(self, known: Subscription) -> None:
        del self._subscriptions[known.name]
        for epoch in (known.epoch, known.afresh):
            self._by_epoch.pop(epoch, None)
        self._missing.discard(known.name)
        for what in ERRANDS:
            self._agenda.drop(Errand(what, known.name))

    def _done(self, number: int, reason: str = "") -> list[Done]:
        self._agenda.drop(Errand("repeat", number))
        request = self._requests.close(number)
        return [] if request is None else [Done(request, reason)]

    # --- time ---

    def wake(self, now: float) -> list[Act]:
        """Do what is due."""
        self._alarm_at = FOREVER
        acts: list[Act] = []
        for errand in list(self._agenda.due(now)):
            match errand:
                case Errand("repeat", int(number)):
                    acts += [self._request(request, now) for request in [self._requests.get(number)] if request]
                case Errand("renew", str(name)):
                    acts.append(self._say_subscription(self._subscriptions[name], now))
                case Errand("offer", str(name)):
                    acts.append(self._say_advertisement(name, now))
                case Errand("check", str(name)):
                    acts += self._check(self._subscriptions[name], now)
                case Errand(_, str(name)):
                    acts += self._ask([self._subscriptions[name]], now)
        return acts + self._alarm()

    def _check(self, known: Subscription, now: float) -> list[Act]:
        """Ask whether anything was lost, unless a notification has come that tells: then wait as long again from it."""
        due = known.heard_at + known.interval
        if due <= now:
            return self._ask([known], now)
        self._agenda.put(Errand("check", known.name), due)
        return []

    def _say_subscription(self, known: Subscription, now: float) -> Say:
        self._renew_later(Errand("renew", known.name), known.lease, now)
        return self._request(known.message(self._requests.new_number()), now)

    def _say_advertisement(self, name: str, now: float) -> Say:
        offer = self._advertisements[name]
        self._renew_later(Errand("offer", name), offer.lease, now)
        return self._request(Advertise(name, offer.filter, offer.lease, request=self._requests.new_number()), now)

    def _request(self, request: Request, now: float) -> Say:
        """Say something until it is answered, or something else is said about the same."""
        self._agenda.drop(Errand("repeat", self._requests.open(request)))
        self._agenda.put(Errand("repeat", request.request), now + PATIENCE)
        return Say(request)

    def _renew_later(self, errand: Errand, lease: float, now: float) -> None:
        if lease < FOREVER:
            every = self._refresh if self._refresh < lease else lease / RENEWALS
            self._agenda.put(errand, now + every * self._uniform(0.9, 1.0))

    def _alarm(self) -> list[Act]:
        """Where something is due earlier than is known."""
        at = self._agenda.next
        if at >= self._alarm_at:
            return []
        self._alarm_at = at
        return [Alarm(at)]

    def _new_epoch(self) -> int:
        return next(self._epochs)
