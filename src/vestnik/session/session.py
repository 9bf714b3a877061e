"""A client: what to send next, given what was heard.

Notifications are handed over in the order of their numbers, each once. Where numbers are missing the broker is asked
for them at once; what it no longer has is said to be lost. With a checking strategy the broker is also asked in
between, since what is lost at the end leaves no gap to be seen. What is requested is said again until it is answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.times import FOREVER
from vestnik.session.acts import Act, Alarm, Done, Found, Over, Say, Told
from vestnik.session.agenda import PATIENCE, Agenda, Errand
from vestnik.session.checking import Checking
from vestnik.session.inbox import Inbox
from vestnik.session.requests import Requests, Unanswered
from vestnik.session.subscriptions import Subscription
from vestnik.wire.messages import (
    Accepted,
    Advertise,
    Answer,
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
    Review,
    Reviewed,
    Stored,
    Subscribe,
    Took,
    Unadvertise,
    Unknown,
    Unsubscribe,
)
from vestnik.wire.replays import Replay

NOTHING_SEEN: Final[Mapping[str, int]] = MappingProxyType({})
RENEWALS = 3
"""How often something is renewed within its lease, unless the session has a time of its own for it."""


class Session:
    """One client of one broker. What has a lease is renewed every `refresh` seconds, or as often as the lease needs.

    `uniform(a, b)` draws a number: for epochs that no earlier life of this client has used, for strategies of checking
    that want one, and to spread renewals by a tenth. Where an earlier life may have requests that will be answered,
    `first_request` is a number that it has not come to.
    """

    def __init__(
        self,
        name: str,
        uniform: Callable[[float, float], float],
        refresh: float = FOREVER,
        first_request: int = 1,
    ) -> None:
        self.name = name
        self._uniform = uniform
        self._refresh = refresh
        self._advertisements: dict[str, Advertise] = {}
        self._requests = Requests(first_request)
        self._unpublished: deque[Publish] = deque()
        self._unanswered = Unanswered()
        self._parts: dict[int, list[Event]] = {}  # of the past, by the request for it
        self._agenda: Agenda[Errand] = Agenda()
        self._inbox = Inbox(self._agenda, uniform)
        self._subscriptions = self._inbox.subscriptions
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
        seen: Mapping[str, int] = NOTHING_SEEN,
    ) -> list[Act]:
        """Subscribe under a name, or change the subscription that has it. A broker that forgets it replays again.

        It is to be answered when the broker has it; where it is to be `settled`, when all brokers within reach do. A
        client that lived before `adopts` what the broker kept for it, or begins with what each broker took behind the
        position that it has `seen`.
        """
        known = self._subscriptions.get(name)
        if known is None:
            known = self._inbox.add(name)
            known.outlives = known.adopts = adopts
            known.sees(0, dict(seen), replaying=False)
        known.filter, known.lease, known.keep, known.replay, known.settled = wanted, lease, keep, replay, settled
        if known.checking != checking:
            known.checking = checking
            self._agenda.drop(Errand("check", name))
            if checking is not None:
                known.interval = checking.first
                self._agenda.put(Errand("check", name), now + known.interval)
        return [self._say_subscription(known, now), *self._alarm()]

    def seen(self, name: str) -> Mapping[str, int]:
        """The position of each broker up to which all that it took was handed over, and all that was replayed."""
        known = self._subscriptions.get(name)
        return NOTHING_SEEN if known is None or known.seen.replaying else known.seen.positions

    def begun(self, name: str) -> Mapping[str, int]:
        """The position of each broker up to which all was handed over, but for the past that is being replayed."""
        known = self._subscriptions.get(name)
        return NOTHING_SEEN if known is None else known.seen.positions

    def change(self, name: str, wanted: Filter, now: float) -> list[Act]:
        """Give a subscription another filter."""
        known = self._subscriptions[name]
        known.filter = wanted
        return [self._say_subscription(known, now), *self._alarm()]

    def pause(self, name: str) -> None:
        """Hand over nothing of a subscription for now."""
        known = self._subscriptions[name]
        known.is_paused = known.was_paused = True
        self._inbox.no_longer_ask(known)

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
        return [*self._inbox.ask([known], now), *self._alarm()]

    def unsubscribe(self, name: str, now: float) -> list[Act]:
        known = self._subscriptions.get(name)
        if known is not None:
            self._inbox.forget(known)
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
        self._unpublished.append(Publish(tuple(events), request=number))
        return number, [*self._publish_more(now), *self._alarm()]

    def _publish_more(self, now: float) -> list[Act]:
        """Say publications in order, and so few beyond the first that is not answered that the broker remembers it."""
        acts: list[Act] = []
        while self._unpublished and self._unanswered.has_room_for(len(self._unpublished[0].events)):
            publication = self._unpublished.popleft()
            self._unanswered.said(publication.request, len(publication.events))
            acts.append(self._request(publication, now))
        return acts

    def fetch(self, wanted: Filter, replay: Replay, now: float) -> tuple[int, list[Act]]:
        """Ask for past events; the number of the request."""
        number = self._requests.new_number()
        return number, [self._request(Fetch(wanted, replay, request=number), now), *self._alarm()]

    def review(self, wanted: Filter, after: int, upto: int, most: int, now: float) -> tuple[int, list[Act]]:
        """Ask for a page of what the broker took; the number of the request."""
        number = self._requests.new_number()
        return number, [self._request(Review(wanted, after, upto, most, request=number), now), *self._alarm()]

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
        acts += [self._say_subscription(known, now) for known in self._subscriptions.values()]
        acts += self._inbox.ask_for_all(now)
        acts += [self._request(r, now) for r in self._requests if not isinstance(r, Subscribe | Advertise)]
        return acts + self._alarm()

    # --- what is heard ---

    def handle(self, message: Message, now: float) -> list[Act]:
        return self._heard(message, now) + self._alarm()

    def notified(self, deliveries: Iterable[Delivery], now: float) -> Iterator[Act]:
        """As `handle` of Notify, one after another: in between, a subscription may be paused."""
        for delivery in deliveries:
            yield from self._inbox.take(delivery, now)
        yield from self._alarm()

    def _heard(self, message: Message, now: float) -> list[Act]:
        match message:
            case Notify(deliveries):
                return [act for delivery in deliveries for act in self._inbox.take(delivery, now)]
            case Answer(last, kept):
                return self._inbox.answered(last, kept, now)
            case Last(last):
                return self._inbox.ask(self._inbox.lacking(last), now)
            case Unknown(position):
                known = self._subscriptions.get(position.name)
                if known is None or known.epoch != position.epoch:
                    return []
                return [*self._inbox.forgotten(known, now), self._say_subscription(known, now)]
            case Accepted():
                return self._accepted(message, now)
            case Refused(request, reason, unknown):
                self._unanswered.answered(request)
                return [*self._refused(request, reason, unknown=unknown), *self._publish_more(now)]
            case Fetched(request, events, lost, more):
                return self._fetched(request, events, lost, more=more)
            case Report(request, data):
                return [Told(request, data) for _ in self._done(request)]
            case Reviewed(request):
                return [Told(request, message) for _ in self._done(request)]
            case Stored(request, refused):
                self._unanswered.answered(request)
                done = self._done(request) or [Done(Publish(()))]
                acts = [Done(act.what, "", refused) for act in done if refused or act.what.request]
                return [*acts, *self._publish_more(now)]
        raise TypeError(f"a broker does not say {type(message).__name__} to a client")

    def _accepted(self, message: Accepted, now: float) -> list[Act]:
        request, lease, epoch = message.request, message.lease, message.epoch
        asked = self._requests.get(request)
        acts = self._inbox.adopt(asked.name, epoch, message.taken, now) if isinstance(asked, Subscribe) else []
        self._inbox.follow(epoch, now)
        if epoch in self._inbox.by_epoch:
            self._inbox.by_epoch[epoch].sees(message.last, dict(message.seen), replaying=message.replaying)
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
        return [*acts, *done]

    def _refused(self, number: int, reason: str, *, unknown: bool) -> list[Act]:
        """What was there before stays as it was; what was not is not. What was, and is not renewed, is over."""
        done = self._done(number, reason, unknown=unknown)
        over: list[Act] = []
        for act in done:
            match act.what:
                case Subscribe(name, wanted) if name in self._subscriptions:
                    known = self._subscriptions[name]
                    if known.accepted is None:
                        self._inbox.forget(known)
                    elif known.accepted == wanted:
                        self._inbox.forget(known)
                        over.append(Over(name, reason))
                    else:
                        known.filter = known.accepted
                case Advertise(name):
                    self._advertisements.pop(name, None)
                    self._agenda.drop(Errand("offer", name))
        return [*done, *over]

    def _fetched(self, request: int, events: tuple[Event, ...], lost: tuple[str, ...], *, more: bool) -> list[Act]:
        """Past events come in parts; what is repeated in between begins again."""
        found = self._parts.setdefault(request, [])
        found += events
        if more:
            return []
        del self._parts[request]
        return [Found(request, tuple(found), lost) for _ in self._done(request)]

    def _done(self, number: int, reason: str = "", *, unknown: bool = False) -> list[Done]:
        self._agenda.drop(Errand("repeat", number))
        request = self._requests.close(number)
        return [] if request is None else [Done(request, reason, unknown=unknown)]

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
                    acts += self._inbox.check(self._subscriptions[name], now)
                case Errand(_, str(name)):
                    acts += self._inbox.ask([self._subscriptions[name]], now)
        return acts + self._alarm()

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
