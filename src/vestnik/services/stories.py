"""The story of one event, from what brokers remember of it: where it went, and where and why it stopped.

It is told along the way from the broker that took the event to the broker of the client. The first thing on that way
that explains why the client did not get it is the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vestnik.services.homes import Home
from vestnik.services.views import Step, Story, Verdict, View, begun, clock, names, numbers, unwanted
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
        self._tell_way(seen)
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

    def _tell_way(self, seen: Mapping[str, View]) -> None:
        """Add what happened where as steps, in the order of time."""
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
            said = " and ".join(begun(view) for view in younger)
            return Verdict("restarted", f"it was taken by {taken}; {said}")
        return Verdict("forgotten", f"it was taken by {taken}, longer ago than what becomes of events is remembered")

    def _takers(self) -> dict[str, float]:
        """The brokers that took it, each with the time."""
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
            said = " and ".join(begun(view) for view in self._restarted()) or "what became of it first is forgotten"
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
        at = self._when(home, origin)
        here = Home(home, self._client, self._offset(), at)
        verdict = here.delivered() or here.gap_told() or here.in_log()
        if verdict is None and home.passages and home.passages[-1]["fate"] == "dropped":
            verdict = Verdict("expired", f"it had expired when it came to {home.broker}, at {clock(at)}")
        verdict = verdict or here.unwanted() or here.has_passed()
        self.steps += here.steps
        if verdict is not None:
            return verdict
        stopped, steps = where_it_stopped(self._views, origin, home, at)
        self.steps += steps
        return stopped

    def _offset(self) -> int | None:
        """The offset of the event in its log."""
        seqs = [one["seq"] for view in self._views.values() for one in view.sightings if one["seq"] is not None]
        return seqs[-1] if seqs else self._seq

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


def _notified(seen: Mapping[str, View]) -> set[str]:
    """The clients that were sent it."""
    return {client for view in seen.values() for one in view.sightings for client in one["notified"]}


def _passed(seen: Mapping[str, View]) -> bool:
    """Whether somebody remembers that it passed."""
    return any(view.passages for view in seen.values())
