"""Which past events a subscriber wants before those to come."""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.spaces import EVENT, Path
from vestnik.model.times import to_micros


class Replay(Struct, frozen=True, array_like=True):
    """The `last` so many, those `since` a time, the latest by the value of a path, or `all`; together, what all allow.

    A time is an aware datetime, RFC 3339 text, or microseconds since 1970 UTC. ValueError where nothing is asked for.
    """

    last: int | None = None
    since: Any = None
    latest_by: str | None = None
    all: bool = False

    def __post_init__(self) -> None:
        if self.last is not None and (isinstance(self.last, bool) or not self.last > 0):
            raise ValueError(f"a replay is of the last 1 or more, not {self.last!r}")
        if self.since is not None:
            force_setattr(self, "since", to_micros(self.since))
        if self.latest_by is not None:
            self.key()
        if self.last is None and self.since is None and self.latest_by is None and not self.all:
            raise ValueError("say what to replay: last=, since=, latest_by=, or all=True")

    def key(self) -> Path:
        """The path of which the latest of each value is wanted; FilterSyntaxError or ValueError where it is none."""
        found = Filter.parse(f"EXISTS {self.latest_by}").region.boxes
        if len(found) != 1 or len(found[0].sets) != 1:
            raise ValueError(f"{self.latest_by} is no path")
        return found[0].sets[0][0]


class Selection:
    """Picks, of events that come in order, those that a replay is of."""

    def __init__(self, wanted: Filter, replay: Replay) -> None:
        self._wanted = wanted
        self._since = replay.since
        self._key = None if replay.latest_by is None else replay.key()
        self._latest: dict[Any, Event] = {}
        self._found: deque[Event] = deque(maxlen=replay.last)

    def take(self, event: Event, accepted: int) -> None:
        """An event, and when it was accepted: its time, where it has none of its own."""
        at = accepted if event.time is None else event.time
        if (self._since is not None and at < self._since) or not self._wanted.matches(event):
            return
        if self._key is None:
            self._found.append(event)
        else:
            value = _hashable(EVENT.read(event, self._key))
            self._latest.pop(value, None)
            self._latest[value] = event

    def events(self) -> list[Event]:
        self._found.extend(self._latest.values())
        return list(self._found)


def _hashable(value: Any) -> Any:
    """The same for values that filters take for the same."""
    return repr(value) if isinstance(value, dict | list) else (isinstance(value, bool), value)
