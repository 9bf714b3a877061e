"""The verdict of the client's own broker on one event, by its subscriptions there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vestnik.services.views import Step, Verdict, View, begun, clock, failed, numbers, subscription


class Home:
    """An event at the broker of a client. It was accepted at the time `at` with the offset `seq`, if that is known.

    Each method returns a verdict, or None if that is not what happened; `steps` are what it follows from.
    """

    def __init__(self, view: View, client: str, seq: int | None, at: float | None) -> None:
        assert view.client is not None
        self._home = view
        self._name = client
        self._client = view.client
        self._subscriptions: list[dict[str, Any]] = view.client["subscriptions"]
        self._seq = seq
        self._at = at
        self.steps: list[Step] = []

    def _step(self, at: float | None, said: str) -> None:
        self.steps.append(Step(self._home.broker, at, said))

    def delivered(self) -> Verdict | None:
        sent = [(one, one["notified"][self._name]) for one in self._home.sightings if self._name in one["notified"]]
        if sent:
            one, pairs = sent[-1]
            replayed = ", replayed" if one["fate"] == "replayed" else ""
            said = f"it was delivered as {numbers(pairs)}{replayed}: {self._home.broker} sent it at {clock(one['at'])}"
            return Verdict("delivered", said)
        waiting = [one for one in self._subscriptions if one["number"] is not None]
        if waiting:
            given = numbers([[one["name"], one["number"]] for one in waiting])
            said = f"it is {given}, which {self._home.broker} has sent, and sends again when {self._name} asks for it"
            return Verdict("delivered", said)
        return None

    def in_log(self) -> Verdict | None:
        """Find a subscription that catches up and has not come to the event yet."""
        for one in self._subscriptions:
            lags = one["matches"] and one["state"] in ("FETCHING", "UNREACHABLE")
            if lags and self._seq is not None and one["cursor"] <= self._seq:
                return Verdict("kept", f"it waits in the log {one['log']}: {self._lag(one)}")
        return None

    def _lag(self, one: Mapping[str, Any]) -> str:
        """Return in words why a subscription has not come further in a log."""
        read = f"{subscription(one)} has come to offset {one['cursor']:,}"
        if not self._client["connected"]:
            return f"{read}, and goes on when {self._name} comes back to {self._home.broker}"
        if self._client["full"]:
            return f"{read}, and goes on when {self._name} takes what it was sent"
        if one["state"] == "UNREACHABLE":
            return f"{read}, and goes on when {self._home.broker} can reach that log"
        return f"{read}, and reads on as {self._name} takes what it was sent"

    def unwanted(self) -> Verdict | None:
        """Find out why no subscription of the client was there for the event, if none was."""
        subscriptions, ended = self._subscriptions, self._client["ended"]
        matching = [one for one in subscriptions if one["matches"]]
        in_time = [one for one in matching if self._at is None or one["since"] is None or one["since"] <= self._at]
        if in_time:
            return None
        for one in matching:
            self._step(one["since"], f"{self._name} made {subscription(one)}, which matches")
        before = [one for one in ended if one["matches"] and (self._at is None or one["at"] <= self._at)]
        for one in ended:
            if one["matches"]:
                self._step(one["at"], f"{subscription(one)} ended: {one['reason']}")
        started = begun(self._home)
        is_younger = self._at is not None and self._home.begun > self._at
        if matching:
            one = min(matching, key=lambda one: float(one["since"]))
            if is_younger and one.get("resumed"):
                return Verdict("restarted", f"{started}; {subscription(one)} was there before, and may have got it")
            late = f"{subscription(one)} has been there since {clock(one['since'])}, and the event was before, at"
            again = f"; {started}" if is_younger else ""
            return Verdict("too-late", f"{late} {clock(self._at)}; with a replay it would have come{again}")
        if before:
            one = before[-1]
            return Verdict(
                "ended", f"{subscription(one)} ended at {clock(one['at'])}, before the event: {one['reason']}"
            )
        if not subscriptions and is_younger:
            return Verdict("restarted", f"{self._name} has no subscription at {self._home.broker} now; {started}")
        if not subscriptions:
            return Verdict("no-subscription", f"{self._name} has no subscription at {self._home.broker}")
        for one in subscriptions:
            self._step(None, f"{subscription(one)} does not match: {failed(one)}")
        nearest = min(subscriptions, key=lambda one: len(one["failed"]))
        among = "" if len(subscriptions) == 1 else f"none of its {len(subscriptions)} subscriptions matches; nearest, "
        return Verdict("not-matching", f"{among}{subscription(nearest)} does not match: {failed(nearest)}")

    def gap_told(self) -> Verdict | None:
        """Find a subscription that was told that it misses the event."""
        for one in self._subscriptions:
            if one["matches"] and one["gap"] is not None:
                told = f"{subscription(one)} was told of a gap at {clock(one['gap']['at'])}"
                return Verdict("lost", f"{told}, and the event is in it: {one['gap']['reason']}")
        return None

    def has_passed(self) -> Verdict | None:
        """Find a subscription that wanted the event and has read past it, so that it is no longer in flight."""
        seq = self._seq
        for one in self._subscriptions:
            in_time = self._at is None or one["since"] is None or one["since"] <= self._at
            if one["matches"] and in_time and seq is not None and one["cursor"] is not None and one["cursor"] > seq:
                said = f"{subscription(one)} has come to offset {one['cursor']:,} of {one['log']}"
                return Verdict("delivered", f"{said}, and the event was before, at {seq:,}: the client has taken it")
            if one["matches"] and self._home.passages and one["last"] == 0:
                return Verdict("pending", f"{subscription(one)} matches, and is just being replayed to")
        return None
