"""Subscribers of the random worlds. They speak the protocol by themselves, with exact cursors."""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from recovery.links import Connection
from recovery.nodes import EPOCH, SKEW, Numbering, Range, within
from vestnik import Event
from vestnik.broker.effects import Drained, Full
from vestnik.model.envelope import Pair
from vestnik.model.times import MICROS
from vestnik.wire.messages import (
    Accepted,
    Answer,
    Ask,
    Delivery,
    Gap,
    Message,
    Notify,
    Position,
    Refused,
    Subscribe,
    Took,
    Unknown,
    Unsubscribe,
)
from vestnik.wire.origins import ENDLESS
from vestnik.wire.replays import Replay

if TYPE_CHECKING:
    from recovery.worlds import World

NAME: Final = "s"


class Got(NamedTuple):
    """An event that a subscriber was given: in which numbering, of which log, and whether it may have had it."""

    epoch: int
    log: str
    event: Event
    is_again: bool


class Item(NamedTuple):
    """A notification, with the logs of its message."""

    epoch: int
    number: int
    delivery: Delivery
    logs: dict[str, int]


class Upto(NamedTuple):
    """The end of an answer: everything up to a number was in it."""

    epoch: int
    number: int


class Chain:
    """What a subscriber got from one start on, with nothing forgotten in between.

    It goes through numberings, each from the cursors on that the subscriber had then. One that was `adopted` had begun
    earlier, for a subscriber that has forgotten it.
    """

    def __init__(self, first: Numbering, replay: Replay | None, at: float, *, is_adopted: bool = False) -> None:
        self.first, self.replay, self.at, self.is_adopted = first, replay, at, is_adopted
        self.numberings: list[tuple[Numbering, dict[str, float]]] = []
        self.got: list[Got] = []
        self.gaps: list[tuple[int, Gap]] = []
        self.logs: set[str] = set()  # of which there was ever a cursor

    @property
    def picks(self) -> bool:
        return self.replay is not None and self.replay.picks

    def numbering_at(self, log: str, offset: int) -> Numbering:
        """Return the numbering in which an offset was passed."""
        return [one for one, start in self.numberings if start.get(log, 0) <= offset][-1]


class Subscriber:
    """A client with one subscription. It may be slow, move, lose its memory, and change its filter."""

    def __init__(self, world: World, name: str, wanted: Range, start: float | None, last: int) -> None:
        self.world, self.name, self.wanted = world, name, wanted
        self.start, self.last = start, last
        self.window = world.rng.choice([1, 4, 4, 20])
        self.settles = world.rng.random() < 0.5
        self.rhythm = world.rng.choice([3.0, min(world.lease / 2, 100.0)])  # of renewals
        self.broker = ""
        self.connection: Connection | None = None
        self.chains: list[Chain] = []
        self.ended = False
        self.paused = 0.0
        self.inbox: deque[Item | Upto | Accepted] = deque()
        self._is_busy = False
        self._asked: tuple[int, Replay | None] = 0, None
        self.forget()

    # --- memory ---

    def forget(self, *, adopts: bool = False) -> None:
        """Lose all memory."""
        self.adopts = adopts
        self.epoch, self.number = 0, 0
        self.afresh = next(self.world.ids)
        self.is_welcome, self.made = False, 0
        self.cursors: dict[str, int] = {}
        self._over: set[str] = set()  # logs that were given up
        self._pairs: dict[Pair, tuple[int, str]] = {}
        self._skipped: dict[str, float] = {}
        self._again = 0  # up to this number of an adopted numbering, it may have had what it gets
        self._next_numbering()

    def _next_numbering(self) -> None:
        self._early: dict[int, Item] = {}
        self._places: list[Accepted] = []
        self._is_answered = True

    @property
    def place(self) -> dict[str, float]:
        return {**self.cursors, **dict.fromkeys(self._over, inf)}

    # --- connections ---

    def choose(self) -> str:
        rng = self.world.rng
        return rng.choice(list(self.world.nodes)) if rng.random() < 0.4 or not self.broker else self.broker

    def connect(self, broker: str) -> None:
        if self.ended:
            return
        if self.connection is not None:
            self.disconnect(again=False)
        node, rng = self.world.nodes[broker], self.world.rng
        if not node.is_up:
            self.world.after(rng.uniform(0.5, 2), self.return_)
            return
        if self.broker and self.broker != broker:
            self._leave(self.broker)
        self.broker = broker
        self.connection = Connection(self.world, self.name, node, self._opened, self._hear)

    def _leave(self, broker: str) -> None:
        """Let the broker before learn of it, sooner or later. If leases last, it learns of it by them."""
        node = self.world.nodes[broker]
        if node.is_up and self.world.lease == inf:
            self.world.after(self.world.rng.uniform(0.1, 3), node.leave, self.name, NAME, node.life)

    def return_(self) -> None:
        if self.connection is None:
            self.connect(self.choose())

    def lose(self, broker: str) -> None:
        if self.broker == broker and self.connection is not None:
            self.disconnect()

    def disconnect(self, *, again: bool = True) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None
        self.inbox.clear()
        self._next_numbering()
        if again:
            self.world.after(self.world.rng.uniform(0.3, 3), self.return_)

    def _say(self, message: Message) -> None:
        if self.connection is not None:
            self.connection.say(message)

    # --- subscribing ---

    def _opened(self) -> None:
        if self.epoch and not self.is_welcome:
            self.forget()  # it does not know when the subscription was made
        self.afresh = next(self.world.ids)
        chance = self.world.rng.random()
        if self.epoch:
            self._is_answered = False
            if chance < 0.6:
                self._ask()
            if chance > 0.3:
                self.subscribe(settled=self.settles)  # otherwise if the broker does not know it any more
            if chance >= 0.6:
                self._ask()
        else:
            self.subscribe(settled=self.settles)
        self._renew_later(self.connection)

    def _ask(self) -> None:
        """Ask for what is in flight, and say once more what was taken: that may have been lost, too."""
        position = Position(NAME, self.epoch, self.number)
        self._say(Ask((position,)))
        self._say(Took((position,)))

    def _renew_later(self, connection: Connection | None) -> None:
        self.world.after(self.rhythm * self.world.rng.uniform(0.6, 1), self._renew, connection)

    def _renew(self, connection: Connection | None) -> None:
        if connection is not None and connection is self.connection:
            self.subscribe()
            self._renew_later(connection)

    def subscribe(self, *, settled: bool = False) -> None:
        """Subscribe, renew the subscription, or change its filter."""
        replay = self._replay()
        self._say(
            Subscribe(
                NAME,
                within(self.wanted),
                min(self.world.lease, 1e9),
                self.window,
                self.epoch,
                self.afresh,
                replay,
                self.number,
                tuple(self.cursors.items()) if self.is_welcome else (),  # without `made` they are worth nothing
                settled=settled,
                adopts=self.adopts,
                made=self.made,
                request=next(self.world.ids),
            )
        )

    def _replay(self) -> Replay | None:
        if self.last:
            return Replay(last=self.last)
        if self.start is None:
            return None
        self.start = min(self.start, self.world.now - SKEW)
        return Replay(all=True) if self.start == -inf else Replay(since=int((EPOCH + self.start) * MICROS))

    def change(self, wanted: Range) -> None:
        self.wanted = wanted
        self.subscribe()

    def unsubscribe(self) -> None:
        self._say(Unsubscribe(NAME, request=next(self.world.ids)))
        self.ended, self.connection = True, None
        self.inbox.clear()

    def pause(self, seconds: float) -> None:
        """Take nothing for a while; maybe the connection is full meanwhile."""
        self.paused = self.world.now + seconds
        connection = self.connection
        if connection is not None and self.world.rng.random() < 0.5:
            connection.say(Full(self.name))
            self.world.after(seconds, lambda: connection.say(Drained(self.name)) if connection.is_open else None)

    # --- what it is sent ---

    def _hear(self, message: Message) -> None:
        if self.ended:
            return
        match message:
            case Notify(deliveries, logs):
                self._put(deliveries, dict(logs))
            case Answer(last, kept, logs):
                self._put(kept, dict(logs))
                self.inbox += [Upto(*one) for one in last]
            case Unknown():
                self.subscribe(settled=self.settles)
            case Accepted() if message.epoch:
                self.inbox.append(message)
            case Refused(_, reason):
                self.world.blame(f"{self.name} is refused: {reason}")
        self._work()

    def _put(self, deliveries: tuple[Delivery, ...], logs: dict[str, int]) -> None:
        each = [one for some in deliveries for one in some.each()]
        self.inbox += [Item(*number, one, logs) for one in each for number in one.numbers]

    def _work(self) -> None:
        if not self._is_busy and self.inbox:
            self._is_busy = True
            pause = max(self.paused - self.world.now, 0)
            self.world.after(pause + self.world.rng.uniform(0.01, self.world.think), self._take)

    def _take(self) -> None:
        self._is_busy = False
        if not self.inbox:
            return
        item = self.inbox.popleft()
        if isinstance(item, Accepted):
            self._accepted(item)
        elif item.epoch == self.afresh:
            self._switch()
        if item.epoch == self.epoch and isinstance(item, Item):
            self._early[item.number] = item
            self._give()
        elif item.epoch == self.epoch and isinstance(item, Upto):
            self._is_answered = True
            if self.number < item.number:
                self.world.blame(f"{self.name} is answered up to {item.number}, and has {self.number} only")
        self._arrive()
        self._work()

    def _accepted(self, accepted: Accepted) -> None:
        if accepted.epoch == self.afresh:
            self._switch()
        elif self.adopts and self.epoch == 0:
            self._adopt(accepted)
        if accepted.epoch == self.epoch:
            self.is_welcome, self.made, self.adopts = True, accepted.made, False
            self._places.append(accepted)

    def _switch(self) -> None:
        """Go on with the numbering that the broker has begun."""
        numbering = self.world.numberings[self.afresh]
        if not numbering.has_cursors:
            self._begin(Chain(numbering, self._replay(), numbering.at))
        self.epoch, self.number = self.afresh, 0
        self.afresh = next(self.world.ids)
        self._skipped, self._again = self.place, 0
        self._next_numbering()
        self.chains[-1].numberings.append((numbering, self._skipped))

    def _begin(self, chain: Chain) -> None:
        self.is_welcome, self.made = False, 0
        self.cursors, self._over, self._pairs = {}, set(), {}
        self.chains.append(chain)

    def _adopt(self, accepted: Accepted) -> None:
        """Go on with a numbering of an earlier life."""
        numbering = self.world.numberings[accepted.epoch]
        self._begin(Chain(numbering, self._replay(), self.world.now, is_adopted=True))
        self.chains[-1].numberings.append((numbering, {}))
        self.epoch, self.number = accepted.epoch, accepted.taken
        self._skipped, self._again = {}, accepted.last
        self._next_numbering()
        self._is_answered = False
        self._ask()

    def _give(self) -> None:
        """Give the application what is next in order."""
        number = self.number
        for one in [one for one in self._early if one <= number]:
            del self._early[one]
        while self.number + 1 in self._early:
            self.number += 1
            item = self._early.pop(self.number)
            if item.delivery.gap is not None:
                self._tell(item.delivery.gap)
            elif item.delivery.event is not None:
                self._deliver(item.delivery.event, item.logs)
        if self._early and self._is_answered:
            self.world.blame(f"number {min(self._early)} after {self.number} at {self.name}")
        if self.number > number:
            self._say(Took((Position(NAME, self.epoch, self.number),)))

    def _tell(self, gap: Gap) -> None:
        place = self.place.get(gap.log, 0)
        if gap.rewinds:
            self.world.blame(f"{gap.log} was rewound at {self.name}")
        elif gap.log and place < gap.end:
            self.chains[-1].gaps.append((self.epoch, gap))
            if gap.end == ENDLESS:
                self.cursors.pop(gap.log, None)
                self._over.add(gap.log)
            else:
                self.cursors[gap.log] = gap.end

    def _deliver(self, event: Event, logs: dict[str, int]) -> None:
        log, offset, pair = f"{event.broker}/{logs.get(event.broker or '')}", event.seq or 0, (event.source, event.id)
        if offset < self._skipped.get(log, 0):
            return  # it had this when the numbering began
        epoch, origin = self._pairs.setdefault(pair, (self.epoch, log))
        if origin == log or epoch == self.epoch:  # otherwise it is a repeat, which brokers cannot know after a move
            self.chains[-1].got.append(Got(self.epoch, log, event, self.number <= self._again))
        self.cursors[log] = max(offset + 1, self.cursors.get(log, 0))

    def _arrive(self) -> None:
        """Take over the cursors of brokers that are reached."""
        for accepted in [one for one in self._places if one.last <= self.number]:
            self._places.remove(accepted)
            for log, offset in accepted.seen:
                if log not in self._over:
                    self.cursors[log] = max(offset, self.cursors.get(log, 0))
        if self.chains:
            self.chains[-1].logs |= self.cursors.keys()
