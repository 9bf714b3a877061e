"""The sources that publish at a broker: their last ids, within bounds."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from vestnik.model.streams import STREAMS, WINDOW

IDS: Final = 16 * WINDOW
"""Ids of a source that are remembered, at least. A client has at most WINDOW unanswered, a source several clients."""
MOST_IDS: Final = 500_000
"""Ids that are remembered of all sources together.

From half of them on, a source that publishes more keeps WINDOW ids instead of IDS, before another is forgotten.
"""

_NONE: Final[frozenset[str]] = frozenset()


class KnownIds:
    """The last ids of a source: those since there were enough of them, and those before."""

    __slots__ = ("new", "old")

    def __init__(self) -> None:
        self.new: set[str] = set()
        self.old: set[str] | frozenset[str] = _NONE

    def __len__(self) -> int:
        return len(self.new) + len(self.old)

    def isdisjoint(self, ids: set[str]) -> bool:
        return ids.isdisjoint(self.new) and ids.isdisjoint(self.old)

    def discard(self, id: str) -> None:
        self.new.discard(id)
        self.old = self.old - {id} or _NONE


class KnownSource:
    """A source: the ids of which it was answered, and the others."""

    __slots__ = ("answered", "unanswered")

    def __init__(self) -> None:
        self.answered: KnownIds | None = None
        self.unanswered: KnownIds | None = None

    def __len__(self) -> int:
        """How many ids are remembered of it."""
        return sum(len(ids) for ids in (self.answered, self.unanswered) if ids is not None)

    def knows(self, id: str) -> bool:
        one, other = self.answered, self.unanswered
        if one is not None and (id in one.new or id in one.old):
            return True
        return other is not None and (id in other.new or id in other.old)

    def knows_none(self, ids: set[str]) -> bool:
        return all(known is None or known.isdisjoint(ids) for known in (self.answered, self.unanswered))

    def ids(self, *, answered: bool) -> KnownIds:
        """Return the ids of one kind, to be added to."""
        found = self.answered if answered else self.unanswered
        if found is None:
            found = KnownIds()
            if answered:
                self.answered = found
            else:
                self.unanswered = found
        return found


class KnownSources:
    """The sources that published last: STREAMS of them at most, with MOST_IDS ids at most.

    The one that has published nothing for longest is forgotten first.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, KnownSource] = OrderedDict()
        self._ids = 0

    def __len__(self) -> int:
        return len(self._known)

    def get(self, name: str) -> KnownSource | None:
        return self._known.get(name)

    def of(self, name: str) -> KnownSource:
        """Return the source of this name, which publishes now."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = KnownSource()
            self._bound()
        else:
            self._known.move_to_end(name)
        return known

    def add(self, source: KnownSource, id: str, *, answered: bool) -> None:
        """Remember an id that the source, the last that was asked for, has not published before."""
        kind = source.ids(answered=answered)
        if len(kind.new) >= WINDOW:
            self._make_room(kind, 1)
        kind.new.add(id)
        self._ids += 1
        if self._ids > MOST_IDS:
            self._bound()

    def add_all(self, source: KnownSource, ids: set[str], *, answered: bool) -> None:
        """As `add`, for at most WINDOW at once."""
        kind = source.ids(answered=answered)
        self._make_room(kind, len(ids))
        kind.new |= ids
        self._ids += len(ids)
        self._bound()

    def _make_room(self, kind: KnownIds, number: int) -> None:
        """Let a source forget its older ids if `number` more would exceed its window."""
        if len(kind.new) + number > (IDS if self._ids <= MOST_IDS // 2 else WINDOW):
            self._ids -= len(kind.old)
            kind.old, kind.new = kind.new, set()

    def discard(self, name: str, id: str) -> None:
        """Forget one id."""
        source = self._known.get(name)
        if source is not None:
            before = len(source)
            for ids in (source.answered, source.unanswered):
                if ids is not None:
                    ids.discard(id)
            self._ids += len(source) - before

    def _bound(self) -> None:
        while len(self._known) > STREAMS or (self._ids > MOST_IDS and len(self._known) > 1):
            _, gone = self._known.popitem(last=False)
            self._ids -= len(gone)
