"""Brokers and clients in virtual time."""

from __future__ import annotations

import pytest

from sim.worlds import ALL, handed, kinds, network, quote
from vestnik import Filter
from vestnik.sim.links import Constant, Link
from vestnik.sim.network import Network
from vestnik.sim.topologies import Topology, line
from vestnik.trace.records import Cut, Dropped, Notified, Published, Sent

STRATEGIES = ["flooding", "simple", "identity", "covering", "merging", "hierarchical covering"]


def pair(strategy: str = "covering", size: int = 4, **options: object) -> Network:
    """A consumer c at one end of a line and a producer p at the other."""
    net = network(line(size), strategy, **options)
    net.attach("c", "b0")
    net.attach("p", f"b{size - 1}")
    net.subscribe("c", "all", ALL, window=100)
    net.settle()
    return net


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_published_arrives(strategy: str) -> None:
    net = pair(strategy)
    net.publish("p", quote(1), quote(2))
    net.settle()
    assert handed(net.trace, "c") == ["1", "2"]
    published = [record.event.seq for record in net.trace if isinstance(record, Published)]
    assert published == [1, 2] and kinds(net.trace)[-1] == "Settled"


def test_it_takes_as_long_as_the_way_is() -> None:
    net = pair(link=Link(Constant(0.5)), access=Link(Constant(0.25)), disk=Constant(0.125))
    start = net.now
    net.publish("p", quote(1))
    net.settle()
    (arrived,) = [record.at for record in net.trace if isinstance(record, Notified)]
    assert arrived - start == pytest.approx(3 * 0.5 + 2 * 0.25 + 0.125)


def test_what_is_not_wanted_any_more_does_not_arrive() -> None:
    net = pair()
    net.unsubscribe("c", "all")
    net.settle()
    net.publish("p", quote(1))
    net.settle()
    assert handed(net.trace, "c") == []


def test_what_a_partition_holds_up_comes_when_it_heals() -> None:
    net = pair(link=Link(Constant(1.0)))
    net.publish("p", quote(1))
    net.run(net.now + 1.5)
    net.cut("b1", "b2")
    net.run(net.now + 5)
    net.publish("p", quote(2))
    net.settle()
    net.restore("b1", "b2")
    net.settle()
    net.publish("p", quote(3))
    net.settle()
    assert handed(net.trace, "c") == ["1", "2", "3"]
    assert [(record.event.id, record.node) for record in net.trace if isinstance(record, Dropped)] == [("1", "b2")]


def test_a_crash_loses_the_tables_and_they_come_back() -> None:
    net = pair()
    for broker in ("b1", "b0"):
        net.crash(broker)
        net.settle()
        net.restart(broker)
        net.settle()
    net.publish("p", quote(1))
    net.settle()
    assert handed(net.trace, "c") == ["1"]
    assert {"Crashed", "Restarted", "Cut", "Linked", "Attached", "Detached"} <= set(kinds(net.trace))


def test_what_was_stored_outlives_a_crash() -> None:
    net = pair(disk=Constant(1.0))
    net.publish("p", quote(1))
    net.settle()
    net.publish("p", quote(2))
    net.run(net.now + 0.5)
    net.crash("b3")
    net.settle()
    net.restart("b3")
    stored = [entry.event.id for entry in net.brokers["b3"].disk.entries_stored]
    assert stored == ["1"], "the second was not on disk yet"


def test_a_client_that_was_away_gets_what_was_kept() -> None:
    net = network(line(2))
    net.attach("c", "b0")
    net.attach("p", "b1")
    net.subscribe("c", "all", ALL, lease=100.0, window=100)
    net.settle()
    net.detach("c")
    net.publish("p", quote(1), quote(2))
    net.settle()
    assert handed(net.trace, "c") == []
    net.attach("c", "b0")
    net.settle()
    assert handed(net.trace, "c") == ["1", "2"]


def test_a_client_is_back_at_a_broker_whose_answer_it_never_heard() -> None:
    """That broker has the subscription, but gives other numbers than the one that the client heard meanwhile."""
    net = network(line(2), access=Link(Constant(1.0)))
    for client, broker in (("c", "b1"), ("p", "b0"), ("q", "b1")):
        net.attach(client, broker)
    net.subscribe("c", "all", ALL, lease=1000.0, window=100)
    net.run(net.now + 1.5)
    net.move("c", "b0")
    net.settle()
    net.publish("p", quote(1), quote(2))
    net.settle()
    net.cut("b0", "b1")
    net.move("c", "b1")
    net.publish("q", quote(3, "q"), quote(4, "q"))
    net.settle()
    net.restore("b0", "b1")
    net.settle()
    assert handed(net.trace, "c") == ["1", "2", "3", "4"]


def test_a_client_that_crashes_begins_anew() -> None:
    net = pair()
    net.crash_client("c")
    assert kinds(net.trace)[-3:] == ["Crashed", "Unsubscribed", "Detached"]
    net.settle()
    net.attach("c", "b0")
    net.subscribe("c", "new", Filter.parse("n > 1"))
    net.settle()
    net.publish("p", quote(1), quote(2))
    net.settle()
    assert handed(net.trace, "c") == ["2"]


def test_a_client_of_a_broker_that_is_down_is_connected_when_it_is_up() -> None:
    net = pair()
    net.detach("c")
    net.crash("b0")
    net.attach("c", "b0")
    net.restart("b0")
    net.settle()
    net.publish("p", quote(1))
    net.settle()
    assert handed(net.trace, "c") == ["1"]


def test_messages_are_recorded_where_asked_for() -> None:
    net = pair(all_sent=True)
    net.publish("p", quote(1))
    net.settle()
    forwards = [record for record in net.trace if isinstance(record, Sent) and record.kind == "Routed"]
    assert [(record.sender, record.receiver) for record in forwards] == [("b3", "b2"), ("b2", "b1"), ("b1", "b0")]
    assert all(record.events == (("p", "1"),) for record in forwards)


def test_only_links_that_are_there_can_be_cut() -> None:
    with pytest.raises(ValueError, match="no link between b0 and b2"):
        pair().cut("b0", "b2")


def test_streams_go_on_after_a_crash() -> None:
    net = pair()
    net.publish("p", quote(1))
    net.settle()
    net.crash("b3")
    net.settle()
    net.restart("b3")
    net.settle()
    net.publish("p", quote(2))
    net.settle()
    assert handed(net.trace, "c") == ["1", "2"]
    assert [record.event.seq for record in net.trace if isinstance(record, Published)] == [1, 2]


def test_what_comes_while_something_is_missing_waits_also_where_that_stays_away() -> None:
    """A link breaks again before what was missed has come; a later event had come already."""
    net = pair(size=3, link=Link(Constant(1.0)))
    net.cut("b0", "b1")
    net.publish("p", quote(1))
    net.settle()
    net.restore("b0", "b1")
    net.run(net.now + 2.5)
    net.publish("p", quote(2))
    net.run(net.now + 2.2)
    net.cut("b0", "b1")
    net.settle()
    assert handed(net.trace, "c") == []
    net.restore("b0", "b1")
    net.settle()
    assert handed(net.trace, "c") == ["1", "2"]


def test_clients_learn_the_positions_of_brokers_that_come_within_reach() -> None:
    """The subscription is older than what its broker knows of the others, and is never renewed."""
    net = network(line(3), link=Link(Constant(1.0)))
    net.attach("c", "b0")
    net.attach("p", "b2")
    net.subscribe("c", "all", ALL)
    net.run(10.0)
    net.crash("b0")
    net.publish("p", quote(1))
    net.run(20.0)
    net.restart("b0")
    net.run(30.0)
    assert handed(net.trace, "c") == ["1"] and "Missing" not in kinds(net.trace)


def test_a_link_that_closes_a_cycle_is_parted() -> None:
    net = network(Topology(("b0", "b1", "b2"), (("b0", "b1"), ("b1", "b2"), ("b0", "b2"))))
    net.cut("b0", "b2")
    net.settle()
    net.attach("c", "b0")
    net.attach("p", "b2")
    net.subscribe("c", "all", ALL)
    net.settle()
    net.restore("b0", "b2")
    net.settle()
    assert [sorted((record.one, record.other)) for record in net.trace if isinstance(record, Cut)] == [["b0", "b2"]] * 2
    net.publish("p", quote(1))
    net.settle()
    assert handed(net.trace, "c") == ["1"]
