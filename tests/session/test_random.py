"""Whatever becomes of broker and connection, each event is handed over once and in order, within the window."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest

from vestnik import Event, Filter
from vestnik.session.acts import Act, Hand, Lost, Missing, Passed, Say
from vestnik.session.session import Session
from vestnik.wire.messages import Accepted, Answer, Ask, Delivery, Message, Notify, Subscribe, Took, Unknown
from vestnik.wire.replays import Replay

LOGS = {"b1": 1, "b2": 3}
WINDOW = 5


class Broker:
    """Reads logs from cursors on, and forgets."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.logs: dict[str, list[Event]] = {broker: [] for broker in LOGS}
        self.out: deque[Message] = deque()  # on its way to the client
        self.forget()

    def forget(self) -> None:
        self.epoch = self.number = self.taken = 0
        self.cursors: dict[str, int] = {}
        self.in_flight: deque[Delivery] = deque()

    def append(self) -> None:
        broker = self.rng.choice(list(LOGS))
        offset = len(self.logs[broker]) + 1
        self.logs[broker].append(Event("e", {}, source="s", id=f"{broker}-{offset}").stamped(broker, offset))

    def hear(self, message: Message) -> None:
        match message:
            case Subscribe():
                if not self.epoch or self.epoch not in (message.epoch, message.afresh):
                    self.forget()
                    self.epoch = message.afresh
                    self.cursors = {
                        broker: dict(message.seen).get(f"{broker}/{log}", 1) for broker, log in LOGS.items()
                    }
                if self.epoch == message.epoch:
                    self.take(message.last)
                self.out.append(self.accepted(message.request))
            case Ask((position,)):
                if position.epoch != self.epoch:
                    self.out += [Unknown(position), Answer(())]
                else:
                    kept = tuple(one for one in self.in_flight if one.numbers[0][1] > position.after)
                    self.out.append(Answer(((self.epoch, self.number),), kept, tuple(LOGS.items())))
            case Took((position,)) if position.epoch == self.epoch:
                self.take(position.after)

    def accepted(self, request: int = 0) -> Accepted:
        seen = tuple((f"{broker}/{LOGS[broker]}", cursor) for broker, cursor in self.cursors.items())
        return Accepted(request, epoch=self.epoch, last=self.number, seen=seen if self.rng.random() < 0.7 else ())

    def take(self, number: int) -> None:
        assert number <= self.number
        while self.in_flight and self.in_flight[0].numbers[0][1] <= number:
            self.in_flight.popleft()

    def push(self) -> None:
        """Send some of what there is, within the window."""
        deliveries = []
        for _ in range(self.rng.randrange(1, 4)):
            ready = [broker for broker, cursor in self.cursors.items() if cursor <= len(self.logs[broker])]
            if not ready or len(self.in_flight) >= WINDOW:
                break
            broker = self.rng.choice(ready)
            event = self.logs[broker][self.cursors[broker] - 1]
            self.cursors[broker] += 1
            self.number += 1
            deliveries.append(Delivery((event,), ((self.epoch, self.number),)))
        self.in_flight.extend(deliveries)
        if deliveries:
            self.out.append(Notify(tuple(deliveries), tuple(LOGS.items())))


class World:
    """A client and its broker. What is said arrives in order, unless the connection is lost."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.broker = Broker(self.rng)
        self.client = Session("c", self.rng.uniform)
        self.said: deque[Message] = deque()
        self.handed: list[Event] = []
        self.numbers: list[int] = []
        self.done = 0
        self.now = 0.0
        replay = Replay(all=True) if self.rng.random() < 0.5 else None
        seen = {} if replay else {"b1/1": 1, "b2/3": 1}
        self.perform(self.client.subscribe("s", Filter.parse("TRUE"), 0.0, window=WINDOW, replay=replay, seen=seen))

    @property
    def epoch(self) -> int:
        """The numbering that the client follows."""
        return self.client._subscriptions["s"].epoch

    def perform(self, acts: list[Act]) -> None:
        for act in acts:
            assert not isinstance(act, Lost | Missing), act
            if isinstance(act, Say):
                self.said.append(act.message)
            elif isinstance(act, Hand):
                self.handed.append(act.event)
                self.numbers += [number for _, number in act.numbers]
            elif isinstance(act, Passed):
                self.take(0)

    def step(self, *, faults: bool) -> None:
        self.now += 0.2
        chance = self.rng.random()
        if faults and chance < 0.03:
            self.cut()
        elif faults and chance < 0.05:
            self.broker.forget()
            self.cut()
        elif faults and chance < 0.06 and not self.said and self.epoch == self.broker.epoch:
            self.broker.forget()
            self.perform(self.client.change("s", Filter.parse("TRUE"), self.now))
        elif chance < 0.15 and self.broker.epoch:
            self.broker.out.append(self.broker.accepted())
        elif chance < 0.3 and faults:
            self.broker.append()
        elif chance < 0.45:
            self.broker.push()
        elif chance < 0.6 and self.said:
            self.broker.hear(self.said.popleft())
        elif chance < 0.8 and self.broker.out:
            self.perform(self.client.handle(self.broker.out.popleft(), self.now))
        elif chance < 0.95:
            self.take(self.rng.randrange(3))
        else:
            self.perform(self.client.wake(self.now))

    def cut(self) -> None:
        """Lose what is on its way in both directions; the broker may have forgotten the client, or not."""
        self.said.clear()
        self.broker.out.clear()
        self.perform(self.client.resume(self.now))

    def take(self, count: int) -> None:
        self.done = min(self.done + count, len(self.handed))
        self.perform(self.client.took({"s": self.done + 1}))


@pytest.mark.parametrize("seed", range(200))
def test_each_event_is_handed_over_once_and_in_order(seed: int) -> None:
    world = World(seed)
    for _ in range(400):
        world.step(faults=True)
    for _ in range(3000):
        world.step(faults=False)
    for broker, log in world.broker.logs.items():
        assert [event.seq for event in world.handed if event.broker == broker] == list(range(1, len(log) + 1))
    assert world.numbers == list(range(1, len(world.handed) + 1))
    world.take(len(world.handed))
    while world.said:
        world.broker.hear(world.said.popleft())
    assert not world.broker.in_flight, "everything is acknowledged"
