"""Events about what clients want and offer: subscriptions and advertisements, made and ended.

They are made only where somebody asks for such events. Who asks later is told first what is open: of what was told
before, the same event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict, replace

from vestnik.broker.clients import Client
from vestnik.broker.effects import Effect, Send
from vestnik.errors import FilterError
from vestnik.model.boxes import Box
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.overlaps import Overlaps, parsed
from vestnik.model.reserved import ADVERTISEMENT, BROKER, SUBSCRIPTION, asks, ordinary, others
from vestnik.model.spaces import DATA
from vestnik.model.times import MICROS
from vestnik.recovery.reader import ReaderKey
from vestnik.recovery.reads import ANSWER_WITHIN
from vestnik.recovery.selection import Selection
from vestnik.recovery.topology import Topology
from vestnik.routing.propagation import Source
from vestnik.wire.messages import Addressed, Advertise, NodeId, Opened, Subscribe, WhatIsOpen
from vestnik.wire.replays import Replay

MADE: Final = "made"
ENDED: Final = "ended"
PRIVATE: Final = "."
"""How names of subscriptions and advertisements begin that nobody else is to know of."""
JOINED: Final = "joined"
LEFT: Final = "left"

_TYPE: Final = ("type",)
_FILTER: Final = (DATA, "filter")


class Wish(NamedTuple):
    """What is announced: a subscription or an advertisement of a client, under its name."""

    type: str
    client: NodeId
    name: str
    filter: Filter
    replay: Replay | None = None

    @property
    def key(self) -> tuple[str, NodeId, str]:
        return self.type, self.client, self.name


class OpenFetch:
    """What a fetch has heard of what is open at brokers, until those that are `asked` have answered."""

    def __init__(self, key: ReaderKey, wanted: Filter, replay: Replay) -> None:
        self.key = key
        self.filter = wanted
        self.events: list[Event] = []
        self.asked: set[NodeId] = set()
        self.missing: list[str] = []
        self._replay = replay

    def picked(self) -> list[Event]:
        """Return the events that the fetch is of, in the order of time."""
        selection = Selection((self.filter,), self._replay)
        for event in sorted(self.events, key=lambda event: event.time or 0):
            selection.take(event, event.time or 0)
        return [event for event, _ in selection.found()]


class Asked(NamedTuple):
    """A question to a broker what is open there, and for whom it was asked at the time `at`."""

    broker: NodeId
    asker: ReaderKey | OpenFetch
    at: float


class Announcements:
    """What one broker announces, and whom it asks for what is open."""

    def __init__(self, broker: NodeId) -> None:
        self._broker = broker
        self._last = 0  # the number of the last question
        self._asked: dict[int, Asked] = {}  # by the number of a question
        self._news: list[tuple[Wish, str]] = []
        self._told: dict[tuple[str, NodeId, str], Event] = {}  # what is open and was told, without its data

    def changed(
        self, type: str, source: Source, before: Filter | None, after: Subscribe | Advertise | None = None
    ) -> None:
        """Note that what a client wants or offers under a name is something else now, or nothing."""
        if before is not None and (after is None or before != after.filter):
            self.ended(Wish(type, *source, before))
        if after is not None:
            replay = after.replay if isinstance(after, Subscribe) else None
            self.made(Wish(type, *source, after.filter, replay))

    def made(self, wish: Wish) -> None:
        """Note it for the next time that `news` is asked for."""
        self._news += [(one, MADE) for one in announced(wish)]

    def ended(self, wish: Wish) -> None:
        self._news += [(one, ENDED) for one in announced(wish)]

    def news(self, now: float, hearing: Sequence[Filter]) -> list[Event]:
        """What is to be told since the last time, and concerns anybody who is hearing."""
        news, self._news = self._news, []
        found: list[Event] = []
        for wish, verb in news:
            self._told.pop(wish.key, None)
            if any(concerns(one, wish) for one in hearing):
                found.append(self._first(wish, now) if verb == MADE else self._event(wish, ENDED, now))
        return found

    def open(self, wanted: Iterable[Filter], wishes: Iterable[Wish], now: float) -> list[Event]:
        """Of the `wishes` that there are, those that somebody asks for."""
        asked = [one for one in wanted if asks(one)]
        if not asked:
            return []
        about = [one for wish in wishes for one in announced(wish)]
        events = [self._again(wish, now) for wish in about if any(concerns(one, wish) for one in asked)]
        return [event for event in events if any(one.matches(event) for one in asked)]

    def changes(self, before: Set[NodeId], after: Set[NodeId], now: float) -> list[Event]:
        """Brokers that came within reach of this one, or are not any more: for its own clients only."""
        left = [(name, LEFT) for name in sorted(before - after)]
        joined = [(name, JOINED) for name in sorted(after - before)]
        return [self._stamp(f"{BROKER}.{verb}", {"broker": name}, now) for name, verb in left + joined]

    def _first(self, wish: Wish, now: float) -> Event:
        event = self._event(wish, MADE, now)
        self._told[wish.key] = event.replace(data=None)
        return event

    def _again(self, wish: Wish, now: float) -> Event:
        told = self._told.get(wish.key)
        return self._first(wish, now) if told is None else told.replace(data=self._data(wish))

    def _event(self, wish: Wish, verb: str, now: float) -> Event:
        return self._stamp(f"{wish.type}.{verb}", self._data(wish), now)

    def _stamp(self, type: str, data: dict[str, Any], now: float) -> Event:
        return Event(type, data, source=self._broker, time=int(now * MICROS))

    # --- what is open elsewhere ---

    def ask(
        self, key: ReaderKey, wanted: Filter, topology: Topology, now: float, broker: NodeId | None = None
    ) -> list[Effect]:
        """Ask a broker, or all that can be reached, what is open there that a subscription asks for."""
        asked = [broker] if broker is not None else sorted(topology.brokers() - {self._broker})
        return [effect for one in asked for effect in self._ask(one, key, wanted, topology, now)]

    def fetch(self, fetch: OpenFetch, opened: Iterable[Event], topology: Topology, now: float) -> list[Effect]:
        """Ask all brokers that can be reached what is open there, beside what is `opened` at this one."""
        fetch.events += opened
        effects: list[Effect] = []
        for broker in sorted(topology.brokers() - {self._broker}):
            asked = self._ask(broker, fetch, fetch.filter, topology, now)
            fetch.asked |= {broker} if asked else set()
            effects += asked
        return effects

    def _ask(
        self, broker: NodeId, asker: ReaderKey | OpenFetch, wanted: Filter, topology: Topology, now: float
    ) -> list[Effect]:
        way = topology.next_hop_to(broker)
        if way is None:
            return []
        number = self._last = max(self._last + 1, int(now * MICROS))  # beyond those of earlier lives of the broker
        self._asked[number] = Asked(broker, asker, now)
        return [Send(way, Addressed(broker, self._broker, WhatIsOpen(number, wanted)))]

    def opened(self, message: Opened) -> tuple[list[tuple[ReaderKey, Event]], OpenFetch | None]:
        """Return for which subscription the answer of another broker is, or which fetch has all answers with it."""
        asked = self._asked.get(message.number)
        if asked is None:
            return [], None
        if not message.more:
            del self._asked[message.number]
        if not isinstance(asked.asker, OpenFetch):
            return [(asked.asker, event) for event in message.events], None
        asked.asker.events += message.events
        return [], None if message.more else self._answered(asked)

    def lost(self, brokers: Set[NodeId]) -> list[OpenFetch]:
        """Give up questions to brokers that cannot be reached; return the fetches that wait for no others."""
        return self._give_up(lambda asked: asked.broker in brokers, "cannot be reached")

    def late(self, now: float) -> list[OpenFetch]:
        """Give up questions that were not answered in time; return the fetches that wait for no others."""
        return self._give_up(lambda asked: now - asked.at > ANSWER_WITHIN, f"has not answered for {ANSWER_WITHIN:g} s")

    def _give_up(self, is_over: Callable[[Asked], bool], reason: str) -> list[OpenFetch]:
        over = [number for number, asked in self._asked.items() if is_over(asked)]
        found: list[OpenFetch] = []
        for asked in map(self._asked.pop, over):
            if isinstance(asked.asker, OpenFetch):
                asked.asker.missing.append(f"{asked.broker} {reason}")
                found += [one for one in [self._answered(asked)] if one is not None]
        return found

    @staticmethod
    def _answered(asked: Asked) -> OpenFetch | None:
        """Note that a fetch waits for one broker less; return it if that was the last."""
        fetch = asked.asker
        assert isinstance(fetch, OpenFetch)
        fetch.asked.discard(asked.broker)
        return None if fetch.asked else fetch

    def shift(self, by: float) -> None:
        """Move the times of questions, as the clock was."""
        self._asked = {number: asked._replace(at=asked.at + by) for number, asked in self._asked.items()}

    def _data(self, wish: Wish) -> dict[str, Any]:
        replay = None if wish.replay is None else {k: v for k, v in asdict(wish.replay).items() if v and k != "most"}
        names = {"client": wish.client, "name": wish.name, "broker": self._broker}
        return {"filter": _readable(wish.filter), "replay": replay, **names}


def announced(wish: Wish) -> list[Wish]:
    """What is announced of a wish: not that somebody asks for announcements, but what it wants beside.

    Nothing is of what has a name that begins with a dot.
    """
    if wish.name.startswith(PRIVATE):
        return []
    if not asks(wish.filter):
        return [wish]
    rest = others(wish.filter)
    return [wish._replace(filter=rest)] if rest.region else []


def concerns(asked: Filter, wish: Wish) -> bool:
    """Whether somebody who asks for announcements may get one about a wish: a quick look, before there is an event."""
    return any(_may_hold(box, wish) for box in asked.region.boxes)


def _may_hold(box: Box, wish: Wish) -> bool:
    types = dict(box.sets).get(_TYPE)
    if types is not None and not any(types.contains(f"{wish.type}.{verb}") for verb in (MADE, ENDED)):
        return False
    overlaps = [atom for path, atom, holds in box.literals if holds and path == _FILTER and atom.kind == Overlaps.name]
    return all(parsed(atom.literals[0]).overlaps(wish.filter) for atom in overlaps)


def _readable(wanted: Filter) -> str | dict[str, Any]:
    """A filter as text; in plain data where the text is beyond what is read."""
    text = str(wanted)
    try:
        parsed(text)
    except FilterError:
        return wanted.to_dict()
    return text


def wishes(clients: Mapping[NodeId, Client], offers: Mapping[Source, Filter]) -> Iterator[Wish]:
    """All that is open at a broker."""
    for client, known in clients.items():
        for name, subscription in known.subscriptions.items():
            yield Wish(SUBSCRIPTION, client, name, subscription.filter, subscription.replay)
    for (client, name), offered in offers.items():
        yield Wish(ADVERTISEMENT, client, name, offered)


def admitted(message: Subscribe) -> Subscribe:
    """Return a subscription without the events of brokers that it does not ask for."""
    wanted = ordinary(message.filter)
    return message if wanted is message.filter else replace(message, filter=wanted)
