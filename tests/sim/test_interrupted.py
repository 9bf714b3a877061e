"""Replays in the midst of which something happens: all comes in the end, or it is said that some may be missing."""

from __future__ import annotations

import pytest

from sim.worlds import ALL, handed, network, quote, small_pages
from vestnik import Event, Filter
from vestnik.broker.core import BrokerCore
from vestnik.sim.links import Constant, Link
from vestnik.sim.network import Network
from vestnik.sim.topologies import line
from vestnik.trace.records import Missing, Notified, Published
from vestnik.wire.replays import Replay

EVERYTHING = Replay(all=True)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_pages(monkeypatch)


def at_homes(**homes: str) -> Network:
    """Clients at brokers of a line, over which everything takes a second."""
    net = network(line(3), link=Link(Constant(1.0)))
    for client, home in homes.items():
        net.attach(client, home)
    return net


def making_up(missed: int, *names: str, **others: str) -> Network:
    """A consumer c that has missed so much of what p has published at the other end, and is about to get it."""
    net = at_homes(c="b0", p="b2", **others)
    for name in names:
        net.subscribe("c", name, ALL, lease=1000.0, window=100)
    net.run(10)
    net.cut("b1", "b2")
    net.publish("p", *(quote(number) for number in range(1, missed + 1)))
    net.run(20)
    net.restore("b1", "b2")
    return net


def seqs(net: Network, name: str, source: str) -> list[int]:
    """Of what a subscription got from a source, in the order in which it came."""
    notified = [record for record in net.trace if isinstance(record, Notified) and name in dict(record.numbers)]
    return [record.event.seq or 0 for record in notified if record.event.source == source]


def replaying(
    past: int, wanted: Filter = ALL, replay: Replay = EVERYTHING, window: int = 10_000, **others: str
) -> Network:
    """A consumer c at one end of a line, in the midst of a replay of what p has published at the other, and others."""
    net = at_homes(c="b0", p="b2", **others)
    for place, feed in enumerate(("p", *others)):
        net.publish(feed, *(quote(1000 * place + number, feed) for number in range(1, past + 1)))
    net.run(20.0)
    net.subscribe("c", "all", wanted, lease=1000.0, window=window, replay=replay)
    return net


def reasons(net: Network) -> list[str]:
    return [record.reason for record in net.trace if isinstance(record, Missing)]


@pytest.mark.parametrize("feed", ["p", "q"])
def test_more_comes_than_may_be_in_flight_when_a_broker_is_back(feed: str) -> None:
    net = replaying(20, window=20, q="b0")
    net.run(25.5)
    net.pause("c")
    net.cut("b1", "b2")
    net.run(40)
    net.restore("b1", "b2")
    net.run(70)
    for number in range(2001, 2031):
        net.publish(feed, quote(number, feed))
    net.run(100)
    net.unpause("c")
    net.settle()
    published = [record.event.id for record in net.trace if isinstance(record, Published)]
    assert sorted(handed(net.trace, "c")) == sorted(published) and reasons(net) == []


def test_a_filter_is_changed_to_ask_for_announcements() -> None:
    wanted = Filter.parse("EXISTS n")
    net = replaying(40, wanted)
    net.run(25.5)
    also = wanted | Filter.parse("type IS vestnik.subscription")
    net.subscribe("c", "all", also, lease=1000.0, window=10_000, replay=EVERYTHING)
    net.settle()
    assert handed(net.trace, "c") == [str(number) for number in range(1, 41)] and reasons(net) == []


@pytest.mark.parametrize("replay", [Replay(all=True), Replay(since=0)], ids=["all", "since"])
def test_what_a_broker_took_while_it_was_away_comes_when_it_is_back(replay: Replay) -> None:
    net = replaying(3, replay=replay)
    net.run(22.5)
    net.cut("b1", "b2")
    net.settle()
    net.publish("p", *(quote(number) for number in range(4, 24)))
    net.settle()
    net.restore("b1", "b2")
    net.settle()
    assert handed(net.trace, "c") == [str(number) for number in range(1, 24)] and reasons(net) == []


def test_a_filter_is_changed_twice_meanwhile() -> None:
    net = replaying(40, Filter.parse("EXISTS n"))
    for also in ("type IS vestnik.subscription", "type IS vestnik"):
        net.run(net.now + 3)
        wanted = Filter.parse(f"EXISTS n OR {also}")
        net.subscribe("c", "all", wanted, lease=1000.0, window=10_000, replay=EVERYTHING)
    net.settle()
    assert handed(net.trace, "c") == [str(number) for number in range(1, 41)] and reasons(net) == []


def test_an_effect_that_waits_for_its_cause_was_not_seen_by_who_moves() -> None:
    net = at_homes(c="b0", p="b2", q="b0")
    net.publish("p", *(Event("cause", {}, source="p", id=str(number)) for number in range(40)))
    net.run(20)
    net.subscribe("c", "effects", Filter.parse("type = 'effect'"), lease=20.0, window=100)
    net.run(25)
    net.subscribe("c", "causes", Filter.parse("type = 'cause'"), lease=1000.0, window=100, replay=EVERYTHING)
    net.run(28)
    net.publish("p", Event("cause", {}, source="p", id="cause"))
    net.run(31)
    net.publish("q", Event("effect", {}, source="q", id="effect", causes=[("p", "cause")]))
    net.run(40)
    net.move("c", "b1")
    net.run(300)
    assert {"cause", "effect"} <= set(handed(net.trace, "c"))


def test_a_replay_that_is_asked_for_while_something_missed_is_on_its_way() -> None:
    net = making_up(30, "s", q="b1")
    net.run(25)
    net.subscribe("c", "last", ALL, lease=1000.0, window=100, replay=Replay(last=2))
    net.run(25.5)
    net.publish("q", *(quote(number, "q") for number in range(101, 107)))
    net.settle()
    own = seqs(net, "last", "q")
    assert own == sorted(own) and own


def test_what_waits_for_something_missed_and_is_wanted_no_more() -> None:
    """Were it to come, it would come behind what follows it."""
    net = making_up(12, "s", "u")
    net.run(21)
    net.publish("p", *(quote(number) for number in range(13, 21)))
    net.run(34)
    net.subscribe("c", "s", Filter.parse("n != 16 AND n != 20"), lease=1000.0, window=100)
    net.settle()
    own = seqs(net, "s", "p")
    assert own == sorted(own) and own


@pytest.mark.parametrize(("until", "is_past"), [(25.5, True), (150.0, False)])
def test_a_subscription_is_in_the_past_until_it_has_read_all_of_it(until: float, is_past: bool) -> None:
    """Also while a broker is away whose past it lacks."""
    net = replaying(40)
    net.run(until)
    net.cut("b1", "b2")
    net.settle()
    core = net.brokers["b0"].core
    assert isinstance(core, BrokerCore)
    assert core.recovery.readers.is_in_past(("c", "all")) is is_past
    net.restore("b1", "b2")
    net.settle()
    assert not core.recovery.readers.is_in_past(("c", "all"))
    assert handed(net.trace, "c") == [str(number) for number in range(1, 41)]
