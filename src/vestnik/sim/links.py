"""How long a message takes from one node to the next, and what becomes of it on the way."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from msgspec import Struct

from vestnik.model.times import FOREVER
from vestnik.sim.kernel import Kernel
from vestnik.wire.messages import Message, NodeId


class Constant(Struct, frozen=True, tag="constant", tag_field="kind", forbid_unknown_fields=True):
    """Always the same number of seconds."""

    seconds: float = 0.01

    def __post_init__(self) -> None:
        if not 0 <= self.seconds < FOREVER:
            raise ValueError(f"a delay is a number of seconds from 0, not {self.seconds}")

    @property
    def least(self) -> float:
        return self.seconds

    @property
    def most(self) -> float:
        return self.seconds

    def sampler(self, rng: Random) -> Callable[[], float]:
        seconds = self.seconds
        return lambda: seconds


class Uniform(Struct, frozen=True, tag="uniform", tag_field="kind", forbid_unknown_fields=True):
    """Evenly between two bounds."""

    least: float
    most: float

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most < FOREVER:
            raise ValueError(f"delays lie between two bounds from 0, not between {self.least} and {self.most}")

    def sampler(self, rng: Random) -> Callable[[], float]:
        least, width, random = self.least, self.most - self.least, rng.random
        return lambda: least + width * random()


class Exponential(Struct, frozen=True, tag="exponential", tag_field="kind", forbid_unknown_fields=True):
    """Exponential with a mean. There is no longest."""

    mean: float

    def __post_init__(self) -> None:
        if not 0 < self.mean < FOREVER:
            raise ValueError(f"a mean delay is a number of seconds above 0, not {self.mean}")

    @property
    def least(self) -> float:
        return 0.0

    @property
    def most(self) -> float:
        return FOREVER

    def sampler(self, rng: Random) -> Callable[[], float]:
        rate = 1 / self.mean
        return lambda: rng.expovariate(rate)


Delay: TypeAlias = Constant | Uniform | Exponential


class Link(Struct, frozen=True, forbid_unknown_fields=True):
    """Both directions of a link. With `fifo` messages arrive in the order in which they were sent.

    `loss` and `duplication` are the probabilities of each message to be lost, and if it is not, to arrive twice.
    """

    delay: Delay = Constant()  # a frozen value
    loss: float = 0.0
    duplication: float = 0.0
    fifo: bool = True

    def __post_init__(self) -> None:
        for name, value in (("loss", self.loss), ("duplication", self.duplication)):
            if not 0 <= value < 1:
                raise ValueError(f"{name} is a probability from 0 and below 1, not {value}")


Lost: TypeAlias = Callable[["Channel", Message], None]


class Channel:
    """One direction of a link that is up. Once it is closed, what is still on its way does not arrive."""

    def __init__(
        self,
        kernel: Kernel,
        link: Link,
        rng: Random,
        sender: NodeId,
        receiver: NodeId,
        receive: Callable[[Message, NodeId], None],
        lost: Lost,
    ) -> None:
        self.sender = sender
        self.receiver = receiver
        self._kernel = kernel
        self._delay = link.delay.sampler(rng)
        self._fifo = link.fifo
        self._chances = (link.loss, link.duplication) if link.loss or link.duplication else None
        self._random = rng.random
        self._receive = receive
        self._lost = lost
        self._open = True
        self._last = 0.0  # when the last message arrives

    def send(self, message: Message) -> None:
        if self._chances is not None:
            loss, duplication = self._chances
            if self._random() < loss:
                self._lost(self, message)
                return
            if self._random() < duplication:
                self._put(message)
        self._put(message)

    def close(self) -> None:
        self._open = False

    def _put(self, message: Message) -> None:
        kernel = self._kernel
        time = kernel.now + self._delay()
        if self._fifo:
            if time < self._last:
                time = self._last
            else:
                self._last = time
        kernel.at(time, self._arrive, message)

    def _arrive(self, message: Message) -> None:
        if self._open:
            self._receive(message, self.sender)
        else:
            self._lost(self, message)
