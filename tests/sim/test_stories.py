"""Whatever happens while clients get their past: all comes, once and in order, or it is said that some may not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest

from sim.worlds import network, small_pages
from vestnik import Event, Filter
from vestnik.broker.core import BrokerCore
from vestnik.sim.links import Constant, Link
from vestnik.sim.topologies import line
from vestnik.trace.records import Lost, Missing, Notified, Published
from vestnik.wire.replays import Replay

RUNS = int(os.environ.get("VESTNIK_RUNS", "100"))
EVERYTHING = Replay(all=True)
FILTERS = [Filter.parse(text) for text in ("EXISTS n", "k <= 2", "k <= 1", "k >= 1", "k >= 2")]
KNOWN_AFTER = 5.0
"""Seconds after which all brokers know what is wanted."""


@dataclass
class Wish:
    """A subscription of the client c, made then, and the filters that it had."""

    name: str
    replay: Replay | None
    at: float
    filters: list[Filter]

    def is_due(self, published: Published) -> bool:
        """Whether it has to come, or has to be said that it may not."""
        is_late = published.at > self.at + KNOWN_AFTER
        return (is_late or self.replay == EVERYTHING) and all(one.matches(published.event) for one in self.filters)


class Story:
    """Publishers at all brokers of a line, a client with some subscriptions, and what happens meanwhile."""

    def __init__(self, seed: int, window: int) -> None:
        self._chance = chance = Random(seed)
        strategy = chance.choice(["covering", "merging", "simple", "flooding"])
        self._net = net = network(line(4), strategy, link=Link(Constant(chance.choice([0.2, 1.0]))))
        self._window = window
        self._published: list[tuple[str, str]] = []
        self._is_paused = False
        self._cut: set[int] = set()
        self._down: set[str] = set()
        net.attach("c", "b0")
        for place in range(4):
            net.attach(f"p{place}", f"b{place}")
        for _ in range(8):
            self.publish()
        net.settle()
        self._wishes = [self._wish(f"s{number}") for number in range(chance.randint(1, 3))]
        net.run(net.now + chance.uniform(0.5, 8))
        acts = {
            self.publish: 6,
            self.cut: 4,
            self.end: 3,
            self.pause: 3,
            self.change: 3,
            self.move: 2,
            self.nothing: 4,
        }
        for act in chance.choices(list(acts), list(acts.values()), k=chance.randint(2, 12)):
            act()
            net.run(net.now + chance.uniform(0.1, 4))
        self._mend()

    def _wish(self, name: str) -> Wish:
        replay = self._chance.choice([EVERYTHING, EVERYTHING, Replay(last=4), None])
        wish = Wish(name, replay, self._net.now, [self._chance.choice(FILTERS)])
        self._say(wish)
        self._net.run(self._net.now + self._chance.uniform(0, 3))
        return wish

    def _say(self, wish: Wish) -> None:
        self._net.subscribe("c", wish.name, wish.filters[-1], lease=1000.0, window=self._window, replay=wish.replay)

    def _mend(self) -> None:
        if self._is_paused:
            self._net.unpause("c")
        for broker in sorted(self._down):
            self._net.restart(broker)
        for place in sorted(self._cut):
            self._net.restore(f"b{place}", f"b{place + 1}")
        self._net.settle()
        self._net.settle(at_least=200.0)

    # --- what may happen ---

    def publish(self) -> None:
        """Some events are effects of others."""
        source, events = f"p{self._chance.randrange(4)}", []
        for _ in range(self._chance.randint(1, 6)):
            number = len(self._published) + 1
            causes = [self._chance.choice(self._published[-6:])] if self._published and number % 3 == 0 else []
            data = {"n": number, "k": number % 4}
            events.append(Event("quote", data, source=source, id=str(number), causes=causes))
            self._published.append((source, str(number)))
        self._net.publish(source, *events)

    def cut(self) -> None:
        place = self._chance.randrange(3)
        (self._net.restore if place in self._cut else self._net.cut)(f"b{place}", f"b{place + 1}")
        self._cut ^= {place}

    def end(self) -> None:
        broker = f"b{self._chance.randrange(4)}"
        (self._net.restart if broker in self._down else self._net.crash)(broker)
        self._down ^= {broker}

    def pause(self) -> None:
        (self._net.unpause if self._is_paused else self._net.pause)("c")
        self._is_paused = not self._is_paused

    def change(self) -> None:
        wish = self._chance.choice(self._wishes)
        wish.filters.append(self._chance.choice(FILTERS))
        self._say(wish)

    def move(self) -> None:
        broker = f"b{self._chance.randrange(4)}"
        if not {broker, self._net.homes["c"]} & self._down:
            self._net.move("c", broker)

    def nothing(self) -> None: ...

    # --- what has to be ---

    def wrong(self) -> Iterator[str]:
        for wish in self._wishes:
            yield from self._wrong_with(wish)
        core = self._net.brokers[self._net.homes["c"]].core
        assert isinstance(core, BrokerCore)
        feeds = core.recovery.feeds
        for origin in feeds.roster.main:
            yield from [f"{feed} still catches up" for feed in feeds.roster.all(origin) if not feed.is_live]

    def _wrong_with(self, wish: Wish) -> Iterator[str]:
        trace = self._net.trace
        got = [record.event for record in trace if isinstance(record, Notified) and wish.name in dict(record.numbers)]
        due = {record.event.id for record in trace if isinstance(record, Published) and wish.is_due(record)}
        is_said = any(isinstance(record, Missing | Lost) and record.name == wish.name for record in trace)
        given = [event.id for event in got]
        if not is_said and not due <= set(given):
            yield f"{wish.name} lacks {sorted(due - set(given))}"
        if len(set(given)) < len(given):
            yield f"{wish.name} got something twice"
        last: dict[object, int] = {}
        for event in got:
            if last.get(event.stream, 0) >= (event.seq or 0):
                yield f"{wish.name} got {event.id} out of order"
            last[event.stream] = event.seq or 0


@pytest.mark.parametrize("window", [2, 10_000])
def test_whatever_happens_meanwhile(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where few events may be in flight, and where many."""
    small_pages(monkeypatch)
    wrong = {seed: found for seed in range(RUNS) if (found := list(Story(seed, window).wrong()))}
    assert wrong == {}
