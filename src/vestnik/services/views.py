"""What brokers remember of one event, and the words for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec import Struct


class Step(NamedTuple):
    """What happened at a broker, or what is so there."""

    broker: str
    at: float | None
    said: str


class Verdict(NamedTuple):
    """A word for programs, and a sentence for people."""

    word: str
    said: str


class Story(Struct, frozen=True):
    """`verdict` is a word for programs, `said` a sentence for people.

    The steps are what it follows from, in the order of time; what has none is last.
    """

    id: str
    client: str | None
    verdict: str
    said: str
    event: dict[str, Any] | None = None
    steps: tuple[Step, ...] = ()

    @property
    def is_delivered(self) -> bool:
        return self.verdict in ("delivered", "journey")


class View:
    """What one broker says about the event."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.broker: str = data["broker"]
        self.begun: float = data["begun"]
        self.since: float = data["since"]
        self.sightings: list[dict[str, Any]] = [one for one in data["sightings"] if one["fate"] != "taken"]
        self.behind: dict[str, list[str]] = data["behind"]
        self.links: list[tuple[float, str, str]] = [(at, node, what) for at, node, what in data["links"]]
        self.ways: dict[str, dict[str, Any]] = data["ways"]
        self.client: dict[str, Any] | None = data["client"]

    @property
    def passages(self) -> list[dict[str, Any]]:
        """When it went through here, or should have."""
        return [one for one in self.sightings if one["fate"] in ("", "dropped")]

    @property
    def accepted(self) -> float | None:
        """When it was accepted by the broker that took it, if this broker knows."""
        return min([one["accepted"] for one in self.sightings if one["accepted"] is not None], default=None)

    @property
    def tells_when(self) -> bool:
        """Whether this broker knows when it was accepted, or when it passed."""
        return bool(self.passages) or any(one["accepted"] is not None or one["taken"] for one in self.sightings)

    @property
    def replays(self) -> list[dict[str, Any]]:
        """When it came from where it is stored."""
        return [one for one in self.sightings if one["fate"] == "replayed" and one["sender"] != self.broker]

    @property
    def lost(self) -> list[tuple[str, float]]:
        """The neighbours whose links are down, and since when."""
        last = {node: (what, at) for at, node, what in self.links}
        return [(node, at) for node, (what, at) in last.items() if what == "down"]

    def way(self, to: str) -> str | None:
        return next((near for near, far in self.behind.items() if to in far), None)


def begun(view: View) -> str:
    return f"{view.broker} was started at {clock(view.begun)}, and what it sent before is not remembered"


def unwanted(way: Mapping[str, Any], neighbour: str) -> str:
    """Why an event does not go to a neighbour."""
    if way.get("wants"):
        return f"it would be now, for {way['by']}"
    if not way.get("entries"):
        return f"nothing is wanted from there by {neighbour}"
    nearest = way["nearest"]
    of = "its one entry" if way["entries"] == 1 else f"none of its {way['entries']:,} entries matches; the nearest"
    return f"{of}, {nearest['filter']}, fails at {failed(nearest)}"


def failed(explained: Mapping[str, Any]) -> str:
    """The constraints that stood in the way."""
    if not explained["failed"]:
        return "it matches nothing at all"
    return " and ".join(f"{one['constraint']} ({one['saw']})" for one in explained["failed"])


def subscription(one: Mapping[str, Any]) -> str:
    return f"subscription {one['name']} ({one['filter']})"


def numbers(pairs: Iterable[Iterable[Any]]) -> str:
    """By the broker's own numbers: a client goes on with its own where the broker begins anew."""
    found = [
        f"the broker's number {number} of {f'subscription {name}' if name else 'a subscription that is over'}"
        for name, number in pairs
    ]
    return " and ".join(found)


def names(seen: Mapping[str, View]) -> str:
    first = sorted(seen.values(), key=lambda view: float(view.sightings[0]["at"]))
    return ", ".join(view.broker for view in first)


def clock(at: float | None) -> str:
    """A time for people."""
    if at is None:
        return "an unknown time"
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
