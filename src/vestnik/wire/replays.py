"""Which past events a subscriber wants before those to come."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from vestnik.errors import FilterError, WrongType, WrongValue
from vestnik.model.frozen import MAX_INT
from vestnik.model.parser import parse_path
from vestnik.model.spaces import Path
from vestnik.model.times import to_micros


class Replay(Struct, frozen=True, array_like=True):
    """The `last` so many, those `since` a time, the latest by the value of a path, or `all`; together, what all allow.

    A time is an aware datetime, RFC 3339 text, or microseconds since 1970 UTC. WrongValue where nothing is asked for.
    Where that is more than so many at `most`, a gap says how many older ones were left out; a broker that bounds what
    it replays sets it.
    """

    last: int | None = None
    since: Any = None
    latest_by: str | None = None
    all: bool = False
    most: int | None = None

    def __post_init__(self) -> None:
        for number in (self.last, self.most):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
                raise WrongType("a replay is of the last so many, a whole number", number)
            if number is not None and number < 1:
                raise WrongValue("a replay is of the last 1 or more", number)
            if number is not None and number > MAX_INT:
                raise WrongValue(f"a replay is of the last {MAX_INT:,} or less", number)
        if self.since is not None:
            force_setattr(self, "since", _micros(self.since))
        if self.latest_by is not None:
            self.key()
        if self.last is None and self.since is None and self.latest_by is None and not self.all:
            raise WrongValue("a replay asks for something", None, "say last=, since=, latest_by= or all=True")

    @property
    def bound(self) -> int | None:
        """How many there are to be, if so many are found."""
        return min([number for number in (self.last, self.most) if number is not None], default=None)

    @property
    def picks(self) -> bool:
        """Whether it depends on later events which are wanted."""
        return self.last is not None or self.latest_by is not None

    def key(self) -> Path:
        """The path of which the latest of each value is wanted; WrongValue where it is none."""
        try:
            return parse_path(str(self.latest_by))
        except FilterError:
            wanted = "a key is the path of a value in events, such as symbol or order.id"
            raise WrongValue(wanted, self.latest_by) from None


def _micros(since: Any) -> int:
    try:
        return to_micros(since)
    except ValueError as error:
        raise WrongValue("since is a time", since, str(error)) from None
