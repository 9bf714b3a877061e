"""What a client waits for: that its broker does what it asks for, or says what it has found."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from vestnik.client.batches import failure_of
from vestnik.errors import NotAccepted, VestnikError
from vestnik.session.acts import Act, Done, Found, Told
from vestnik.session.requests import Subject, subject_of
from vestnik.wire.messages import Fetch, Question, Review

LOG: Final = logging.getLogger(__name__)


class Answers:
    """`do` does what the session wants done."""

    def __init__(self, do: Callable[[Iterable[Act]], None]) -> None:
        self._do = do
        self._done: dict[Subject, asyncio.Future[Done]] = {}
        self._found: dict[int, asyncio.Future[Any]] = {}

    async def done(self, subject: Subject, acts: Iterable[Act]) -> None:
        """Do what follows from a request, and wait until it is answered; NotAccepted where that is refused."""
        answer = self._done.get(subject)
        if answer is None:
            answer = self._done[subject] = asyncio.get_running_loop().create_future()
        self._do(acts)
        done = await asyncio.shield(answer)
        if done.reason:
            raise NotAccepted(" ".join(map(str, subject)), done.reason)
        for reason in done.missing:
            LOG.warning("%s %s is not known everywhere: %s", *subject, reason)

    async def found(self, request: int, acts: Iterable[Act]) -> Any:
        """Do what follows from a question; the act that answers it."""
        future = self._found[request] = asyncio.get_running_loop().create_future()
        self._do(acts)
        try:
            return await future
        finally:
            del self._found[request]

    def expect(self, request: int, answer: asyncio.Future[Done], acts: Iterable[Act]) -> None:
        """Do what follows from a publication; `answer` is set when it is answered."""
        self._done["publication", request] = answer
        self._do(acts)

    def take(self, act: Found | Told | Done) -> None:
        """An answer has come. What is refused of publications for which nobody waits is logged."""
        match act:
            case Found(request) | Told(request):
                if request in self._found and not self._found[request].done():
                    self._found[request].set_result(act)
            case Done(Fetch() | Question() | Review() as what, reason) if reason:
                if what.request in self._found:
                    asked = f"question {what.kind}" if isinstance(what, Question) else type(what).__name__.lower()
                    fail(self._found[what.request], NotAccepted(asked, reason))
            case Done(what, refused=refused):
                answer = self._done.pop(subject_of(what), None)
                if answer is not None and not answer.done():
                    answer.set_result(act)
                elif answer is None and refused:
                    LOG.warning("%s", failure_of(refused, "the"))

    def end(self, error: VestnikError) -> None:
        """There will be none any more."""
        for answer in (*self._done.values(), *self._found.values()):
            fail(answer, error)
        self._done.clear()


def fail(answer: asyncio.Future[Any], error: VestnikError) -> None:
    """Whoever waits for an answer is told; nobody needs to."""
    if not answer.done():
        answer.set_exception(error)
        answer.exception()
