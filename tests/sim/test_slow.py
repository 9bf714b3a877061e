"""Consumers that are slow, disks that fail, and the past."""

from __future__ import annotations

from typing import Any

import pytest

from sim.worlds import ALL, handed, network, quote, small_pages
from vestnik.broker.core import BrokerCore
from vestnik.cli.sim.soak import check
from vestnik.model.times import MICROS
from vestnik.recovery import reading, reads
from vestnik.sim import runs
from vestnik.sim.links import Constant, Link
from vestnik.sim.network import Network
from vestnik.sim.soak import random_scenario, soak
from vestnik.sim.topologies import line
from vestnik.trace.records import Acknowledged, Lost, Missing, Notified, Published, Rejected, Sent
from vestnik.verify.traces import check_trace
from vestnik.wire.origins import Origin
from vestnik.wire.replays import Replay


def pair(window: int = 100, **options: Any) -> Network:
    """A consumer c and a producer p at the two ends of a line."""
    net = network(line(3), **options)
    net.attach("c", "b0")
    net.attach("p", "b2")
    net.subscribe("c", "all", ALL, lease=1000.0, window=window)
    net.settle()
    return net


def in_flight(net: Network) -> int:
    """Return how many notifications the broker of c has sent that c has not taken."""
    core = net.brokers[net.homes["c"]].core
    assert isinstance(core, BrokerCore)
    return max(one.reader.in_flight for one in core.clients["c"].subscriptions.values())


@pytest.mark.parametrize("kind", ["pause", "stall"])
@pytest.mark.parametrize("window", [100, 2])
def test_what_a_consumer_does_not_take_stays_in_the_log_for_it(kind: str, window: int) -> None:
    """However little may be in flight to it."""
    net = pair(window)
    begin, end = (net.pause, net.unpause) if kind == "pause" else (net.fill, net.drain)
    net.publish("p", quote(1))
    net.settle()
    begin("c")
    for number in range(2, 7):
        net.publish("p", quote(number))
    net.settle()
    assert handed(net.trace, "c") == ["1"] and in_flight(net) <= window
    end("c")
    net.settle()
    assert not any(isinstance(record, Lost | Missing) for record in net.trace)
    assert handed(net.trace, "c") == ["1", "2", "3", "4", "5", "6"]
    assert check_trace(net.trace, stored=True) == []


def test_a_consumer_that_is_paused_is_so_wherever_it_is() -> None:
    net = pair()
    net.pause("c")
    net.move("c", "b1")
    net.settle()
    net.publish("p", quote(1))
    net.settle()
    assert handed(net.trace, "c") == [] and check_trace(net.trace) == []
    net.unpause("c")
    net.settle()
    assert handed(net.trace, "c") == ["1"] and check_trace(net.trace, stored=True) == []


def test_what_cannot_be_stored_is_refused() -> None:
    net = pair()
    net.spoil("b2", fails=True)
    net.publish("p", quote(1))
    net.settle()
    assert [record.reason for record in net.trace if isinstance(record, Rejected)] == ["the disk has failed"]
    assert not any(isinstance(record, Acknowledged | Published) for record in net.trace)
    net.spoil("b2", fails=False)
    net.publish("p", quote(1))
    net.settle()
    assert handed(net.trace, "c") == ["1"] and check_trace(net.trace, stored=True) == []


def test_what_was_acknowledged_and_has_to_wait_outlives_a_disk_that_fails_when_its_time_has_come() -> None:
    net = pair()
    net.publish("p", quote(1).replace(not_before=10 * MICROS))
    net.settle()
    assert any(isinstance(record, Acknowledged) for record in net.trace)
    net.spoil("b2", fails=True)
    net.run(12.0)
    net.spoil("b2", fails=False)
    net.settle(10.0)
    assert handed(net.trace, "c") == ["1"] and check_trace(net.trace, stored=True) == []


@pytest.mark.parametrize(
    ("replay", "expected"), [(Replay(all=True), ["1", "2", "3", "4"]), (Replay(last=2), ["2", "3", "4"])]
)
def test_the_past_then_what_comes(replay: Replay, expected: list[str]) -> None:
    net = pair(link=Link(Constant(0.1)))
    net.attach("q", "b0")
    net.publish("p", quote(1), quote(2))
    net.publish("q", quote(3, "q"))
    net.settle()
    net.attach("n", "b1")
    net.subscribe("n", "all", ALL, replay=replay)
    net.run(net.now + 0.15)
    net.publish("p", quote(4))
    net.settle()
    assert handed(net.trace, "n") == expected
    replayed = [record.replayed for record in net.trace if isinstance(record, Notified) and record.client == "n"]
    assert replayed == [True] * (len(expected) - 1) + [False]
    assert check_trace(net.trace, stored=True) == []


def test_what_is_stored_when_a_replay_of_the_last_begins_comes_after_it() -> None:
    """The last ones end when the subscription begins; what is routed later comes live, in order."""
    net = pair(link=Link(Constant(0.1)), disk=Constant(1.0))
    net.attach("n", "b0")
    net.subscribe("n", "all", ALL, replay=Replay(last=1))
    net.publish("p", quote(1))
    net.run(net.now + 0.05)
    net.publish("p", quote(2))
    net.settle()
    assert handed(net.trace, "n") == handed(net.trace, "c") == ["1", "2"]
    assert not any(record.replayed for record in net.trace if isinstance(record, Notified))
    assert check_trace(net.trace, stored=True) == []


@pytest.mark.parametrize("replay", [None, Replay(all=True)])
def test_what_comes_twice_is_asked_for_once(replay: Replay | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE", 2)
    net = pair(link=Link(Constant(0.1), duplication=0.9), all_sent=True)
    net.cut("b0", "b1")
    net.publish("p", *[quote(number) for number in range(20)])
    net.settle()
    net.restore("b0", "b1")
    net.settle()
    net.attach("n", "b0")
    net.subscribe("n", "all", ALL, replay=replay)
    net.settle()
    asked = [record for record in net.trace if isinstance(record, Sent) and record.kind == "FetchPage"]
    assert sum(record.sender == "b0" for record in asked) < 60
    everything = [str(number) for number in range(20)]
    assert handed(net.trace, "c") == everything and handed(net.trace, "n") == (everything if replay else [])


@pytest.mark.parametrize(
    ("replay", "missing", "later"),
    [
        (Replay(last=9), ["b2 cannot be reached"], []),
        (Replay(latest_by="n"), ["b2 cannot be reached"], []),
        (Replay(since=0), [], ["1"]),
    ],
)
def test_what_is_picked_of_the_past_misses_a_broker_out_of_reach(
    replay: Replay, missing: list[str], later: list[str]
) -> None:
    """Nobody can tell later which events are the last ones. All others come when the broker is back."""
    net = pair()
    net.publish("p", quote(1))
    net.settle()
    net.attach("n", "b0")
    net.subscribe("n", "all", ALL, replay=replay)
    net.run(net.now + 0.011)
    net.cut("b1", "b2")
    net.settle()
    assert [record.reason for record in net.trace if isinstance(record, Missing)] == missing
    assert handed(net.trace, "n") == []
    net.restore("b1", "b2")
    net.settle()
    assert handed(net.trace, "n") == later


def test_what_was_missed_comes_in_pages_that_are_asked_for() -> None:
    many = 2 * reads.PAGE + 300
    net = pair(window=10_000, all_sent=True)
    net.cut("b0", "b1")
    net.publish("p", *[quote(number) for number in range(many)])
    net.settle()
    net.restore("b0", "b1")
    net.settle()
    assert handed(net.trace, "c") == [str(number) for number in range(many)]
    asked = [record for record in net.trace if isinstance(record, Sent) and record.kind == "FetchPage"]
    assert sum(record.sender == "b0" for record in asked) >= 3
    assert check_trace(net.trace, stored=True) == []


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read many small pages, and wait for them."""
    small_pages(monkeypatch)
    monkeypatch.setattr(runs, "PATIENCE", 30.0)


SEEDS = [seed for seed in range(1000, 1012) if random_scenario(seed).clients.batch <= 10]


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("seed", SEEDS)
def test_networks_are_right_with_small_pages(seed: int) -> None:
    """However long it takes."""
    outcome = soak(seed, lambda claim: check(claim._replace(settling=None)))
    assert not outcome.wrong, outcome.wrong[0]


@pytest.mark.parametrize(
    ("replay", "given"),
    [
        (Replay(all=True), ["1", "2", "3", "4", "5"]),
        (Replay(last=2), ["2", "3", "4", "5"]),
        (Replay(since=0), ["1", "2", "3", "4", "5"]),
    ],
)
def test_a_broker_that_forgets_what_it_replayed_loses_nothing(replay: Replay, given: list[str]) -> None:
    """Its client knows from where on the logs are to be read again, and has what was sent to it."""
    net = network(line(3))
    net.attach("c", "b0")
    net.attach("p", "b2")
    net.publish("p", quote(1), quote(2), quote(3))
    net.run(5.0)
    net.subscribe("c", "all", ALL, lease=1000.0, window=100, replay=replay)
    net.settle()
    net.pause("c")
    net.publish("p", quote(4))
    net.settle()
    net.cut("b0", "b1")
    net.crash("b0")
    net.publish("p", quote(5))
    net.restart("b0")
    net.unpause("c")
    net.settle()
    net.restore("b0", "b1")
    net.settle()
    assert handed(net.trace, "c") == given
    assert not any(isinstance(record, Missing | Lost) for record in net.trace)


def test_a_broker_that_forgets_a_replay_which_its_client_has_nothing_of_tells_it() -> None:
    net = network(line(3))
    net.attach("c", "b0")
    net.attach("p", "b2")
    net.publish("p", quote(1))
    net.run(5.0)
    net.subscribe("c", "all", ALL, lease=1000.0, window=100)
    net.pause("c")
    net.settle()
    net.publish("p", quote(2))
    net.crash("b0")
    net.restart("b0")
    net.unpause("c")
    net.settle()
    net.publish("p", quote(3))
    net.settle()
    assert "3" in handed(net.trace, "c") and check_trace(net.trace) == []


def test_what_was_replayed_is_not_again() -> None:
    net = network(line(2))
    net.attach("c", "b0")
    net.attach("p", "b1")
    net.publish("p", quote(1), quote(2), quote(3))
    net.settle()
    net.subscribe("c", "all", ALL, lease=1000.0, window=100, replay=Replay(last=2))
    net.settle()
    net.crash("b0")
    net.publish("p", quote(4))
    net.restart("b0")
    net.settle()
    assert handed(net.trace, "c") == ["2", "3", "4"]
    assert not any(isinstance(record, Missing) for record in net.trace)


@pytest.mark.parametrize("parts", [False, True], ids=["before it has answered", "in the midst of its answer"])
def test_what_a_broker_was_to_replay_comes_when_it_is_back(parts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if parts:
        monkeypatch.setattr(reading, "PAGE", 2)
    net = network(line(3), link=Link(Constant(1.0)))
    net.attach("c", "b0")
    net.attach("p", "b2")
    net.attach("q", "b0")
    net.publish("p", *(quote(number) for number in range(1, 9)))
    net.publish("q", quote(10, "q"))
    net.run(20.0)
    net.subscribe("c", "all", ALL, lease=1000.0, window=100, replay=Replay(all=True))
    net.run(25.5 if parts else 22.5)
    net.cut("b1", "b2")
    net.settle()
    before = handed(net.trace, "c")
    assert "10" in before and len(before) < 9 and (len(before) > 1) == parts
    net.publish("p", quote(9))
    net.restore("b1", "b2")
    net.settle()
    assert sorted(handed(net.trace, "c"), key=int) == [str(number) for number in range(1, 11)]
    assert [id for id in handed(net.trace, "c") if id != "10"] == [str(number) for number in range(1, 10)]
    assert not any(isinstance(record, Missing) for record in net.trace)
    assert check_trace(net.trace, stored=True) == []


def test_a_subscription_that_begins_while_others_catch_up_loses_nothing_either() -> None:
    net = network(line(3), link=Link(Constant(1.0)))
    net.attach("c", "b0")
    net.attach("p", "b2")
    net.subscribe("c", "one", ALL, lease=1000.0, window=100)
    net.settle()
    net.cut("b1", "b2")
    net.publish("p", quote(1))
    net.settle()
    net.restore("b1", "b2")
    net.run(net.now + 2.5)
    core = net.brokers["b0"].core
    assert isinstance(core, BrokerCore)
    assert core.recovery.feeds.roster.main[Origin("b2", 1)].is_fetching
    net.subscribe("c", "other", ALL, lease=1000.0, window=100)
    net.run(net.now + 0.5)
    net.crash("b0")
    net.publish("p", quote(2))
    net.restart("b0")
    net.settle()
    assert {name for record in net.trace if isinstance(record, Notified) for name, _ in record.numbers} == {
        "one",
        "other",
    }
    assert handed(net.trace, "c")[-1] == "2" and not any(isinstance(record, Missing) for record in net.trace)
