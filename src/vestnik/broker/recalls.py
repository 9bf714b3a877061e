"""What a broker has recalled of others and of itself, and who waits for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import count
from typing import NamedTuple, TypeAlias

from msgspec import structs

from vestnik.broker.effects import Effect, Read, Send
from vestnik.broker.reach import Surroundings
from vestnik.routing.propagation import Source
from vestnik.wire.messages import Addressed, NodeId, Recall, Recalled

ANSWER_WITHIN = 60.0
"""Seconds in which a broker has to send a part of what is recalled."""


class Request(NamedTuple):
    """A client wants to know something once: what was in the past, or when all brokers know what it wants."""

    node: NodeId
    number: int


Asker: TypeAlias = Source | Request
"""For whom something is recalled: a subscription, or a client's request."""


class Asked(NamedTuple):
    """What was recalled of a broker, and for whom: subscriptions with these numberings, and no later ones."""

    broker: NodeId
    recall: Recall
    askers: frozenset[Asker]
    epochs: frozenset[int]
    replays: bool

    def has(self, message: Recalled) -> bool:
        """Whether a part of the answer has come before: another would be asked for twice."""
        return message.is_part and message.after <= self.recall.after

    def rest(self, message: Recalled) -> Recall:
        """What is to be asked for behind a part of the answer."""
        return structs.replace(self.recall, after=message.after, upto=message.upto)


class Recalls:
    """They are numbered from `first` on. The rest of one may be held until there is room for it."""

    def __init__(self, name: NodeId, surroundings: Surroundings, first: int) -> None:
        self.name = name
        self._surroundings = surroundings
        self._numbers = count(first)
        self._asked: dict[int, Asked] = {}
        self._held: dict[int, Asked] = {}
        self._expected: dict[int, Asked] = {}
        self._since: dict[tuple[int, Asked], float] = {}  # when what is asked was first seen to be unanswered

    def get(self, number: int) -> Asked | None:
        """What was asked, if it is not held."""
        return self._asked.get(number)

    def of(self, brokers: Collection[NodeId]) -> list[int]:
        """The numbers of those of some brokers."""
        return [number for number, asked in (self._asked | self._held).items() if asked.broker in brokers]

    def ask(
        self, broker: NodeId, recall: Recall, askers: Iterable[Asker], epochs: Iterable[int], *, replays: bool
    ) -> tuple[int, list[Effect]]:
        """Recall something; the number by which it is answered."""
        number = next(self._numbers)
        recall = structs.replace(recall, number=number)
        self._asked[number] = Asked(broker, recall, frozenset(askers), frozenset(epochs), replays)
        return number, self.send(broker, recall)

    def expect(self, neighbour: NodeId, recall: Recall, askers: Iterable[Asker], epochs: Iterable[int]) -> int:
        """Something is to be recalled of all behind a neighbour, when that has said who they are; the number of it."""
        number = next(self._numbers)
        self._expected[number] = Asked(neighbour, recall, frozenset(askers), frozenset(epochs), True)
        return number

    def no_longer_expect(self, neighbours: Collection[NodeId]) -> dict[int, Asked]:
        """What was to be recalled of all behind these neighbours."""
        found = {number: asked for number, asked in self._expected.items() if asked.broker in neighbours}
        self._expected = {number: asked for number, asked in self._expected.items() if number not in found}
        return found

    def send(self, broker: NodeId, recall: Recall) -> list[Effect]:
        if broker == self.name:
            return [Read(broker, recall)]
        way = self._surroundings.way(broker)
        return [] if way is None else [Send(way, Addressed(broker, self.name, recall))]

    def advance(self, number: int, rest: Recall, askers: Iterable[Asker]) -> None:
        """A part of the answer has come; the rest is for these."""
        self._asked[number] = self._asked[number]._replace(recall=rest, askers=frozenset(askers))

    def pop(self, number: int) -> Asked:
        """It is answered, or will not be."""
        return self._asked.pop(number) if number in self._asked else self._held.pop(number)

    def hold(self, number: int) -> None:
        """Do not ask for the rest for now."""
        self._held[number] = self._asked.pop(number)

    def held(self, numbers: Collection[int]) -> dict[int, Asked]:
        """Those of which the rest has not been asked for."""
        return {number: self._held[number] for number in sorted(numbers) if number in self._held}

    def resume(self, number: int) -> list[Effect]:
        """Ask for the rest."""
        self._asked[number] = asked = self._held.pop(number)
        return self.send(asked.broker, asked.recall)

    def forget(self, is_over: Callable[[int, Asked], bool]) -> None:
        """Of some nobody wants the rest any more."""
        self._held = {number: asked for number, asked in self._held.items() if not is_over(number, asked)}

    def late(self, now: float) -> list[tuple[int, Asked]]:
        """Those that have not been answered for too long."""
        self._since = {asked: self._since.get(asked, now) for asked in self._asked.items()}
        return [asked for asked, since in self._since.items() if now - since > ANSWER_WITHIN]

    def shift(self, by: float) -> None:
        """The clock was set."""
        self._since = {asked: since + by for asked, since in self._since.items()}
