"""Events about what clients want and offer: subscriptions and advertisements, made and ended.

They are made only where somebody asks for such events. Who asks later is told first what is open: of what was told
before, the same event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict, replace

from vestnik.broker.clients import Client
from vestnik.errors import FilterError
from vestnik.model.boxes import Box
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.overlaps import Overlaps, parsed
from vestnik.model.reserved import ADVERTISEMENT, BROKER, SUBSCRIPTION, asks, ordinary, others
from vestnik.model.spaces import DATA
from vestnik.model.times import MICROS
from vestnik.routing.propagation import Source
from vestnik.wire.messages import NodeId, Subscribe
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


class Announcements:
    """What one broker announces. `stamped` gives an event its stream and seq."""

    def __init__(self, broker: NodeId, stamped: Callable[[Event], Event]) -> None:
        self._broker = broker
        self._stamped = stamped
        self._news: list[tuple[Wish, str]] = []
        self._told: dict[tuple[str, NodeId, str], Event] = {}  # what is open and was told, without its data

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
        return sorted([e for e in events if any(one.matches(e) for one in asked)], key=lambda event: event.seq or 0)

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
        return self._stamped(Event(type, data, source=self._broker, time=int(now * MICROS)))

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
    """A subscription at the door: without the events of brokers that it does not ask for.

    What was open and has ended since cannot be made up for, so one that asks for them begins anew.
    """
    wanted = ordinary(message.filter)
    if asks(wanted):
        return replace(message, filter=wanted, seen=())
    return message if wanted is message.filter else replace(message, filter=wanted)
