"""One end of a connection, and whoever is told what happens at it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol, TypeAlias

from vestnik.wire.bounds import Bounds
from vestnik.wire.messages import Goodbye, Message

CLOSED: Final = "the other side closed the connection"
UNHANDLED: Final = "a message of it could not be handled"


class End(ABC):
    """Messages are sent in order. What was sent goes out with `flush`, which costs the same for one and for many."""

    peer: str
    """Where the other end is, for people."""
    certificates: frozenset[str] = frozenset()
    """The names in the certificate that the other end has shown, and that was verified."""

    unsent = 0
    """Bytes that go out with the next `flush`."""
    arrived = 0
    """Bytes that have come, also of a message that is not complete; 0 where messages come as they are."""
    packs = False
    """Whether messages are packed as they are sent: then their events may be packed before."""

    @property
    def waiting(self) -> int:
        """Bytes that were sent and not taken by the other end."""
        return 0

    @abstractmethod
    def send(self, message: Message) -> None: ...

    @abstractmethod
    def flush(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """End the connection once all that was sent is out. Nothing is received any more."""

    async def over(self) -> None:  # noqa: B027
        """Wait until the connection that was closed is gone, and all that was sent is out."""

    @property
    def size(self) -> int | None:
        """Bytes of the message that was handed over last; None where it had none."""
        return None

    @property
    def is_behind(self) -> bool:
        """Whether messages have arrived that were not handed over yet, because something else comes first."""
        return False

    def know(self, bounds: Bounds) -> None:  # noqa: B027
        """Take all messages within these bounds: it is known who sends them."""

    @abstractmethod
    def pause(self) -> None:
        """Hand over no more messages until `resume`, and read no more than is on its way."""

    @abstractmethod
    def resume(self) -> None:
        """Hand over messages again."""

    def refuse(self, code: str, reason: str) -> None:
        """Say why, and end the connection."""
        self.send(Goodbye(code, reason))
        self.close()


class Receiver(Protocol):
    """Whoever is at an end."""

    def connected(self, end: End) -> None:
        """The connection is there."""

    def received(self, end: End, messages: Iterable[Message]) -> None:
        """These have arrived together. They are read one by one as they are asked for, until the end is paused."""

    def closed(self, end: End, reason: str, code: str = "") -> None:
        """The connection is over, and not by `close` of this end; the reason in a word, if there is one for it."""

    def full(self, end: End) -> None:
        """The other end does not take as much as is sent."""

    def drained(self, end: End) -> None:
        """It does again."""


Dial: TypeAlias = Callable[[Receiver], Awaitable[End]]
"""Connect to a certain broker. OSError if that fails."""
