"""When a client is answered: at once, or when other brokers know of what was told them before."""

from __future__ import annotations

from collections.abc import Callable

from vestnik.broker.effects import Effect, Send, Wake
from vestnik.broker.outlet import Outlet
from vestnik.recovery.recovery import Recovery
from vestnik.wire.messages import Accepted, NodeId, Refused, Request


class Settling:
    """Postpones acts until brokers were met or have answered. `late` has their effects until somebody takes them."""

    def __init__(self, recovery: Recovery, outlet: Outlet) -> None:
        self._recovery = recovery
        self._outlet = outlet
        self.late: list[Effect] = []

    def take_late(self) -> list[Effect]:
        late, self.late = self.late, []
        return late

    def when_settled(self, then: Callable[[list[str]], list[Effect]], now: float) -> list[Effect]:
        """Do something when all brokers know of what was told before, with those that do not, in words."""

        def ask() -> list[Effect]:
            return self._outlet.perform(self._recovery.ask_all(lambda missing: self.late.extend(then(missing))))

        return self.when_met(ask, now, joins=True)

    def when_met(self, then: Callable[[], list[Effect]], now: float, *, joins: bool = False) -> list[Effect]:
        """Do something when all neighbours have said which logs they have, and with `joins` all are linked."""
        done: list[Effect] = []
        is_now = True

        def met() -> None:
            (done if is_now else self.late).extend(then())

        until = self._recovery.meeting.when_met(met, now, joins=joins)
        is_now = False
        return done if until is None else [Wake(until)]


def answer(client: NodeId, request: Request, answer: Accepted | Refused) -> list[Effect]:
    """Return an answer to a client, if it wants to know."""
    return [Send(client, answer)] if request.request or isinstance(answer, Refused) else []
