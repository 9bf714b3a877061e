"""A client of the explored world: the real session, and what is promised to its application."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.times import MICROS
from vestnik.session.acts import Act, Done, Hand, Lost, Missing, Over, Say
from vestnik.session.session import Session
from vestnik.session.subscriptions import gap_text
from vestnik.sim.explore.brokers import Sent
from vestnik.sim.explore.names import name_numbers_of_session
from vestnik.sim.explore.settings import CLOCK, FILTERS, JUMP, LEASE, NARROW, WIDE, Kind, Operation, Settings, Wrong
from vestnik.sim.explore.watches import Number, Watch
from vestnik.wire.messages import Accepted, Advertise, Answer, Gap, Message, NodeId, Notify, Publish, Subscribe, each_of
from vestnik.wire.origins import Origin

EVERYTHING: Final = 1 << 62
OFFER: Final = "offer"


class ClientNode:
    """A client at one broker. It takes at once what it is given, and has at most one notification under way."""

    def __init__(self, place: int, settings: Settings) -> None:
        self.name = f"c{place + 1}"
        self._settings = settings
        self.broker = f"b{place % settings.brokers + 1}"
        self._session = Session(self.name, lambda low, high: low)
        name_numbers_of_session(self._session, settings.brokers + place)
        self.is_connected = True
        self._sleeps = True  # nothing is due
        self._published = 0
        self._advertised = False
        self.unanswered: set[str] = set()  # events
        self.refused: set[str] = set()
        self.watches: dict[str, Watch] = {}
        self._heard = _Heard()

    @property
    def moves(self) -> tuple[str, ...]:
        """The moves that the client makes by itself."""
        return () if self._sleeps else ("wake",)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of the application. If brokers route by advertisements, it publishes only under one."""
        names = list(FILTERS)[: self._settings.subscriptions]
        found: list[Operation] = [(Kind.SUBSCRIBE, name) for name in names if name not in self.watches]
        found += [(what, name) for name in self.watches for what in (Kind.UNSUBSCRIBE, Kind.CHANGE)]
        if self._settings.advertisements:
            found.append((Kind.ADVERTISE,))
        if self._advertised or not self._settings.advertisements:
            found.append((Kind.PUBLISH, f"{self.name}-{self._published + 1}"))
        return tuple(found)

    # --- the application ---

    def subscribe(self, now: float, name: str) -> list[Sent]:
        self.watches[name] = Watch((FILTERS[name],))
        return self._do(
            self._session.subscribe(name, FILTERS[name], now, lease=LEASE, window=1, settled=True),
        )

    def change(self, now: float, name: str) -> list[Sent]:
        wanted = WIDE if self.watches[name].filters[-1] == NARROW else NARROW
        self.watches[name].change(wanted)
        return self._do(self._session.change(name, wanted, now))

    def unsubscribe(self, now: float, name: str) -> list[Sent]:
        del self.watches[name]
        return self._do(self._session.unsubscribe(name, now))

    def advertise(self, now: float) -> list[Sent]:
        """Advertise, or withdraw the advertisement."""
        self._advertised = not self._advertised
        if self._advertised:
            return self._do(self._session.advertise(OFFER, offer_of(self.name), now, lease=LEASE))
        return self._do(self._session.unadvertise(OFFER, now))

    def publish(self, now: float, id: str) -> list[Sent]:
        self._published += 1
        self.unanswered.add(id)
        return self._do(self._session.publish([event_of(id)], now))

    def expect(self, now: float, id: str) -> list[Sent]:
        """Note that an event is about to be published."""
        for watch in self.watches.values():
            watch.expect(event_of(id))
        return []

    # --- the connection ---

    def disconnect(self, now: float) -> list[Sent]:
        self.is_connected, self._sleeps = False, True
        return []

    def resume(self, now: float) -> list[Sent]:
        self.is_connected = True
        return self._do(self._session.resume(now))

    def alarm(self, now: float) -> list[Sent]:
        """Note that so much time has passed that everything is due."""
        self._sleeps = not self.is_connected
        return []

    def wake(self, now: float) -> list[Sent]:
        """Do what is due, and what will be: nothing else happens before the next lease ends."""
        self._sleeps = True
        return self._do(self._session.wake(now + JUMP))

    def hear(self, now: float, sender: NodeId, message: Message) -> list[Sent]:
        self._heard.note(message)
        sent = self._do(self._session.handle(message, now))
        return sent + self._do(self._session.took(dict.fromkeys(self._session.subscribed, EVERYTHING)))

    def _do(self, acts: Iterable[Act]) -> list[Sent]:
        sent: list[Sent] = []
        for act in acts:
            match act:
                case Say(message):
                    sent.append(Sent(self.broker, message))
                case Hand(event, numbers):
                    for name, _ in numbers:
                        self.watches[name].give(event, *self._heard.place_of(event))
                case Missing(name, reason):
                    self.watches[name].tell(self._heard.gap(reason))
                case Lost(name) | Over(name):
                    raise Wrong(f"{self.name}: {act}")
                case Done(Subscribe(name, wanted), reason):
                    if reason:
                        raise Wrong(f"{self.name} may not subscribe: {reason}")
                    if name in self.watches:
                        self.watches[name].settle(wanted, self._heard.numbered)
                case Done(Advertise(), reason) if reason:
                    raise Wrong(f"{self.name} may not advertise: {reason}")
                case Done(Publish(events), reason, refused):
                    self._answered(events, reason, {one.id for one in refused})
        for name, watch in self.watches.items():
            watch.know(self._session.seen(name))
        return sent

    def _answered(self, events: tuple[Event, ...], reason: str, refused: set[str]) -> None:
        if (reason or refused) and not self._settings.advertisements:
            raise Wrong(f"{self.name} may not publish: {reason}")
        for event in events:
            self.unanswered.discard(event.id)
            if reason or event.id in refused:
                self.refused.add(event.id)


class _Heard:
    """Remembers the numbers and the log of each event, and the extent of each gap: the session does not tell them."""

    def __init__(self) -> None:
        self._events: dict[int, tuple[Event, tuple[Number, ...], str]] = {}
        self.numbered: Number = 0, 0  # when the last request was accepted
        self._gaps: dict[str, Gap] = {}

    def note(self, message: Message) -> None:
        match message:
            case Notify(deliveries, logs) | Answer(kept=deliveries, logs=logs):
                of = {broker: str(Origin(broker, log)) for broker, log in logs}
                for one in each_of(deliveries):
                    if one.gap is not None:
                        self._gaps[gap_text(one.gap)] = one.gap
                    elif one.event is not None:
                        self._events[id(one.event)] = one.event, one.numbers, of[one.event.broker or ""]
            case Accepted(epoch=epoch, last=last):
                self.numbered = epoch, last

    def place_of(self, event: Event) -> tuple[tuple[Number, ...], str]:
        """Return the numbers of an event, and its log."""
        return self._events[id(event)][1:]

    def gap(self, text: str) -> Gap:
        return self._gaps.get(text) or Gap("", 0, 0, text)


@cache
def event_of(id: str) -> Event:
    """Return the event that a client publishes under an id."""
    client = id.partition("-")[0]
    return Event("e", {"v": _value_of(client)}, source=client, id=id, time=int(CLOCK * MICROS))


@cache
def offer_of(client: str) -> Filter:
    return Filter.parse(f"v = {_value_of(client)}")


def _value_of(client: str) -> int:
    """Return what a client publishes: the narrow filter matches every other one of them."""
    return (int(client[1:]) - 1) % 2 + 1
