"""Answers replays: the application chooses past events for subscriptions that ask for the past."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing, nullcontext
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

from vestnik.errors import WrongType
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.wire.messages import Recall, Recalled
from vestnik.wire.pages import PAGE, PAGE_SIZE, packed_to_publish
from vestnik.wire.replays import Replay

if TYPE_CHECKING:
    from vestnik.client.bus import Bus

LOG: Final = logging.getLogger(__name__)

PAGE_WITHIN: Final = 20.0
"""Seconds in which the application has the next page of an answer. The broker waits no longer."""
AT_ONCE: Final = 16
"""Answers that are worked on at a time."""
IDLE: Final = 60.0
"""Seconds after which an answer that is not read on is closed. To read on later, the application is asked again."""
MOST_OPEN: Final = 100
"""Answers that are kept open, because they may be read on."""


class ReplayRequest(NamedTuple):
    """A question of the broker: the filter of the events that it wants of those offered, and the replay."""

    filter: Filter
    replay: Replay


Events: TypeAlias = Iterable[Event] | AsyncIterable[Event]
ReplayAnswer: TypeAlias = Callable[[ReplayRequest], Events | Awaitable[Events]]
"""Returns past events, oldest first. It may be an async function, and either kind of generator."""
AnswerPages: TypeAlias = AsyncGenerator[tuple[Event, ...], None]


class Replays:
    """An application that answers replays, until it is closed; made by `Bus.replays`. `async with` closes it."""

    def __init__(self, bus: Bus, name: str, offered: Filter) -> None:
        self.name = name
        self.filter = offered
        self._bus = bus

    async def close(self) -> None:
        """Answer no more replays. Subscriptions that are reading an answer are told of a gap."""
        self._bus.end_replays(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class OpenAnswer:
    """An answer of which a part was sent; `place` is the question, and how many events were."""

    def __init__(self, place: Recall, pages: AnswerPages) -> None:
        self.place = place
        self.pages = pages
        self.idle: asyncio.TimerHandle | None = None


class Answering:
    """Asks the functions of the application, and has `say` send the broker what they answer.

    The work is in `tasks` meanwhile.
    """

    def __init__(self, say: Callable[[Recalled], None], tasks: set[asyncio.Task[None]]) -> None:
        self._say = say
        self._tasks = tasks
        self._functions: dict[str, ReplayAnswer] = {}
        self._open: list[OpenAnswer] = []
        self._slots = asyncio.Semaphore(AT_ONCE)

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def add(self, name: str, function: ReplayAnswer) -> None:
        self._functions[name] = function

    def remove(self, name: str) -> None:
        self._functions.pop(name, None)
        for one in [one for one in self._open if one.place.name == name]:
            self._close(one)

    async def end(self) -> None:
        """Close what is open: the client leaves."""
        self._functions.clear()
        for one in list(self._open):
            await _close(self._take_out(one))

    def take(self, recall: Recall) -> None:
        """Begin to answer a question. Ignore one about replays that have ended: the broker learns of that."""
        if recall.name in self._functions:
            self._begin(self._answer(recall, self._functions[recall.name]))

    async def _answer(self, recall: Recall, function: ReplayAnswer) -> None:
        try:
            async with asyncio.timeout(PAGE_WITHIN), self._slots:
                answer = Recalled(recall.number, await self._page(recall, function))
        except Exception as error:
            LOG.warning("replays %s: there is no answer to %s", recall.name, recall.filter, exc_info=error)
            answer = Recalled(recall.number, (), f"the answer failed: {type(error).__name__}: {error}")
        self._say(answer)

    async def _page(self, recall: Recall, function: ReplayAnswer) -> tuple[Event, ...]:
        """Return the next events of an answer; go on with one that is open at this place."""
        place = _place(recall, recall.skip)
        known = next((one for one in self._open if one.place == place), None)
        if known is None:
            pages = _pages(_chosen(function, ReplayRequest(recall.filter, recall.replay)), recall.skip)
        else:
            pages = self._take_out(known)
        try:
            page = await anext(pages)
        except StopAsyncIteration:
            return ()
        if recall.name in self._functions:  # still
            self._keep(_place(recall, recall.skip + len(page)), pages)
        return page

    def _keep(self, place: Recall, pages: AnswerPages) -> None:
        kept = OpenAnswer(place, pages)
        kept.idle = asyncio.get_running_loop().call_later(IDLE, self._close, kept)
        self._open.append(kept)
        if len(self._open) > MOST_OPEN:
            self._close(self._open[0])

    def _take_out(self, one: OpenAnswer) -> AnswerPages:
        if one.idle is not None:
            one.idle.cancel()
        self._open.remove(one)
        return one.pages

    def _close(self, one: OpenAnswer) -> None:
        self._begin(_close(self._take_out(one)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _place(recall: Recall, skip: int) -> Recall:
    """Return a place in the answer to a question, which is the same for all subscriptions that ask it."""
    return Recall(0, recall.name, recall.filter, recall.replay, skip)


async def _close(pages: AnswerPages) -> None:
    try:
        await pages.aclose()
    except Exception:
        LOG.exception("a generator that answers a replay failed when it was closed")


async def _chosen(function: ReplayAnswer, asked: ReplayRequest) -> AsyncGenerator[Event, None]:
    """Yield the events of an answer that are asked for. If only the last ones are, the others are not sent."""
    replay = asked.replay
    async with aclosing(_wanted(function, asked)) as wanted:
        if replay.last is None or replay.latest_by is not None:
            async for event in wanted:
                yield event
            return
        last: deque[Event] = deque(maxlen=replay.last)
        async for event in wanted:
            last.append(event)
    for event in last:
        yield event


async def _wanted(function: ReplayAnswer, asked: ReplayRequest) -> AsyncGenerator[Event, None]:
    since = asked.replay.since
    async with aclosing(_events(function, asked)) as events:
        async for event in events:
            if not isinstance(event, Event):
                raise WrongType("an answer to a replay is of Events", event)
            is_late_enough = since is None or event.time is None or event.time >= since
            if is_late_enough and asked.filter.matches(event):
                yield event


async def _events(function: ReplayAnswer, asked: ReplayRequest) -> AsyncGenerator[Event, None]:
    answer = function(asked)
    found = await answer if isawaitable(answer) else answer
    if isinstance(found, AsyncIterable):
        async with aclosing(found) if isinstance(found, AsyncGenerator) else nullcontext():
            async for event in found:
                yield event
    elif isinstance(found, Iterable):
        for event in found:
            yield event
    else:
        raise WrongType("an answer to a replay is of Events: return a list or a generator of them", found)


async def _pages(chosen: AsyncGenerator[Event, None], skip: int) -> AnswerPages:
    """Yield events after the first ones, in pages that can be sent. Yield what precedes a failure before raising it."""
    page: list[Event] = []
    size = 0
    failure: Exception | None = None
    try:
        async with aclosing(chosen) as events:
            async for event in events:
                if skip > 0:
                    skip -= 1
                    continue
                more = len(packed_to_publish(event))
                if page and (len(page) == PAGE or size + more > PAGE_SIZE):
                    full, page, size = tuple(page), [], 0
                    yield full
                page.append(event)
                size += more
    except Exception as error:
        failure = error
    if page:
        yield tuple(page)
    if failure is not None:
        raise failure
