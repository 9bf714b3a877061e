"""A client: what to send next, given what was heard.

Notifications are handed over in the order of their numbers, each once. If numbers are missing, the session asks the
broker for them at once; what the broker no longer has is lost. With a checking strategy the session also asks in
between, since a loss at the end leaves no gap to be seen. The session repeats requests until they are answered.

The session keeps the cursors of each subscription exact: a broker that forgot the subscription, or another broker,
goes on at the cursors, so that nothing is missed or repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.times import FOREVER
from vestnik.session.acts import Act, Alarm, AskApplication, Done, Found, Over, Say, Told
from vestnik.session.agenda import PATIENCE, Agenda, Errand
from vestnik.session.checking import Checking
from vestnik.session.inbox import Inbox
from vestnik.session.outbox import Outbox
from vestnik.session.pages import Pages
from vestnik.session.requests import Requests
from vestnik.session.subscriptions import WINDOW, Subscription
from vestnik.wire.messages import (
    Accepted,
    Advertise,
    Answer,
    Fetch,
    Fetched,
    FetchMore,
    Message,
    Notify,
    Position,
    Publish,
    Question,
    Recall,
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

    `uniform(a, b)` draws a number: for epochs that no earlier life of this client has used, for checking strategies,
    and to spread renewals by a tenth. If requests of an earlier life may still be answered, `first_request` is a number
    that it has not used.
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
        self._outbox = Outbox()
        self._pages = Pages()
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
        window: int = WINDOW,
        checking: Checking | None = None,
        replay: Replay | None = None,
        settled: bool = False,
        adopts: bool = False,
        seen: Mapping[str, int] = NOTHING_SEEN,
    ) -> list[Act]:
        """Subscribe under a name, or change the subscription that has it.

        The broker sends at most `window` notifications that were not taken. It answers when it has the subscription; if
        it is to be `settled`, when all brokers within reach have it. A client that lived before `adopts` what the
        broker kept for it. The subscription starts at the cursors that were `seen`, or with the `replay`.
        """
        known = self._subscriptions.get(name)
        if known is None:
            known = self._inbox.add(name)
            known.start(seen, replay, adopts=adopts)
        known.want(wanted, lease, window, replay, settled=settled)
        if known.checking != checking:
            known.check_by(checking)
            self._agenda.drop(Errand("check", name))
            if checking is not None:
                self._agenda.put(Errand("check", name), now + known.interval)
        return [self._say_subscription(known, now), *self._alarm()]

    @property
    def subscribed(self) -> list[str]:
        """The names of the subscriptions."""
        return list(self._subscriptions)

    def seen(self, name: str) -> dict[str, int]:
        """Return the cursors: for each log, the offset below which everything wanted was handed over.

        They are empty until the broker of a replay has said where all logs stand.
        """
        known = self._subscriptions.get(name)
        return {} if known is None else dict(known.seen)

    def begun(self, name: str) -> dict[str, int]:
        """Return the cursors at which live events start after a replay that picks; empty if the broker did not say."""
        known = self._subscriptions.get(name)
        return {} if known is None else dict(known.cursors.begun)

    def change(self, name: str, wanted: Filter, now: float) -> list[Act]:
        """Give a subscription another filter."""
        known = self._subscriptions[name]
        known.change(wanted)
        return [self._say_subscription(known, now), *self._alarm()]

    def took(self, taken: Mapping[str, int]) -> list[Act]:
        """Acknowledge to the broker that the application has taken everything below a number of each subscription."""
        known = [(self._subscriptions[name], number) for name, number in taken.items() if name in self._subscriptions]
        positions = [
            Position(one.name, one.epoch, one.taken) for one, number in known if one.epoch and one.acknowledge(number)
        ]
        return [Say(Took(tuple(positions)))] if positions else []

    def unsubscribe(self, name: str, now: float) -> list[Act]:
        known = self._subscriptions.get(name)
        released: list[Act] = []
        if known is not None:
            self._inbox.forget(known)
            released = self._inbox.release_held(now)
        return [self._request(Unsubscribe(name, request=self._requests.new_number()), now), *released, *self._alarm()]

    def advertise(
        self,
        name: str,
        offered: Filter,
        now: float,
        *,
        lease: float = FOREVER,
        settled: bool = False,
        replays: bool = False,
    ) -> list[Act]:
        """Advertise under a name, or change the advertisement that has it.

        If it is to be `settled`, the broker answers when the subscriptions that it concerns have come to it. If the
        application `replays` it, the broker asks for its past.
        """
        self._advertisements[name] = Advertise(name, offered, lease, settled, replays)
        return [self._say_advertisement(name, now), *self._alarm()]

    def unadvertise(self, name: str, now: float) -> list[Act]:
        self._advertisements.pop(name, None)
        self._agenda.drop(Errand("offer", name))
        return [self._request(Unadvertise(name, request=self._requests.new_number()), now), *self._alarm()]

    def publish(self, events: Iterable[Event], now: float, *, answered: bool = True) -> list[Act]:
        """Publish. Without an answer, nobody learns what is lost on the way."""
        return self.publication(events, now)[1] if answered else [Say(Publish(tuple(events)))]

    def publication(self, events: Iterable[Event], now: float) -> tuple[int, list[Act]]:
        """Publish, and return the number of the request too."""
        number = self._requests.new_number()
        self._outbox.add(Publish(tuple(events), request=number))
        return number, [*self._publish_more(now), *self._alarm()]

    def _publish_more(self, now: float) -> list[Act]:
        return [self._request(publication, now) for publication in self._outbox.due()]

    def fetch(self, wanted: Filter, replay: Replay, now: float) -> tuple[int, list[Act]]:
        """Ask for past events; return the number of the request too. The answer comes page by page."""
        number = self._requests.new_number()
        return number, [self._request(Fetch(wanted, replay, request=number), now), *self._alarm()]

    def abandon(self, request: int) -> None:
        """Ask for no more pages of past events: nobody waits for them."""
        self._done(request)

    def review(self, wanted: Filter, after: int, upto: int, most: int, now: float) -> tuple[int, list[Act]]:
        """Ask for a page of what the broker took; return the number of the request too."""
        number = self._requests.new_number()
        return number, [self._request(Review(wanted, after, upto, most, request=number), now), *self._alarm()]

    def question(self, kind: str, about: dict[str, Any], to: str, now: float) -> tuple[int, list[Act]]:
        """Ask about a broker; return the number of the request too."""
        number = self._requests.new_number()
        return number, [self._request(Question(kind, about, to, request=number), now), *self._alarm()]

    def resume(self, now: float) -> list[Act]:
        """Say everything again to a broker that may have forgotten it, and ask for what was missed meanwhile.

        Alarms that came while there was no broker may have been ignored.
        """
        self._alarm_at = FOREVER
        self._pages.clear()  # fetches start again
        self._inbox.propose_others()
        acts: list[Act] = [self._say_advertisement(name, now) for name in self._advertisements]
        acts += [self._say_subscription(known, now) for known in self._subscriptions.values()]
        acts += self._inbox.ask_for_all(now)
        acts += [self._request(r, now) for r in self._requests if not isinstance(r, Subscribe | Advertise)]
        return acts + self._alarm()

    # --- what is heard ---

    def handle(self, message: Message, now: float) -> list[Act]:
        if isinstance(message, Notify):
            return list(self.notified(message, now))
        return self._heard(message, now) + self._alarm()

    def notified(self, message: Notify, now: float) -> Iterator[Act]:
        """Take in notifications one after another, as they are asked for: the application may act in between."""
        yield from self._inbox.take(message.deliveries, self._inbox.logs_of(message.logs), now)
        if self._agenda.earliest < self._alarm_at:
            yield from self._alarm()

    def _heard(self, message: Message, now: float) -> list[Act]:
        match message:
            case Answer():
                return self._inbox.answered(message, self._inbox.logs_of(message.logs), now)
            case Unknown(position):
                known = self._subscriptions.get(position.name)
                if known is None or known.epoch != position.epoch:
                    return []
                self._inbox.forgotten(known, now)
                return [self._say_subscription(known, now), *self._inbox.release_held(now)]
            case Accepted():
                return [*self._accepted(message, now), *self._inbox.release_held(now)]
            case Refused(request, reason, unknown):
                self._outbox.answered(request)
                refused = self._refused(request, reason, unknown=unknown)
                return [*refused, *self._inbox.release_held(now), *self._publish_more(now)]
            case Fetched(request, events, lost, more):
                return self._fetched(request, events, lost, more=more)
            case Report(request, data):
                return [Told(request, data) for _ in self._done(request)]
            case Recall():
                return [AskApplication(message)]
            case Reviewed(request):
                return [Told(request, message) for _ in self._done(request)]
            case Stored(request, refused):
                self._outbox.answered(request)
                done = self._done(request) or [Done(Publish(()))]
                acts = [Done(act.what, "", refused) for act in done if refused or act.what.request]
                return [*acts, *self._publish_more(now)]
        raise TypeError(f"a broker does not say {type(message).__name__} to a client")

    def _accepted(self, message: Accepted, now: float) -> list[Act]:
        request, lease, epoch = message.request, message.lease, message.epoch
        asked = self._requests.get(request)
        acts = self._inbox.adopt(asked.name, epoch, message.taken, now) if isinstance(asked, Subscribe) else []
        acts += self._inbox.follow(epoch, now)
        followed = self._inbox.by_epoch.get(epoch)
        if followed is not None:
            followed.learn_made(message.made)
            followed.sees(message.last, dict(message.seen))
            acts += self._inbox.reach(followed, message.last, now)
        done = self._done(request)
        for act in done:
            match act.what:
                case Subscribe(name) if name in self._subscriptions:
                    self._subscriptions[name].accept(act.what.filter)
                    self._renew_later(Errand("renew", name), lease, now)
                case Advertise(name) if name in self._advertisements:
                    self._advertisements[name] = replace(self._advertisements[name], settled=False)
                    self._renew_later(Errand("offer", name), lease, now)
        return [*acts, *[replace(act, missing=message.missing) for act in done]]

    def _refused(self, number: int, reason: str, *, unknown: bool) -> list[Act]:
        """Keep what was there before as it was. A subscription that is not renewed is over."""
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
                        known.change(known.accepted)
                case Advertise(name):
                    self._advertisements.pop(name, None)
                    self._agenda.drop(Errand("offer", name))
        return [*done, *over]

    def _fetched(self, request: int, events: tuple[Event, ...], lost: tuple[str, ...], *, more: bool) -> list[Act]:
        """Collect a page of past events, and ask for the next."""
        if self._requests.get(request) is None:
            return []
        self._pages.add(request, events, lost)
        if more:
            return [Say(FetchMore(request=request))]
        found, missing = self._pages.pop(request)
        self._done(request)
        return [Found(request, tuple(found), tuple(missing))]

    def _done(self, number: int, reason: str = "", *, unknown: bool = False) -> list[Done]:
        self._agenda.drop(Errand("repeat", number))
        self._pages.pop(number)
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
                    acts += [self._request(request, now) for request in [self._repeated(number)] if request]
                case Errand("renew", str(name)):
                    acts.append(self._say_subscription(self._subscriptions[name], now))
                case Errand("offer", str(name)):
                    acts.append(self._say_advertisement(name, now))
                case Errand("check", str(name)):
                    acts += self._inbox.check(self._subscriptions[name], now)
                case Errand(_, str(name)):
                    acts += self._inbox.ask([self._subscriptions[name]], now)
        return acts + self._alarm()

    def _repeated(self, number: int) -> Request | None:
        """Return a request to be said again; one to subscribe with the cursors as they are now."""
        request = self._requests.get(number)
        if isinstance(request, Subscribe) and request.name in self._subscriptions:
            return self._subscriptions[request.name].message(number)
        return request

    def _say_subscription(self, known: Subscription, now: float) -> Say:
        self._renew_later(Errand("renew", known.name), known.lease, now)
        return self._request(known.message(self._requests.new_number()), now)

    def _say_advertisement(self, name: str, now: float) -> Say:
        offer = self._advertisements[name]
        self._renew_later(Errand("offer", name), offer.lease, now)
        return self._request(replace(offer, request=self._requests.new_number()), now)

    def _request(self, request: Request, now: float) -> Say:
        """Say something until it is answered, or something else is said about the same.

        A fetch is repeated only on another connection: the pages of two would be mixed up.
        """
        self._agenda.drop(Errand("repeat", self._requests.open(request)))
        if not isinstance(request, Fetch):
            self._agenda.put(Errand("repeat", request.request), now + PATIENCE)
        return Say(request)

    def _renew_later(self, errand: Errand, lease: float, now: float) -> None:
        if lease < FOREVER:
            every = self._refresh if self._refresh < lease else lease / RENEWALS
            self._agenda.put(errand, now + every * self._uniform(0.9, 1.0))

    def _alarm(self) -> list[Act]:
        """Ask to be woken, if something is due earlier than was asked for."""
        at = self._agenda.next
        if at >= self._alarm_at:
            return []
        self._alarm_at = at
        return [Alarm(at)]
