"""The story of one event, from what brokers remember of it: where it went, and where and why it stopped.

It is told along the way from the broker that took the event to the broker of the client. The first thing on that way
that explains why the client did not get it is the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vestnik.services.views import Step, Story, Verdict, View, clock, failed, names, numbers, subscription, unwanted
from vestnik.services.ways import where_it_stopped


def story(
    id: str,
    client: str | None,
    event: dict[str, Any] | None,
    views: Mapping[str, View],
    *,
    stored: Mapping[str, float],
    silent: Iterable[str] = (),
) -> Story:
    """The story of event `id`, by the views of all brokers that answered; `stored` says since when who stores it."""
    teller = _Teller(id, client, views, stored, None if event is None else event.get("sequence"))
    for broker in silent:
        teller.step(broker, None, "did not answer: what happened there is not known")
    verdict = teller.verdict(event)
    in_order = sorted(teller.steps, key=lambda step: (step.at is None, step.at or 0.0))
    return Story(id, client, *verdict, event, tuple(in_order))


class _Teller:
    def __init__(
        self,
        id: str,
        client: str | None,
        views: Mapping[str, View],
        stored: Mapping[str, float],
        sequence: str | None,
    ) -> None:
        self._id = id
        self._client = client or ""
        self._views = views
        self._stored = stored
        self._seq = None if sequence is None else int(sequence)
        self.steps: list[Step] = []

    def step(self, broker: str, at: float | None, said: str) -> None:
        self.steps.append(Step(broker, at, said))

    def verdict(self, event: dict[str, Any] | None) -> Verdict:
        for broker, at in self._stored.items():
            self.step(broker, at, "it was taken and stored; what became of it then is not remembered")
        seen = {name: view for name, view in self._views.items() if view.sightings}
        if event is None or (not seen and not self._stored):
            return Verdict("unknown-event", self._unknown())
        origin = self._origin(seen)
        stopped = self._at_origin(origin)
        if stopped is not None:
            return stopped
        self._tell_way(seen, origin)
        if self._client:
            return self._for_client(origin)
        if origin is not None and origin.passages and origin.passages[-1]["fate"] == "dropped":
            last = origin.passages[-1]
            return Verdict(
                "expired", f"it had {last['reason']} when it came to {origin.broker}, at {clock(last['at'])}"
            )
        return Verdict("journey", self._journey(seen)) if _notified(seen) or _passed(seen) else self._forgotten()

    # --- where it began ---

    def _unknown(self) -> str:
        remembered = ", ".join(f"{name} since {clock(view.since)}" for name, view in self._views.items())
        return (
            f"no broker within reach remembers event {self._id}, and none has it stored: it was never published to "
            f"them, or before what they remember ({remembered}){self._beyond()}"
        )

    def _origin(self, seen: Mapping[str, View]) -> View | None:
        """The broker that took it from a client, if it remembers that; else one that has it stored, or saw it first."""
        takers = [view for view in seen.values() if any(one["taken"] for one in view.sightings)]
        storing = [self._views[name] for name in self._stored if name in self._views]
        first = sorted(seen.values(), key=lambda view: float(view.sightings[0]["at"]))
        return next(iter([*takers, *storing, *first]), None)

    def _at_origin(self, origin: View | None) -> Verdict | None:
        """Why it did not even leave."""
        if origin is None or not origin.sightings:
            return None
        last = origin.sightings[-1]
        if last["fate"] == "refused":
            self.step(origin.broker, last["at"], f"refused it to {last['sender']}: {last['reason']}")
            if origin.passages or origin.broker in self._stored:
                return None  # that was another, or the same again
            return Verdict("refused", f"{origin.broker} refused it to {last['sender']}: {last['reason']}")
        if last["fate"] == "unknown":
            said = f"could not tell {last['sender']} whether it was stored: {last['reason']}"
            self.step(origin.broker, last["at"], said)
            if origin.passages or origin.broker in self._stored:
                return None
            return Verdict("unknown", f"{origin.broker} {said}")
        if last["fate"] == "held":
            until = clock(last["not_before"] / 1e6)
            self.step(origin.broker, last["at"], f"took it from {last['sender']} and holds it until {until}")
            return Verdict("held", f"{origin.broker} holds it until {until}, its not_before")
        return None

    def _tell_way(self, seen: Mapping[str, View], origin: View | None) -> None:
        """What happened where, in the order of time."""
        told = [(one, view) for view in seen.values() for one in [*view.passages, *view.replays]]
        for one, view in sorted(told, key=lambda pair: pair[0]["at"]):
            verb = "was sent what it had missed by" if one["fate"] == "replayed" else "got it from"
            is_handed_out = one["fate"] == "replayed" and one["notified"]
            parts = [] if is_handed_out else [f"{'took it from' if one['taken'] else verb} {one['sender']}"]
            if one["fate"] == "dropped":
                parts.append(f"dropped it: it had {one['reason']}" if one["reason"] == "expired" else one["reason"])
            if one["onward"]:
                parts.append(f"sent it on to {', '.join(one['onward'])}")
            for client, pairs in one["notified"].items():
                parts.append(f"sent it to client {client} as {numbers(pairs)}")
            if len(parts) == 1 and one["fate"] != "replayed":
                parts.append(self._kept(view) or "nobody there or beyond was sent it")
            self.step(view.broker, one["at"], "; ".join(parts))

    def _kept(self, view: View) -> str:
        """What was kept of it for the client, in words."""
        some = [one for one in (view.client or {}).get("subscriptions", ()) if one["number"] is not None]
        return f"kept it for client {self._client}" if some else ""

    def _forgotten(self) -> Verdict:
        """It is stored, and what became of it then is not remembered."""
        takers = self._takers()
        taken = " and ".join(f"{broker} at {clock(at)}" for broker, at in takers.items())
        younger = self._restarted()
        if younger:
            said = " and ".join(_begun(view) for view in younger)
            return Verdict("restarted", f"it was taken by {taken}; {said}")
        return Verdict("forgotten", f"it was taken by {taken}, longer ago than what becomes of events is remembered")

    def _takers(self) -> dict[str, float]:
        """When which broker took it, as far as is known."""
        read = {
            one["broker"]: one["accepted"]
            for view in self._views.values()
            for one in view.sightings
            if one["broker"] in self._views and one["accepted"] is not None
        }
        return {**read, **self._stored}

    def _restarted(self) -> list[View]:
        """The brokers that took it and were started again since."""
        return [view for name, at in self._takers().items() if (view := self._views.get(name)) and view.begun > at]

    def _journey(self, seen: Mapping[str, View]) -> str:
        clients = _notified(seen)
        if not _passed(seen):
            said = " and ".join(_begun(view) for view in self._restarted()) or "what became of it first is forgotten"
            return f"it was read from a log, and was sent to {', '.join(sorted(clients))}; {said}"
        for view in seen.values():
            for one in view.passages[-1:]:
                for neighbour, way in view.ways.items():
                    if neighbour not in one["onward"] and neighbour != one["sender"]:
                        self.step(view.broker, None, f"not sent to {neighbour}: {unwanted(way, neighbour)}")
        if not clients:
            return f"it passed {names(seen)}, and no client there wanted it"
        return f"it passed {names(seen)}, and was sent to {', '.join(sorted(clients))}"

    # --- for one client ---

    def _for_client(self, origin: View | None) -> Verdict:
        home = self._home()
        if home is None or home.client is None:
            known = ", ".join(self._views)
            said = f"no broker within reach ({known}) knows a client {self._client}, or has lately"
            return Verdict("unknown-client", said + self._beyond())
        for at, what in home.client["happenings"][-3:]:
            self.step(home.broker, at, f"client {self._client} {what}")
        delivered = self._delivered(home) or self._gap_told(home)
        if delivered is not None:
            return delivered
        waits = self._in_log(home)
        if waits is not None:
            return waits
        at = self._when(home, origin)
        if home.passages and home.passages[-1]["fate"] == "dropped":
            return Verdict("expired", f"it had expired when it came to {home.broker}, at {clock(at)}")
        missing = self._unwanted(home, at)
        if missing is not None:
            return missing
        passed = self._has_passed(home, at)
        if passed is not None:
            return passed
        stopped, steps = where_it_stopped(self._views, origin, home, at)
        self.steps += steps
        return stopped

    def _beyond(self) -> str:
        """Where else it may be: behind links that are down."""
        down = [
            f"{view.broker} lost its link to {n} at {clock(at)}" for view in self._views.values() for n, at in view.lost
        ]
        return f"; {' and '.join(down)}, and it may be there" if down else ""

    def _home(self) -> View | None:
        """The broker of the client: where it is, else where it has subscriptions, else where it was."""
        known = [view for view in self._views.values() if view.client is not None]

        def nearness(view: View) -> tuple[bool, bool, float]:
            client = view.client or {}
            last = max([at for at, _ in client["happenings"]], default=0.0)
            return client["connected"], bool(client["subscriptions"]), last

        return max(known, key=nearness, default=None)

    def _when(self, home: View, origin: View | None) -> float | None:
        """When it was accepted; else when it passed the client's broker, or was taken. Reading it does not count."""
        accepted = [view.accepted for view in self._views.values() if view.accepted is not None]
        accepted += self._stored.values()
        if accepted:
            return min(accepted)
        for view in (home, origin):
            found = [] if view is None else view.passages or [one for one in view.sightings if one["taken"]]
            if found:
                at: float = found[-1]["at"]
                return at
        return None

    def _delivered(self, home: View) -> Verdict | None:
        sent = [(one, one["notified"][self._client]) for one in home.sightings if self._client in one["notified"]]
        if sent:
            one, pairs = sent[-1]
            replayed = ", replayed" if one["fate"] == "replayed" else ""
            said = f"it was delivered as {numbers(pairs)}{replayed}: {home.broker} sent it at {clock(one['at'])}"
            return Verdict("delivered", said)
        assert home.client is not None
        waiting = [one for one in home.client["subscriptions"] if one["number"] is not None]
        if waiting:
            given = numbers([[one["name"], one["number"]] for one in waiting])
            said = f"it is {given}, which {home.broker} has sent, and sends again when {self._client} asks for it"
            return Verdict("delivered", said)
        return None

    def _in_log(self, home: View) -> Verdict | None:
        """Whether a subscription that catches up has not come to the event yet."""
        assert home.client is not None
        seqs = [one["seq"] for view in self._views.values() for one in view.sightings if one["seq"] is not None]
        for one in home.client["subscriptions"] if seqs else ():
            lags = one["matches"] and one["state"] in ("FETCHING", "UNREACHABLE")
            if lags and one["cursor"] <= seqs[-1]:
                return Verdict("kept", f"it waits in the log {one['log']}: {self._lag(home, one)}")
        return None

    def _lag(self, home: View, one: Mapping[str, Any]) -> str:
        """Why a subscription has not come further in a log."""
        assert home.client is not None
        read = f"{subscription(one)} has come to offset {one['cursor']:,}"
        if not home.client["connected"]:
            return f"{read}, and goes on when {self._client} comes back to {home.broker}"
        if home.client["full"]:
            return f"{read}, and goes on when {self._client} takes what it was sent"
        if one["state"] == "UNREACHABLE":
            return f"{read}, and goes on when {home.broker} can reach that log"
        return f"{read}, and reads on as {self._client} takes what it was sent"

    def _unwanted(self, home: View, at: float | None) -> Verdict | None:
        """Why no subscription of the client was there for it, if none was."""
        assert home.client is not None
        subscriptions, ended = home.client["subscriptions"], home.client["ended"]
        matching = [one for one in subscriptions if one["matches"]]
        in_time = [one for one in matching if at is None or one["since"] is None or one["since"] <= at]
        if in_time:
            return None
        for one in matching:
            self.step(home.broker, one["since"], f"{self._client} made {subscription(one)}, which matches")
        before = [one for one in ended if one["matches"] and (at is None or one["at"] <= at)]
        for one in ended:
            if one["matches"]:
                self.step(home.broker, one["at"], f"{subscription(one)} ended: {one['reason']}")
        begun = _begun(home)
        is_younger = at is not None and home.begun > at
        if matching:
            one = min(matching, key=lambda one: float(one["since"]))
            if is_younger and one.get("resumed"):
                return Verdict("restarted", f"{begun}; {subscription(one)} was there before, and may have got it")
            late = f"{subscription(one)} has been there since {clock(one['since'])}, and the event was before, at"
            again = f"; {begun}" if is_younger else ""
            return Verdict("too-late", f"{late} {clock(at)}; with a replay it would have come{again}")
        if before:
            one = before[-1]
            return Verdict(
                "ended", f"{subscription(one)} ended at {clock(one['at'])}, before the event: {one['reason']}"
            )
        if not subscriptions and is_younger:
            return Verdict("restarted", f"{self._client} has no subscription at {home.broker} now; {begun}")
        if not subscriptions:
            return Verdict("no-subscription", f"{self._client} has no subscription at {home.broker}")
        for one in subscriptions:
            self.step(home.broker, None, f"{subscription(one)} does not match: {failed(one)}")
        nearest = min(subscriptions, key=lambda one: len(one["failed"]))
        among = "" if len(subscriptions) == 1 else f"none of its {len(subscriptions)} subscriptions matches; nearest, "
        return Verdict("not-matching", f"{among}{subscription(nearest)} does not match: {failed(nearest)}")

    def _gap_told(self, home: View) -> Verdict | None:
        """Whether a subscription was told that it misses the event."""
        assert home.client is not None
        for one in home.client["subscriptions"]:
            if one["matches"] and one["gap"] is not None:
                told = f"{subscription(one)} was told of a gap at {clock(one['gap']['at'])}"
                return Verdict("lost", f"{told}, and the event is in it: {one['gap']['reason']}")
        return None

    def _has_passed(self, home: View, at: float | None) -> Verdict | None:
        """Whether a subscription that wanted it has read beyond it, and nothing of it is in flight any more."""
        assert home.client is not None
        seqs = [one["seq"] for view in self._views.values() for one in view.sightings if one["seq"] is not None]
        seq = seqs[-1] if seqs else self._seq
        for one in home.client["subscriptions"]:
            in_time = at is None or one["since"] is None or one["since"] <= at
            if one["matches"] and in_time and seq is not None and one["cursor"] is not None and one["cursor"] > seq:
                said = f"{subscription(one)} has come to offset {one['cursor']:,} of {one['log']}"
                return Verdict("delivered", f"{said}, and the event was before, at {seq:,}: the client has taken it")
            if one["matches"] and home.passages and one["last"] == 0:
                return Verdict("pending", f"{subscription(one)} matches, and is just being replayed to")
        return None


def _notified(seen: Mapping[str, View]) -> set[str]:
    """The clients that were sent it."""
    return {client for view in seen.values() for one in view.sightings for client in one["notified"]}


def _passed(seen: Mapping[str, View]) -> bool:
    """Whether somebody remembers that it passed."""
    return any(view.passages for view in seen.values())


def _begun(view: View) -> str:
    return f"{view.broker} was started at {clock(view.begun)}, and what it sent before is not remembered"
