"""Pages of logs: a broker reads its own log, asks its clients for their pasts, and passes on what is for others."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from vestnik.model.filters import Filter
from vestnik.model.times import MICROS
from vestnik.recovery.answers import Answered, ClientHistories, WantedPage
from vestnik.recovery.pages import parts_of
from vestnik.recovery.reads import PageRequest, Requests
from vestnik.recovery.tail import Tail
from vestnik.recovery.topology import Say, Topology
from vestnik.wire.messages import NodeId, Recalled
from vestnik.wire.origins import FetchPage, PageRead, ReadTerms, Slice


class ReadLog(NamedTuple):
    """Read a page of this broker's own log below offset `end` from disk. It comes back to `log_read` by its number."""

    number: int
    terms: ReadTerms
    end: int


Served: TypeAlias = Say | ReadLog
NoteRead: TypeAlias = Callable[[NodeId, int, ReadTerms, Slice | None], None]
"""Told that a feed of another broker has read a page of the own log; None if it is read from disk."""


class Serving:
    """The pages that one broker reads and passes on. `requests` are its own; their pages are handed over there.

    `wanted_by` returns filters for everything that is wanted through a neighbour, and `clock` the time.
    """

    def __init__(
        self,
        tail: Tail,
        topology: Topology,
        requests: Requests,
        wanted_by: Callable[[NodeId], tuple[Filter, ...]],
        clock: Callable[[], float],
        note_read: NoteRead,
    ) -> None:
        self.histories = ClientHistories()
        self._own = topology.own
        self._tail = tail
        self._topology = topology
        self._requests = requests
        self._wanted_by = wanted_by
        self._clock = clock
        self._note_read = note_read
        self._numbers = count(1)
        self._reading: dict[int, tuple[WantedPage, int]] = {}  # with the end of the log before

    # --- what this broker reads ---

    def read(self, read: PageRequest) -> list[Served]:
        """Read a page for the feeds of this broker: of its own log at once if it is in memory."""
        if read.origin in self.histories:
            return self._ask_client(read)
        if read.origin != self._own:
            hop = self._topology.next_hop(read.origin)
            assert hop is not None, f"{read.origin} is fetched, and has no next hop"
            return [Say(hop, read.message())]
        page = self._read_wanted(read) or self._tail.read(read.terms)
        if page is None:
            return self._read_from_disk(read)
        self._requests.read(read.request, self._own, page, self._tail.routed)
        return []

    def _read_wanted(self, read: PageRequest) -> Slice | None:
        """Read events of which it is known who wanted them; None if that is not known of all."""
        readers, start = read.readers, read.terms.start
        if not readers or any(start < reader.known_from for reader in readers):
            return None
        return self._tail.read_wanted(start, read.terms.limit, readers)

    def page_read(self, message: PageRead) -> list[Served]:
        """Take in a page, or pass it on to the broker that asked for it."""
        if not message.path:
            self._requests.read(message.request, message.origin, message.page, message.edge)
            return []
        *path, back = message.path
        if back not in self._topology.neighbours:
            return []
        return [Say(back, PageRead(message.origin, message.request, message.page, message.edge, tuple(path)))]

    # --- what other brokers ask for ---

    def fetch_page(self, message: FetchPage, sender: NodeId) -> list[Served]:
        """Read a page of the own log, or pass the request on to its origin."""
        back = (*message.path, sender)
        if message.origin != self._own and message.origin not in self.histories:
            hop = self._topology.next_hop(message.origin)
            passed = FetchPage(message.origin, message.request, message.terms, message.feed, back)
            return [] if hop is None or hop == sender else [Say(hop, passed)]
        terms = message.terms
        if terms.is_shared:
            terms = replace(terms, filters=self._wanted_by(sender))
        asked = FetchPage(message.origin, message.request, terms, message.feed, back)
        if message.origin in self.histories:
            return self._ask_client(asked)
        page = self._tail.read(terms)
        self._note_read(back[0], message.feed, terms, page)
        if page is None:
            return self._read_from_disk(asked)
        return self._hand_over(Answered(asked, page, self._tail.routed))

    def _hand_over(self, answered: Answered) -> list[Served]:
        """Take in a page, or answer another broker: with several messages if what was picked is too large for one."""
        asked, page, edge = answered
        if not isinstance(asked, FetchPage):
            self._requests.read(asked.request, asked.origin, page, edge)
            return []
        *path, back = asked.path
        if back not in self._topology.neighbours:
            return []
        parts = [page] if asked.terms.pick is None else parts_of(page)
        return [Say(back, PageRead(asked.origin, asked.request, part, edge, tuple(path))) for part in parts]

    # --- from disk ---

    def _read_from_disk(self, asked: WantedPage) -> list[Served]:
        number = next(self._numbers)
        self._reading[number] = asked, self._tail.routed
        return [ReadLog(number, self._until_now(asked.terms), self._tail.routed)]

    def _until_now(self, terms: ReadTerms) -> ReadTerms:
        """Let a time that is still to come mean now: more may be accepted before that time until the disk is read."""
        start, since = terms.start, terms.since
        if since is None or self._tail.latest >= since:
            return terms
        if terms.pick is not None:
            return ReadTerms(max(start, self._tail.routed), terms.filters, terms.limit, None, terms.pick)
        return ReadTerms(start, terms.filters, terms.limit, min(since, int(self._clock() * MICROS)))

    def log_read(self, number: int, page: Slice) -> list[Served]:
        """Take in a page that was read from disk; what was routed meanwhile is not in it."""
        asked, end = self._reading.pop(number)
        if end < self._tail.routed and not self._tail.is_history:
            page = replace(page, end=end)
        return self._hand_over(Answered(asked, page, max(self._tail.routed, page.upto)))

    # --- from clients ---

    def _ask_client(self, asked: WantedPage) -> list[Served]:
        return self._told(self.histories.ask(asked, self._clock()))

    def recalled(self, message: Recalled, client: NodeId) -> list[Served]:
        """Take in what a client answers."""
        return self._told(self.histories.recalled(message, client, self._clock()))

    def _told(self, outcome: Say | Answered | None) -> list[Served]:
        """Ask the client, or hand over what it has answered."""
        if outcome is None:
            return []
        return [outcome] if isinstance(outcome, Say) else self._hand_over(outcome)

    def late(self) -> list[Served]:
        """Give up what clients have not answered in time, and send requests again that are wanted still."""
        given_up = [act for one in self.histories.late(self._clock()) for act in self._hand_over(one)]
        return [*given_up, *[act for read in self._requests.late() for act in self.read(read)]]

    def shift(self, by: float) -> None:
        """Move all times, as the clock was."""
        self._requests.shift(by)
        self.histories.shift(by)
