"""Picks what is recalled from what was stored, and sends it in pages."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from vestnik.matching.single.index import Matcher
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.spaces import EVENT, Path
from vestnik.wire.messages import Recall, Recalled, Taken
from vestnik.wire.pages import pages
from vestnik.wire.replays import Replay

UNASKED: Final = 8
"""Pages that are sent before whoever recalls has to ask for more."""


class Selection:
    """Picks, of events that come in order, those that a replay is of, and says what it left out."""

    def __init__(self, filters: tuple[Filter, ...], replay: Replay) -> None:
        self._is_wanted = _any_of(filters)
        self._since = replay.since
        self._key = None if replay.latest_by is None else replay.key()
        self._latest: dict[Any, Taken] = {}
        self._replay = replay
        self._count = 0
        self._found: deque[Taken] = deque(maxlen=replay.bound)

    def wants(self, taken: Taken) -> bool:
        """Whether it is one of them unless there are later ones. An event without a time has that of its taking."""
        event = taken.event
        at = taken.time if event.time is None else event.time
        return (self._since is None or at >= self._since) and self._is_wanted(event)

    def take(self, taken: Taken) -> None:
        if not self.wants(taken):
            return
        if self._key is None:
            self._found.append(taken)
            self._count += 1
        else:
            value = key_of(taken.event, self._key)
            self._latest.pop(value, None)
            self._latest[value] = taken

    def taken(self) -> list[Taken]:
        self._found.extend(self._latest.values())
        return list(self._found)

    @property
    def left_out(self) -> str:
        """What was asked for, and is more than there may be, in words."""
        last, most = self._replay.last or sys.maxsize, self._replay.most or sys.maxsize
        number = min(self._count + len(self._latest), last) - most
        return _left_out(number, most)


def _left_out(number: int, most: int) -> str:
    if number <= 0:
        return ""
    older = "1 older one was" if number == 1 else f"{number:,} older ones were"
    return f"{older} left out: a replay is of {most:,} here at most, which is the limit replay"


def recollect(
    recall: Recall, stored: Iterable[Taken], upto: int, lost: Callable[[], str] = lambda: ""
) -> Iterator[Recalled]:
    """The answer to a recall, from what was stored behind `recall.after` and up to `upto`, in order.

    `lost` says, when that was read, what should have been there and was not. Where it depends on later events whether
    one is wanted, all is read first. Else it may end early, and whoever recalls asks for the rest; where there may be
    more than there is to be, they are counted first.
    """
    selection = Selection(recall.filters, recall.replay)
    at_once, said, most = UNASKED, "", recall.replay.most
    found: Iterable[Taken] = filter(selection.wants, stored)
    if recall.replay.picks:
        for taken in stored:
            selection.take(taken)
        found, at_once = selection.taken(), sys.maxsize
    elif most is not None and not recall.upto and upto > most:
        beyond = max(0, sum(1 for _ in found) - most)
        found, said = islice(filter(selection.wants, stored), beyond, None), _left_out(beyond, most)
    for number, page in enumerate(pages(found, lambda taken: taken.event), start=1):
        more = number < at_once
        missing = [reason for reason in (said, "" if more else lost()) if reason]
        yield Recalled(recall.number, page, page[-1].position, upto, "; ".join(missing), more)
        said = ""
        if not more:
            return
    missing = [reason for reason in (selection.left_out, lost()) if reason]
    yield Recalled(recall.number, (), upto, upto, "; ".join(missing))


def _any_of(filters: tuple[Filter, ...]) -> Callable[[Event], bool]:
    if len(filters) == 1:
        return filters[0].matches
    matcher: Matcher[int] = Matcher()
    for place, wanted in enumerate(filters):
        matcher.add(place, wanted)
    return lambda event: bool(matcher.match(event))


def key_of(event: Event, path: Path) -> Hashable:
    """The value at a path of an event, the same for values that filters take for the same."""
    value = EVENT.read(event, path)
    return repr(value) if isinstance(value, dict | list) else (isinstance(value, bool), value)
