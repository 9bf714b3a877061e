"""Where an event stopped on its way from the broker that took it to the broker of a client that wants it."""

from __future__ import annotations

from collections.abc import Mapping

from vestnik.services.views import Step, Verdict, View, clock, unwanted


def where_it_stopped(
    views: Mapping[str, View], origin: View | None, home: View, at: float | None
) -> tuple[Verdict, list[Step]]:
    """The verdict, and what it follows from. `at` is when the event was taken, as far as that is known."""
    if home.begun > (at or 0.0):
        started = f"{home.broker} was started at {clock(home.begun)}, after the event"
        return Verdict("restarted", f"{started}: nothing is known from before"), []
    if origin is not None and not origin.passages and at is not None and origin.begun > at:
        started = f"{origin.broker} took it at {clock(at)}, and was started again at {clock(origin.begun)}"
        return Verdict("restarted", f"{started}: what it did with it before is not remembered"), []
    if origin is None or not origin.passages:
        where = "somewhere" if origin is None else f"at {origin.broker}"
        said = f"it was taken {where} at {clock(at)}, longer ago than what happened then is remembered"
        return Verdict("forgotten", said), []
    here = origin
    while here.broker != home.broker:
        passage = here.passages[-1]
        onward = here.way(home.broker)
        if passage["fate"] == "dropped":
            said = f"it had {passage['reason']} when it came to {here.broker}, at {clock(passage['at'])}"
            return Verdict("expired", said), []
        if onward is None:
            return Verdict("no-way", f"there is no way from {here.broker} to {home.broker}: they are not linked"), []
        if onward not in passage["onward"]:
            return _not_sent(views, here, onward, home, passage["at"])
        beyond = views.get(onward)
        if beyond is None:
            return Verdict("unknown", f"{here.broker} sent it to {onward}, which does not answer"), []
        if not beyond.passages:
            return _vanished(here, beyond, passage["at"]), []
        here = beyond
    return Verdict("unknown", f"it came to {home.broker}, and what became of it there is not remembered"), []


def _vanished(here: View, beyond: View, at: float) -> Verdict:
    """It was sent over a link, and did not arrive."""
    sent = f"{here.broker} sent it to {beyond.broker} at {clock(at)}"
    if beyond.begun > at:
        again = f"which was started again at {clock(beyond.begun)}"
        return Verdict("restarted", f"{sent}, {again} and remembers nothing from before")
    if beyond.since > at:
        return Verdict("forgotten", f"{sent}, which remembers events only since {clock(beyond.since)}")
    broke = [when for when, node, what in here.links if node == beyond.broker and what == "down" and when >= at]
    if broke:
        return Verdict("lost-on-link", f"{sent}, where it did not arrive: the link broke at {clock(broke[0])}")
    return Verdict("on-its-way", f"{sent}, where it has not arrived: it is on its way, or lost on the link")


def _not_sent(views: Mapping[str, View], here: View, onward: str, home: View, at: float) -> tuple[Verdict, list[Step]]:
    """A broker did not send it on towards the client, although that wants it."""
    states = [(when, what) for when, node, what in here.links if node == onward]
    before = [what for when, what in states if when <= at]
    if (before and before[-1] == "down") or (states and not before):
        ups = [f", and up again at {clock(when)}" for when, what in states if when > at and what == "up"]
        down = f"the link from {here.broker} to {onward} was down at {clock(at)}, when the event came"
        return Verdict("link-down", down + (ups[0] if ups else "")), []
    way = here.ways.get(onward, {})
    if way.get("wants"):
        entry = f"{here.broker} sends such events to {onward} now, for {way['by']}"
        return Verdict("not-yet", f"{entry}, but did not at {clock(at)}: the subscription had not come there yet"), []
    nearest = unwanted(way, onward)
    steps = [Step(here.broker, None, f"does not send such events to {onward}: {nearest}")]
    silent = _not_asked(views, here, onward, home)
    return silent or Verdict("no-entry", f"{here.broker} did not send it to {onward}: {nearest}"), steps


def _not_asked(views: Mapping[str, View], here: View, onward: str | None, home: View) -> Verdict | None:
    """Which broker on the way to the client knows that the event is wanted, and did not ask the one before it."""
    while onward is not None and onward in views:
        view = views[onward]
        way = view.ways.get(here.broker, {})
        beyond = view.way(home.broker)
        is_wanted = view.broker == home.broker or view.ways.get(beyond or "", {}).get("wants")
        if is_wanted and not way.get("asked") and way.get("advertised") is False:
            gated = f"{view.broker} passes subscriptions to {here.broker} only for what is advertised there"
            said = f"{gated}, and no advertisement from there matches the event: advertise it first"
            return Verdict("not-advertised", said)
        if is_wanted and not way.get("asked"):
            said = f"{view.broker} has not told {here.broker} of the subscription that matches"
            return Verdict("not-told", f"{said}: its lease there may have ended, or it is on its way")
        here, onward = view, beyond
    return None
