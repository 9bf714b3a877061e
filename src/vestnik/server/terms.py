"""The settings that linked brokers must have in common, and how a broker that joins another learns them."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterable
from typing import NamedTuple

from vestnik.errors import NoBroker, TurnedAway, Unreachable, Untrusted
from vestnik.server.handshake import Parting
from vestnik.server.joins import hinted
from vestnik.server.presence import HELLO_WITHIN
from vestnik.server.settings import WITH_ADVERTISEMENTS
from vestnik.transport.ends import Dial, End
from vestnik.transport.foreign import FOREIGN
from vestnik.wire.frames import VERSION
from vestnik.wire.messages import Goodbye, Hello, Message, NodeId, Welcome


class Terms(NamedTuple):
    """How a broker routes, as `Settings.way_of_routing` says it, and for how many seconds entries last unless renewed.

    A broker with a longer lease than its neighbour renews too seldom: the neighbour drops its entries in between.
    """

    way: str
    lease: float

    @property
    def routing(self) -> str:
        return self.way.removesuffix(WITH_ADVERTISEMENTS)

    @property
    def advertisements(self) -> bool:
        return self.way.endswith(WITH_ADVERTISEMENTS)


async def ask_terms(dial: Dial, at: str, name: NodeId) -> Terms:
    """Ask the broker that `dial` connects to for its terms, as a broker of this name that wants to join it.

    Raise Unreachable if it does not answer, NoBroker or Untrusted if it is another, TurnedAway if it refuses.
    """
    begun = time.monotonic()
    asking = _Asking(name)
    end: End | None = None
    try:
        async with asyncio.timeout(HELLO_WITHIN):
            end = await dial(asking)
            answer = await asking.answer
    except TimeoutError:
        raise Unreachable(at, f"no answer in {HELLO_WITHIN:g} seconds") from None
    except ssl.SSLCertVerificationError as error:
        raise Untrusted(at, error.verify_message.rstrip(".")) from None
    except OSError as error:
        raise Unreachable(at, error.strerror or str(error) or type(error).__name__) from None
    finally:
        if end is not None:
            end.refuse("bye", f"{name} has asked")
    if isinstance(answer, Welcome):
        if answer.version == VERSION and answer.routing:
            return Terms(answer.routing, answer.lease)
        answer = Parting("version", f"{answer.name} speaks version {answer.version} of the protocol, not {VERSION}")
    if answer.code == FOREIGN:
        raise NoBroker(at, answer.reason)
    if not answer.code:
        raise Unreachable(at, hinted(answer.reason, begun))
    raise TurnedAway(at, *answer)


class _Asking:
    """The asking end of a connection. It says Hello as a broker and leaves out how it routes."""

    def __init__(self, name: NodeId) -> None:
        self._name = name
        self.answer: asyncio.Future[Welcome | Parting] = asyncio.get_running_loop().create_future()

    def connected(self, end: End) -> None:
        end.send(Hello(VERSION, self._name, is_broker=True, brokers=(self._name,)))
        end.flush()

    def received(self, end: End, messages: Iterable[Message]) -> None:
        for message in messages:
            match message:
                case Welcome():
                    self._answered(message)
                case Goodbye(code, reason):
                    self._answered(Parting(code, reason))
                case _:
                    self._answered(Parting("hello", f"it said {type(message).__name__} before Welcome"))

    def closed(self, end: End, reason: str, code: str = "") -> None:
        self._answered(Parting(code, reason))

    def full(self, end: End) -> None: ...

    def drained(self, end: End) -> None: ...

    def _answered(self, answer: Welcome | Parting) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)
