"""The feeds of a broker: one that readers share for each origin, and those of single readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import TypeVar

from vestnik.recovery.feed import Feed
from vestnik.recovery.reader import ReaderKey
from vestnik.wire.messages import NodeId
from vestnik.wire.origins import Origin

Outer = TypeVar("Outer")
Inner = TypeVar("Inner")


class Roster:
    """Readers share the `main` feed of an origin unless they have a feed of their own there."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.main: dict[Origin, Feed] = {}
        self._by_origin: dict[Origin, dict[ReaderKey, Feed]] = {}
        self._by_reader: dict[ReaderKey, dict[Origin, Feed]] = {}

    def of(self, reader: ReaderKey, origin: Origin) -> Feed | None:
        """Return the feed by which a reader reads an origin."""
        return self._by_origin.get(origin, {}).get(reader) or self.main.get(origin)

    def own(self, reader: ReaderKey) -> Mapping[Origin, Feed]:
        """Return the feeds that a reader has to itself."""
        return self._by_reader.get(reader, {})

    def apart(self, origin: Origin) -> Mapping[ReaderKey, Feed]:
        """Return the feeds of single readers at an origin."""
        return self._by_origin.get(origin, {})

    def all(self, origin: Origin) -> Iterator[Feed]:
        """Yield the feeds at an origin, the shared one first."""
        if origin in self.main:
            yield self.main[origin]
        yield from list(self.apart(origin).values())

    def origins(self, reader: ReaderKey) -> list[Origin]:
        """Return the origins that a reader reads."""
        return list(dict.fromkeys([*self.main, *self.own(reader)]))

    def logs_of(self, broker: NodeId) -> list[Origin]:
        """Return the logs of a broker that any reader reads."""
        return [origin for origin in dict.fromkeys([*self.main, *self._by_origin]) if origin.broker == broker]

    def has(self, feed: Feed) -> bool:
        """Return whether a feed is still in use."""
        found = self.main.get(feed.origin) if feed.reader is None else self.apart(feed.origin).get(feed.reader)
        return found is feed

    def add(
        self, reader: ReaderKey, origin: Origin, cursor: int, since: int | None = None, *, replays: bool = False
    ) -> Feed:
        """Give a reader a feed of its own."""
        feed = Feed(origin, cursor, since, reader, replays=replays, number=next(self._numbers))
        self._by_origin.setdefault(origin, {})[reader] = feed
        self._by_reader.setdefault(reader, {})[origin] = feed
        return feed

    def share(self, reader: ReaderKey, origin: Origin) -> None:
        """Let a reader use the shared feed."""
        _remove(self._by_origin, origin, reader)
        _remove(self._by_reader, reader, origin)

    def drop_origin(self, origin: Origin) -> None:
        for reader in list(self.apart(origin)):
            self.share(reader, origin)
        self.main.pop(origin, None)

    def drop_reader(self, reader: ReaderKey) -> None:
        for origin in list(self.own(reader)):
            self.share(reader, origin)


def _remove(feeds: dict[Outer, dict[Inner, Feed]], outer: Outer, inner: Inner) -> None:
    """Remove a feed, and the dictionary that holds it if it was the last."""
    held = feeds.get(outer, {})
    held.pop(inner, None)
    if not held:
        feeds.pop(outer, None)
