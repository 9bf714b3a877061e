"""What clients do is drawn once, and how long it takes, how much it weighs and says is measured."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from vestnik import Event, Filter
from vestnik.lab.complexity import complexity
from vestnik.lab.delays import LINK, delays
from vestnik.lab.meter import Meter, size
from vestnik.lab.overlay import Overlay, Routing
from vestnik.lab.plays import WORKLOADS, Play, Size, Wanted, links_to_use, play
from vestnik.lab.statistics import quantile
from vestnik.sim.topologies import line
from vestnik.wire.messages import AdminS, Interest, Publish, Subscribe, Unsubscribe
from vestnik.wire.origins import Origin, Routed

SMALL = Size(6, 3, 2, 10, 2)
WIDE, NARROW = Filter.parse("x > 0"), Filter.parse("x > 5")
HERE = Play(
    line(3),
    Filter.all(),
    {"p": "b0"},
    (Wanted("c", "b2", "s", WIDE), Wanted("c", "b2", "t", NARROW), Wanted("d", "b0", "s", NARROW)),
    (("p", Event("e", {"x": 3}, source="p", id="1")), ("p", Event("e", {"x": -3}, source="p", id="2"))),
    (),
)


@pytest.mark.parametrize("name", WORKLOADS)
def test_equal_sizes_give_equal_plays(name: str) -> None:
    first = play(name, SMALL)
    play.cache_clear()
    assert play(name, SMALL) == first
    assert (len(first.subscriptions), len(first.publications), len(first.visits)) == (30, 10, 2)


def test_links_to_use() -> None:
    def links(publisher: str, *brokers: str) -> int:
        return links_to_use(line(5), publisher, brokers)

    assert (links("b2", "b0", "b4"), links("b0", "b4", "b0"), links("b2", "b3"), links("b3", "b3"), links("b2")) == (
        4, 4, 1, 0, 0,
    )  # fmt: skip
    assert HERE.useful == 2


@pytest.mark.parametrize("advertisements", [False, True])
def test_delays_are_those_of_the_way(advertisements: bool) -> None:
    (found,) = delays(HERE, Routing("covering", advertisements))
    assert 4 * LINK.delay.least < found < 4 * LINK.delay.most + 0.001
    assert delays(HERE, Routing("flooding")) == pytest.approx([found])
    nearer = replace(HERE, producers={"p": "b2"})
    assert delays(nearer, Routing("covering"))[0] < 2 * LINK.delay.most + 0.001 < found


def test_messages_weigh_what_they_are_encoded_to() -> None:
    event = HERE.publications[0][1]
    plain = msgspec.json.decode(event.to_json())
    routed = Routed(Origin("b0", 1), (event, event))
    assert size(routed) == len(msgspec.msgpack.encode(["Routed", ["b0", 1], [plain, plain]]))
    told = AdminS(add=(Interest(WIDE, "tag"),), remove=(Interest(NARROW),))
    fields = [[WIDE.to_dict(), "tag", float("inf")]], [[NARROW.to_dict(), "", float("inf")]]
    assert size(told) == len(msgspec.msgpack.encode(["AdminS", *fields]))
    with pytest.raises(TypeError, match="do not send Publish"):
        size(Publish((event,)))


def test_a_meter_adds_up_what_brokers_send() -> None:
    meter = Meter()
    overlay = Overlay(line(3), Routing("covering"), meter.take)
    overlay.link()
    overlay.hand("b0", Subscribe("s", NARROW), "c")
    assert (meter.added, meter.removed) == (2, 0)
    overlay.hand("b0", Subscribe("t", WIDE), "c")
    assert (meter.added, meter.removed) == (4, 2)
    assert list(overlay.remote_filters()) == [WIDE, WIDE]
    overlay.hand("b0", Unsubscribe("t"), "c")
    assert (meter.added, meter.removed) == (6, 4)
    assert meter.bytes[AdminS] > 6 * len(msgspec.msgpack.encode(WIDE.to_dict()))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("x > 3", 1),
        ("x BETWEEN 3 AND 7", 1),
        ("x != 3", 2),
        ("x IN (3, 7)", 2),
        ("x = 'a' AND y > 7", 2),
        ("x IN ('a', 'b', 'c') AND y > 7 OR z = TRUE", 5),
        ("name LIKE '%a%'", 1),
        ("ANY alarms (level >= 2)", 1),
        ("TRUE", 0),
    ],
)
def test_how_much_a_filter_says(text: str, parts: int) -> None:
    assert complexity(Filter.parse(text)) == parts


def test_quantiles() -> None:
    values = [float(value) for value in range(20, 0, -1)]
    assert (quantile(values, 0.5), quantile(values, 0.95), quantile([7.0], 0.5)) == (10, 19, 7)
    assert quantile([], 0.5) is None
