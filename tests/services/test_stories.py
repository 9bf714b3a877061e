"""Where an event stopped, from what brokers say: causes that real brokers seldom let one see."""

from __future__ import annotations

from typing import Any

import pytest

from vestnik.services.stories import story
from vestnik.services.views import Story, View

LINE = ("b1", "b2", "b3")
EVENT = {"id": "e", "source": "feed", "type": "quote"}
MATCHING = {"name": "s", "filter": "price > 1", "matches": True, "failed": [], "since": 1.0}
NEAREST = {"filter": "price > 9", "matches": False, "failed": [{"constraint": "price > 9", "saw": "saw 7"}]}


def passage(at: float, sender: str, *onward: str, **more: Any) -> dict[str, Any]:
    return {
        "at": at, "sender": sender, "source": "feed", "broker": "b1", "taken": sender == "p", "seq": 1,
        "onward": list(onward),
        "notified": {}, "fate": "", "reason": "", "accepted": None, "not_before": None,
        "expires": None, **more,
    }  # fmt: skip


def way(*, wants: bool = True, asked: bool = True, advertised: bool | None = None) -> dict[str, Any]:
    by = "price > 1" if wants else None
    nearest = None if wants else NEAREST
    return {"wants": wants, "by": by, "entries": 1, "nearest": nearest, "asked": asked, "advertised": advertised}


def view(name: str, **said: Any) -> View:
    """What a broker in the line says, unless it says something else."""
    place = LINE.index(name)
    neighbours = [LINE[n] for n in (place - 1, place + 1) if 0 <= n < len(LINE)]
    behind = {n: [b for b in LINE if (LINE.index(b) - place) * (LINE.index(n) - place) > 0] for n in neighbours}
    usual = {
        "broker": name, "begun": 0.0, "since": 0.0, "sightings": [], "behind": behind, "links": [],
        "ways": {n: way() for n in neighbours}, "client": None,
    }  # fmt: skip
    return View(usual | said)


def client(**subscription: Any) -> dict[str, Any]:
    place = {"log": "b1/1", "cursor": 1, "state": "LIVE", "gap": None}
    one = MATCHING | place | {"last": 5, "first_kept": 4, "number": None} | subscription
    return {"connected": True, "full": False, "subscriptions": [one], "ended": [], "happenings": [[1.0, "connected"]]}


def told(*views: View) -> Story:
    return story("e", "c", EVENT, {one.broker: one for one in views}, stored={})


TAKEN = passage(10.0, "p", "b2")
DROPPED = passage(11.0, "b1", fate="dropped", reason="expired")
HOME = view("b3", client=client())
CASES: dict[str, tuple[list[View], str, str]] = {
    "lost on a link": (
        [view("b1", sightings=[TAKEN], links=[(1.0, "b2", "up"), (11.0, "b2", "down")]), view("b2"), HOME],
        "lost-on-link",
        "b1 sent it to b2 at 1970-01-01T00:00:10.000Z, where it did not arrive: the link broke at 1970-01-01T00:00:11",
    ),
    "still on its way": ([view("b1", sightings=[TAKEN]), view("b2"), HOME], "on-its-way", "on its way, or lost"),
    "the middle was started again": (
        [view("b1", sightings=[TAKEN]), view("b2", begun=12.0), HOME],
        "restarted",
        "b2 at 1970-01-01T00:00:10.000Z, which was started again",
    ),
    "the middle has forgotten": (
        [view("b1", sightings=[TAKEN]), view("b2", since=12.0), HOME],
        "forgotten",
        "which remembers events only since 1970-01-01T00:00:12.000Z",
    ),
    "the broker that took it was started again, and has read it since": (
        [view("b1", begun=12.0, sightings=[passage(13.0, "b1", fate="replayed", accepted=10.0)]), view("b2"), HOME],
        "restarted",
        "b1 took it at 1970-01-01T00:00:10.000Z, and was started again at 1970-01-01T00:00:12.000Z",
    ),
    "the subscription was told of a gap": (
        [view("b1", sightings=[TAKEN]), view("b3", client=client(cursor=2, gap={"at": 12.0, "reason": "retention"}))],
        "lost",
        "was told of a gap at 1970-01-01T00:00:12.000Z, and the event is in it: retention",
    ),
    "the client's broker was started later": (
        [view("b1", sightings=[TAKEN]), view("b2"), view("b3", client=client(), begun=12.0)],
        "restarted",
        "b3 was started at 1970-01-01T00:00:12.000Z, after the event",
    ),
    "the client's broker was started later, and its lease has ended": (
        [
            view("b1", sightings=[TAKEN]),
            view("b2", sightings=[passage(10.5, "b1", "b3")]),
            view("b3", client=client() | {"subscriptions": []}, begun=12.0),
        ],
        "restarted",
        "b3 was started at 1970-01-01T00:00:12.000Z, and what it sent before is not remembered",
    ),
    "the link was down": (
        [
            view("b1", sightings=[passage(10.0, "p")], links=[(9.0, "b2", "down"), (11.0, "b2", "up")]),
            view("b2"),
            HOME,
        ],
        "link-down",
        "the link from b1 to b2 was down at 1970-01-01T00:00:10.000Z, when the event came, and up again at",
    ),
    "the subscription had not come there": (
        [view("b1", sightings=[passage(10.0, "p")]), view("b2"), HOME],
        "not-yet",
        "b1 sends such events to b2 now, for price > 1, but did not at",
    ),
    "expired on the way": (
        [view("b1", sightings=[TAKEN]), view("b2", sightings=[DROPPED]), HOME],
        "expired",
        "it had expired when it came to b2",
    ),
    "nobody told the broker before": (
        [
            view("b1", sightings=[passage(10.0, "p")], ways={"b2": way(wants=False)}),
            view("b2", ways={"b1": way(asked=False), "b3": way()}),
            HOME,
        ],
        "not-told",
        "b2 has not told b1 of the subscription that matches",
    ),
    "nothing was advertised": (
        [
            view("b1", sightings=[passage(10.0, "p")], ways={"b2": way(wants=False)}),
            view("b2", ways={"b1": way(asked=False, advertised=False), "b3": way()}),
            HOME,
        ],
        "not-advertised",
        "b2 passes subscriptions to b1 only for what is advertised there",
    ),
    "no entry, and nobody knows why": (
        [view("b1", sightings=[passage(10.0, "p")], ways={"b2": way(wants=False)}), view("b2"), HOME],
        "no-entry",
        "b1 did not send it to b2: its one entry, price > 9, fails at price > 9 (saw 7)",
    ),
    "no way": (
        [view("b1", sightings=[TAKEN], behind={"b2": ["b2"]}), view("b2"), HOME],
        "no-way",
        "there is no way from b1 to b3",
    ),
    "who sent it on is known, who got it is silent": (
        [view("b1", sightings=[TAKEN]), HOME],
        "unknown",
        "b1 sent it to b2, which does not answer",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("views", "verdict", "said"), CASES.values(), ids=CASES)
def test_where_it_stopped(views: list[View], verdict: str, said: str) -> None:
    found = told(*views)
    assert (found.verdict, said in found.said) == (verdict, True), found.said
    assert not found.is_delivered


def test_a_subscription_that_has_read_on_has_it() -> None:
    found = told(view("b1", sightings=[TAKEN]), view("b3", client=client(cursor=2)))
    assert found.verdict == "delivered" and "has come to offset 2 of b1/1, and the event was before, at 1" in found.said
    late = told(view("b1", sightings=[TAKEN]), view("b3", client=client(cursor=2, since=11.0)))
    assert late.verdict == "too-late"


def test_who_does_not_answer_is_named() -> None:
    found = story("e", None, EVENT, {"b1": view("b1", sightings=[TAKEN])}, stored={}, silent=["b9"])
    assert found.verdict == "journey"
    assert [step.said for step in found.steps if step.broker == "b9"] == [
        "did not answer: what happened there is not known"
    ]


def test_what_waits_in_the_log_is_not_said_to_be_unwanted() -> None:
    away = client(cursor=1, state="FETCHING") | {"connected": False}
    found = told(view("b1", sightings=[TAKEN]), view("b3", sightings=[passage(11.0, "b1")], client=away))
    assert found.verdict == "kept" and not found.is_delivered
    assert "it waits in the log b1/1" in found.said and "goes on when c comes back to b3" in found.said


def test_what_was_sent_and_not_taken_is_sent_again() -> None:
    away = client(number=4) | {"connected": False}
    found = told(view("b1", sightings=[TAKEN]), view("b3", sightings=[passage(11.0, "b1")], client=away))
    assert found.verdict == "delivered" and "sends again when c asks for it" in found.said
    assert [step.said for step in found.steps if step.at == 11.0] == ["got it from b1; kept it for client c"]


def test_an_unknown_event_may_be_behind_a_link_that_is_down() -> None:
    found = story("e", "c", None, {"b3": view("b3", links=[(1.0, "b2", "up"), (5.0, "b2", "down")])}, stored={})
    assert found.verdict == "unknown-event"
    assert "b3 lost its link to b2 at 1970-01-01T00:00:05.000Z, and it may be there" in found.said


def test_another_event_that_was_refused_under_its_id_hides_nothing() -> None:
    refused = passage(20.0, "q", fate="refused", reason="another event of this source and id was published before")
    sent = passage(11.0, "b2", notified={"c": [["s", 5]]})
    middle = view("b2", sightings=[passage(10.5, "b1", "b3")])
    found = told(view("b1", sightings=[TAKEN, refused]), middle, view("b3", sightings=[sent], client=client()))
    assert found.verdict == "delivered" and "b3 sent it at 1970-01-01T00:00:11.000Z" in found.said
    assert any(step.said.startswith("refused it to q") for step in found.steps)
