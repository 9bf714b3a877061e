"""Histories of clients: a broker asks its client for the past, and hands the answer on as a page of a log.

To all brokers such a history is a log of copies like any other. It is what a client answers to one question: what is
wanted of its advertisement, and by which replay. An offset is a place in that answer, from 1 on. The broker trusts the
client with nothing else: it drops what is not wanted, not advertised or reserved for brokers, and removes the address
that an event had in a log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from vestnik.errors import FilterTooComplex
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import is_reserved
from vestnik.model.times import MICROS
from vestnik.model.work import bounded
from vestnik.recovery.pages import any_of
from vestnik.recovery.reads import FUTURE, PageRequest
from vestnik.recovery.selection import Selection
from vestnik.recovery.topology import Say
from vestnik.wire.messages import NodeId, Recall, Recalled
from vestnik.wire.origins import FetchPage, Origin, ReadTerms, Slice, Span
from vestnik.wire.packing import pack
from vestnik.wire.pages import PAGE, PAGE_SIZE
from vestnik.wire.replays import Replay

CLIENT_WITHIN: Final = 20.0
"""Seconds in which a client answers all of a request. Brokers wait longer than that, so they are told the reason."""
ANSWER_SIZE: Final = 64 * 1024 * 1024
"""Bytes of an answer of which the last or the latest events are picked."""
ANSWER_EVENTS: Final = 10_000_000
"""Events of an answer. An endless answer would keep a subscription from all later events."""
LONGEST: Final = 300
"""Characters of the reason that a client gives."""
INTERSECTING: Final = 5_000
"""Steps that intersecting filters with an advertisement may cost. After that, the client is asked for all of it."""

WantedPage: TypeAlias = FetchPage | PageRequest
"""A page that another broker, or this one, wants."""


class Offered(NamedTuple):
    """An advertisement whose client answers replays: its name and its filter."""

    client: NodeId
    name: str
    filter: Filter


class Answered(NamedTuple):
    """A page for the broker that asked for it, and the edge of the log, as far as it is known."""

    asked: WantedPage
    page: Slice
    edge: int


class ClientRead:
    """A request that a client has not answered. `skip` is how many events of the answer were had before."""

    def __init__(self, asked: WantedPage, offered: Offered, wanted: Filter, at: float) -> None:
        terms = asked.terms
        self.asked = asked
        self.at = at
        self.skip = max(0, terms.start - 1) if terms.pick is None else 0
        self._replay = _replay(terms)
        self._offered = offered
        self._wanted = wanted
        self._is_wanted = any_of(terms.filters)
        self._size = 0
        self._selection = None if terms.pick is None else Selection(terms.filters, terms.pick)

    @property
    def client(self) -> NodeId:
        return self._offered.client

    def say(self, number: int) -> Say:
        return Say(self.client, Recall(number, self._offered.name, self._wanted, self._replay, self.skip))

    def answered(self, events: tuple[Event, ...], now: float) -> Answered | None:
        """Take in the next events of the answer, and return a page; None if the client is to be asked for more."""
        if not events:
            return self.ended()
        size = sum([len(pack(event)) for event in events])
        self._size += size
        if wrong := self._too_much(len(events), size):
            return self.failed(wrong)
        first, accepted = self.skip + 1, int(now * MICROS)
        self.skip += len(events)
        kept = [(place, _unplaced(one)) for place, one in enumerate(events, first) if self._may_have(one)]
        if self._selection is not None:
            for _, event in kept:
                self._selection.take(event, accepted)
            return None
        found, offsets = tuple([event for _, event in kept]), tuple([place for place, _ in kept])
        upto, kept_size = self.skip + 1, size * len(kept) // len(events)
        page = Slice(first, found, upto, None, "", (accepted,) * len(found), kept_size, offsets, end=upto)
        return Answered(self.asked, page, upto + 1)

    def _too_much(self, count: int, size: int) -> str:
        """Return why a page of `count` events exceeds a limit; empty if it does not."""
        if count > PAGE or (size > PAGE_SIZE and count > 1):
            return f"a page of {count:,} events and {size:,} bytes is too large"
        if self._selection is not None and self._size > ANSWER_SIZE:
            return f"it is more than {ANSWER_SIZE:,} bytes"
        return f"it is more than {ANSWER_EVENTS:,} events" if self.skip + count > ANSWER_EVENTS else ""

    def ended(self) -> Answered:
        """Return the end of the log; for a replay that picks, all that was picked."""
        if self._selection is None:
            end = self.skip + 1
            return Answered(self.asked, Slice(end, (), end, end=end), end)
        picked = self._selection.found()
        events, times = tuple([event for event, _ in picked]), tuple([time for _, time in picked])
        return Answered(self.asked, Slice(1, events, 1, None, self._selection.left_out, times), 1)

    def failed(self, reason: str) -> Answered:
        """Return the end of the log with a gap; a replay that picks has nothing of it."""
        if self._selection is not None:
            return Answered(self.asked, Slice(1, (), 1, None, reason), 1)
        first = self.skip + 1
        return Answered(
            self.asked, Slice(first, (), first + 1, Span(first, first + 1), reason, end=first + 1), first + 1
        )

    def _may_have(self, event: Event) -> bool:
        return self._offered.filter.matches(event) and not is_reserved(event.type) and self._is_wanted(event)


class ClientHistories:
    """The histories for which clients of one broker answer, and what they were asked."""

    def __init__(self) -> None:
        self._offered: dict[Origin, Offered] = {}
        self._open: dict[int, ClientRead] = {}
        self._last = 0

    def __contains__(self, origin: Origin) -> bool:
        return origin in self._offered

    def offer(self, origin: Origin, offered: Offered) -> None:
        self._offered[origin] = offered

    def withdraw(self, origin: Origin) -> None:
        """Forget a history and its open questions; the readers that wait learn that the history cannot be reached."""
        del self._offered[origin]
        self._open = {number: one for number, one in self._open.items() if one.asked.origin != origin}

    def ask(self, asked: WantedPage, now: float) -> Say | Answered:
        """Ask the client, unless nothing is wanted of what it answers for."""
        offered = self._offered[asked.origin]
        wanted = _common(offered.filter, asked.terms.filters)
        read = ClientRead(asked, offered, wanted, now)
        if not wanted.region:
            return read.ended()
        number = self._last = max(self._last + 1, int(now * MICROS))  # above those of earlier lives of the broker
        self._open[number] = read
        return read.say(number)

    def recalled(self, message: Recalled, client: NodeId, now: float) -> Say | Answered | None:
        """Take in an answer of a client; ignore it if it answers no open question of this client."""
        read = self._open.get(message.number)
        if read is None or read.client != client:
            return None
        reason = message.reason[:LONGEST]
        answered = read.failed(reason) if reason else read.answered(message.events, now)
        if answered is None:
            return read.say(message.number)
        del self._open[message.number]
        return answered

    def late(self, now: float) -> list[Answered]:
        """Give up questions that were not answered in time."""
        late = [number for number, one in self._open.items() if now - one.at > CLIENT_WITHIN]
        return [self._open.pop(number).failed(f"no answer for {CLIENT_WITHIN:g} s") for number in late]

    def shift(self, by: float) -> None:
        """Move the times of questions, as the clock was."""
        for one in self._open.values():
            one.at += by


def _replay(terms: ReadTerms) -> Replay:
    """Return the replay for which a log is read, as it was asked for."""
    if terms.pick is not None:
        return replace(terms.pick, most=None)
    return Replay(all=True) if terms.since is None else Replay(since=terms.since + FUTURE)


def _common(offered: Filter, filters: Iterable[Filter]) -> Filter:
    """Return what is wanted of an advertisement; all of it if that takes too long to find out."""
    wanted = Filter.none()
    try:
        with bounded(INTERSECTING):
            for one in filters:
                wanted = wanted | (one & offered)
    except FilterTooComplex:
        return offered
    return wanted


def _unplaced(event: Event) -> Event:
    """Return an event without its address in a log: the client may have invented it."""
    return event if event.seq is None and event.broker is None else event.replace(stream=None, seq=None)
