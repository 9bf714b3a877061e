"""Which past events a subscriber wants before those to come."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from vestnik.model.filters import Filter
from vestnik.model.spaces import Path
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
        found = Filter.parse(f"{self.latest_by} IN ('x', 3)").region.boxes
        if len(found) != 1 or len(found[0].sets) != 1:
            raise ValueError(f"{self.latest_by} is no path")
        return found[0].sets[0][0]
