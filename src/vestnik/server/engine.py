"""Runs a broker core: tells it what happens, and does what it wants done. This is the only place with a clock."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct

from vestnik.broker.core import BrokerCore, OwnLog
from vestnik.broker.effects import (
    Append,
    Appended,
    ClockSet,
    Consult,
    Consulted,
    Effect,
    GapTold,
    LogRead,
    Look,
    NotAppended,
    Part,
    ReadLog,
    Seen,
    Send,
    Tick,
    Wake,
)
from vestnik.errors import NotAccepted, VestnikError
from vestnik.logs import emit
from vestnik.model.times import FOREVER
from vestnik.observe.facts import ClientHere, Observer, facts_of
from vestnik.server.desk import Desk
from vestnik.server.dispatch import Dispatch
from vestnik.server.store import WhenStored
from vestnik.server.wakes import Wakes
from vestnik.wire.messages import Gap, Message, NodeId
from vestnik.wire.origins import ReadTerms, Slice

LOG: Final = logging.getLogger(__name__)

LATEST_TICK: Final = 5.0
"""Seconds after which the core is told that time has passed, whatever it asked for."""
SET: Final = 1.0
"""Seconds by which a clock goes wrong before the core is told that it was set."""


class Store(Protocol):
    """Where a broker keeps what its clients publish."""

    @property
    def is_durable(self) -> bool:
        """Whether it outlives a crash."""

    @property
    def log(self) -> OwnLog:
        """The log with which the broker starts."""

    @property
    def position(self) -> int:
        """All that was appended up to here will not be lost, and was answered."""

    def append(self, what: Append, done: WhenStored) -> None:
        """Store, and call `done`; with the reason if it cannot be stored."""

    def read(self, terms: ReadTerms, end: int, answer: Callable[[Slice], None]) -> None:
        """Call `answer` with a page of what is stored below an offset; all of that will not be lost."""

    def review(self, what: Look, answer: Callable[[Seen], None]) -> None:
        """Call `answer` with a page of what will not be lost."""


class Connections(Protocol):
    """The way to clients and neighbours."""

    def send(self, to: NodeId, message: Message) -> None:
        """Send something to somebody, if that is connected. It goes out with `flush`."""

    def part(self, neighbour: NodeId, code: str, reason: str) -> None:
        """End a link that closes a cycle, or whose neighbour does not renew what it wants."""

    def gap_told(self, client: NodeId, name: str, gap: Gap) -> None:
        """Log that a client was told of a gap."""

    def go_on(self, node: NodeId) -> None:
        """Take more from a client or a neighbour that had to wait until its events were routed."""

    def flush(self) -> None: ...


class Storing(Struct, eq=False):
    """Something that is being stored, until its outcome is known."""

    what: Append
    outcome: Appended | NotAppended | None = None


class Engine:
    """Runs the core. `observers` are told what happens; `desk` answers questions."""

    def __init__(
        self,
        core: BrokerCore,
        store: Store,
        desk: Desk,
        connections: Connections,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._core = core
        self.failure = ""  # the last reason why something could not be stored
        self._store = store
        self._desk = desk
        self._connections = connections
        self._observers = observers
        self._loop = asyncio.get_running_loop()
        self.dispatch = Dispatch(core.router, self.take, connections.flush, connections.go_on, self._waits)
        self._storing: deque[Storing] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._consulting: list[Consult] = []  # what is being answered
        self._wakes = Wakes()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = FOREVER
        self._ahead = time.time() - time.monotonic()

    @property
    def storing(self) -> int:
        """How many events are being stored."""
        return sum([len(one.what.events) for one in self._storing])

    def start(self) -> None:
        self.take(Tick(), self._core.name)

    def _waits(self, client: NodeId) -> bool:
        """Return whether publications of a client have to wait for slow readers.

        One that lags itself has to be heard: it says what it has taken. Its answers wait instead.
        """
        return self._core.is_pressed(time.time()) and not self._core.lags(client)

    def answers_wait(self, client: NodeId) -> bool:
        """Return whether a client is not told for now that its publications are stored, so that it sends no more."""
        return self._core.is_pressed(time.time()) and self._core.lags(client)

    def close(self) -> None:
        self.dispatch.close()
        if self._alarm is not None:
            self._alarm.cancel()
        for task in self._tasks:
            task.cancel()

    def attached(self, client: NodeId) -> None:
        """A client has connected, of which the core learns when it says something."""
        now = time.time()
        for observer in self._observers:
            observer.take([ClientHere(client)], now)

    def take(self, message: Message, sender: NodeId) -> None:
        """Hand the core a message and do what it wants done."""
        now = time.time()
        if abs(now - time.monotonic() - self._ahead) > SET:
            self._clock_set(now)
        effects = self._core.handle(message, sender, now)
        if self._observers and (facts := facts_of(message, sender, effects)):
            for observer in self._observers:
                observer.take(facts, now)
        for effect in effects:
            if isinstance(effect, Send):
                self._connections.send(effect.to, effect.message)
            else:
                self._perform(effect)

    def _clock_set(self, now: float) -> None:
        """Tell the core that the clock was set, before anything else."""
        by = now - time.monotonic() - self._ahead
        self._ahead += by
        self._alarm_at += by
        self._wakes.shift(by)
        self._core.handle(ClockSet(by), self._core.name, now)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Append():
                self.dispatch.took(effect.client, len(effect.events))
                storing = Storing(effect)
                self._storing.append(storing)
                self._store.append(effect, partial(self._stored, storing))
            case ReadLog(number, terms, end):
                self._store.read(terms, end, lambda page: self.do(LogRead(number, page)))
            case Look():
                self._store.review(effect, self.do)
            case Consult() if effect not in self._consulting:  # who waits for an answer asks again
                self._consulting.append(effect)
                self._begin(self._consult(effect))
            case Wake(at):
                self._wakes.put(at)
                self._set_alarm(at)
            case Part(neighbour, reason, code):
                self._connections.part(neighbour, code, reason)
            case GapTold(client, name, gap):
                self._connections.gap_told(client, name, gap)

    def do(self, message: Message) -> None:
        """Tell the core what has happened, and send what follows."""
        self.take(message, self._core.name)
        self._connections.flush()

    def _stored(self, storing: Storing, what: Append, failure: str, unknown: bool = False, /) -> None:
        """Go on with what was stored, or could not be: in the order of the log."""
        if failure and failure != self.failure:
            emit(LOG, logging.ERROR, "store.failed", "publications are refused: they cannot be stored", reason=failure)
        self.failure = failure
        storing.outcome = NotAppended(what, failure, unknown) if failure else Appended(what)
        while self._storing and (outcome := self._storing[0].outcome) is not None:
            self._storing.popleft()
            if isinstance(outcome, NotAppended):
                self.dispatch.dropped(outcome.what.client, len(outcome.what.events))
            self.dispatch.take(outcome, outcome.what.client)

    async def _consult(self, what: Consult) -> None:
        try:
            data, reason = await self._desk.answer(what.inquiry.kind, what.inquiry.about), ""
        except NotAccepted as error:
            data, reason = None, error.reason
        except (VestnikError, OSError) as error:
            data, reason = None, str(error)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            data, reason = None, f"the question {what.inquiry.kind} is not about that: {error}"
        finally:
            self._consulting.remove(what)
        self.do(Consulted(what, data, reason))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that takes its time."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _set_alarm(self, at: float) -> None:
        """Ring at this time, unless the alarm is set to an earlier one."""
        if at < self._alarm_at:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_at = at
            self._alarm = self._loop.call_later(max(0.0, at - time.time()), self._ring)

    def _ring(self) -> None:
        """Tell the core the time, and set the alarm to the next time that the core asked for."""
        self._alarm, self._alarm_at = None, FOREVER
        self._wakes.drop_until(time.time())
        try:
            self.do(Tick())
        finally:
            self._set_alarm(min(self._wakes.next, time.time() + LATEST_TICK))
