"""A broker `b`, message by message, and logs of other brokers that answer what it reads of them."""

from __future__ import annotations

from typing import Any

from vestnik import Event, Filter
from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import (
    Append,
    Appended,
    Effect,
    LinkUp,
    LogRead,
    OfferEnded,
    OfferMade,
    ReadLog,
    Send,
    SubscriptionChanged,
    SubscriptionEnded,
    SubscriptionMade,
)
from vestnik.model.times import MICROS
from vestnik.recovery.pages import read_page
from vestnik.recovery.reads import PageRequest
from vestnik.recovery.tail import Tail
from vestnik.routing.propagation import Leases
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.wire.messages import Accepted, Gap, Message, NodeId, Notify, Publish
from vestnik.wire.origins import FetchPage, Offer, Origin, OriginHere, PageRead, Routed
from vestnik.wire.packing import pack

CHEAP, DEAR, ACME = (Filter.parse(text) for text in ("price < 10", "price > 90", "symbol = 'ACME'"))
PLENTY = 1 << 30
OWN = Origin("b", 1)
OF_CLIENTS = (SubscriptionMade, SubscriptionChanged, SubscriptionEnded, OfferMade, OfferEnded)


def quote(price: float, id: str = "q", **envelope: Any) -> Event:
    return Event("quote", {"symbol": "ACME", "price": price}, source="nyse", id=id, **envelope)


class Far:
    """The log of another broker. The broker `b` reaches it through the neighbour `via`."""

    def __init__(self, world: World, origin: Origin, via: NodeId, room: int) -> None:
        self.origin = origin
        self.via = via
        self.tail = Tail(room)
        self.asked: list[FetchPage] = []
        self._world = world

    def accept(self, *events: Event, time: int | None = None) -> tuple[Event, ...]:
        """Append events and route them, but not to `b`; return them as they are in the log."""
        first, at = self.tail.accept(len(events), self._world.now if time is None else time / MICROS)
        stamped = tuple([event.stamped(self.origin.broker, first + place) for place, event in enumerate(events)])
        offsets = range(first, first + len(stamped))
        self.tail.extend(offsets, at, [pack(event) for event in stamped], [()] * len(stamped))
        return stamped

    def publish(self, *events: Event) -> list[Effect]:
        """Append events and route them to `b`."""
        return self._world.tell(self.via, Routed(self.origin, self.accept(*events)))

    def page_of(self, read: PageRequest) -> PageRead:
        """Return the answer to a request that the broker made."""
        return self.page(read.message())

    def page(self, asked: FetchPage) -> PageRead:
        self.asked.append(asked)
        page = read_page(self.tail, asked.terms, self.tail.routed)
        return PageRead(self.origin, asked.request, page, self.tail.routed, asked.path)


class World:
    """A broker `b` with neighbours `u` and `v`, which have no logs of their own; `now` is whatever the test says."""

    def __init__(
        self,
        strategy: str = "covering",
        router: type[Router] = Router,
        neighbours: tuple[str, ...] = ("u", "v"),
        **options: Any,
    ) -> None:
        leases = options.pop("leases", Leases())
        self.broker = BrokerCore("b", router(make_strategy(strategy), leases), **options)
        self.now = 0.0
        self.disk = Tail(PLENTY)
        self.logs: dict[Origin, Far] = {}
        self.silent: set[Origin] = set()  # logs that do not answer
        for neighbour in neighbours:
            self.tell("b", LinkUp(neighbour))
            self.broker.recovery.meeting.met(neighbour)

    def meet(
        self, broker: str = "x", via: str = "u", log: int = 1, offers: tuple[Offer, ...] = (), room: int = PLENTY
    ) -> Far:
        """Let a log come within reach."""
        origin = Origin(broker, log)
        far = self.logs.setdefault(origin, Far(self, origin, via, room))
        far.via = via
        self.tell(via, OriginHere(origin, frozenset(offers)))
        return far

    def handle(self, sender: str, message: Message) -> list[Effect]:
        """Return the effects of a message, and answer nothing. Leave out the facts about clients."""
        return [one for one in self.broker.handle(message, sender, self.now) if not isinstance(one, OF_CLIENTS)]

    def tell(self, sender: str, message: Message) -> list[Effect]:
        """Return the effects of a message and of all answers to what the broker reads of logs, but not these reads."""
        return self.answer(self.handle(sender, message))

    def answer(self, effects: list[Effect]) -> list[Effect]:
        """Answer the reads among some effects; return the other effects, and those of the answers."""
        found: list[Effect] = []
        for effect in effects:
            match effect:
                case Send(to, FetchPage(origin) as asked) if origin in self.logs and origin not in self.silent:
                    found += self.tell(to, self.logs[origin].page(asked))
                case ReadLog(number, terms, end) if OWN not in self.silent:
                    found += self.tell("b", LogRead(number, read_page(self.disk, terms, end)))
                case _:
                    found.append(effect)
        return found

    def publish(self, client: str, *events: Event) -> list[Effect]:
        """Return what follows when events are stored."""
        appends = [e for e in self.tell(client, Publish(events)) if isinstance(e, Append)]
        return [effect for e in appends for effect in self.store(e)]

    def store(self, append: Append) -> list[Effect]:
        self.disk.accept(len(append.events), append.time / MICROS)
        offsets = range(append.first, append.first + len(append.events))
        self.disk.extend(offsets, append.time, append.packed, [()] * len(append.events))
        return self.tell("b", Appended(append))

    def sent(self, sender: str, message: Message, to: str) -> list[Message]:
        """Return what goes to `to` when `sender` says something."""
        return sent_to(self.tell(sender, message), to)


def sent_to(effects: list[Effect], to: str) -> list[Message]:
    return [effect.message for effect in effects if isinstance(effect, Send) and effect.to == to]


def ids(effects: list[Effect], client: str = "c") -> list[str]:
    """Return what a client gets: ids of events, and gaps as "log first-end"."""
    notices = [message for message in sent_to(effects, client) if isinstance(message, Notify)]
    return [
        one.event.id if one.event else told(one.gap)
        for notice in notices
        for some in notice.deliveries
        for one in some.each()
    ]


def told(gap: Gap | None) -> str:
    assert gap is not None
    return f"{gap.log} {gap.first}-{gap.end}" if gap.log else gap.reason


def asked(effects: list[Effect]) -> list[FetchPage]:
    """Return the pages of other logs that are asked for."""
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    return [message for message in sent if isinstance(message, FetchPage)]


def accepted(effects: list[Effect], client: str = "c") -> list[Accepted]:
    return [message for message in sent_to(effects, client) if isinstance(message, Accepted)]
