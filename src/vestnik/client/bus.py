"""The asynchronous client."""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Final, Self

from vestnik.client.answers import Answers
from vestnik.client.arguments import (
    as_filter,
    check_callable,
    check_cursors,
    check_flag,
    check_number,
    check_text,
    check_timeout,
)
from vestnik.client.calling import Callback
from vestnik.client.line import Line
from vestnik.client.notifications import OVERFLOWS, Overflow
from vestnik.client.past import Past
from vestnik.client.publishing import Publishing
from vestnik.client.replays import Answering, ReplayAnswer, Replays
from vestnik.client.subscriptions import QUEUE, Subscription
from vestnik.errors import Disconnected, NotAccepted, VestnikError, WrongType, WrongValue
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.session.acts import Act, AskApplication, Done, Found, Hand, Lost, Missing, Over, Passed, Say, Told
from vestnik.session.checking import Checking
from vestnik.session.session import Session
from vestnik.transport.ends import Dial
from vestnik.wire.messages import Recalled, Reviewed
from vestnik.wire.replays import Replay

LOG: Final = logging.getLogger(__name__)

LEASE: Final = 60.0
"""Seconds for which a broker keeps the subscriptions of a client that is not there."""
TAKEN_EVERY: Final = 0.25
"""Seconds after which a broker is told what was taken, if that is too little to be told at once."""


class Bus:
    """A client of one broker. Enter it to connect; it connects again by itself, and goes on where it was.

    `async with` leaves it at the end; who awaits it instead is to `close` it.

    `address` is for people. The first connection must be there within `timeout` seconds, where that is not None.
    """

    def __init__(
        self,
        dial: Dial,
        address: str,
        *,
        name: str | None = None,
        token: str | None = None,
        timeout: float | None = 10.0,
    ) -> None:
        check_text("the name of a client", name)
        check_text("a token", token)
        check_timeout("the timeout of a connection", timeout)
        self._is_named = name is not None
        self.name = name or f"client-{secrets.token_hex(8)}"
        self._timeout = timeout
        self._session = Session(self.name, random.uniform, first_request=random.randrange(1, 1 << 48))
        self._line = Line(self._session, dial, address, token or "", self._perform, self._over)
        self._subscriptions: dict[str, Subscription] = {}
        self._calls: set[asyncio.Task[None]] = set()  # that await what callbacks returned
        self._answers = Answers(self._line.do)
        self._answering = Answering(self._recalled, self._calls)
        self._publishing = Publishing(self._session, self._line, self._answers)
        self._names = count(1)
        self._telling: asyncio.TimerHandle | None = None

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        if not self._line.is_open:
            await self._open()
        return self

    async def _open(self) -> None:
        try:
            await self._line.open(self._timeout)
        except BaseException:
            await self._line.close()
            raise

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def tell_taken(self, *subscriptions: Subscription) -> None:
        """Tell the broker how far the application has taken what came for some subscriptions."""
        untold = [one for one in subscriptions if one.told() and self._subscriptions.get(one.name) is one]
        if untold:
            self._line.do(self._session.took({one.name: one.first_left for one in untold}))

    def tell_soon(self) -> None:
        """Tell the broker in a while what was taken."""
        if self._telling is None and self._line.is_open:
            self._telling = asyncio.get_running_loop().call_later(TAKEN_EVERY, self._tell_rest)

    def _tell_rest(self) -> None:
        self._telling = None
        self.tell_taken(*self._subscriptions.values())

    async def close(self) -> None:
        """Leave: what was published is sent. Subscriptions end; those of a client with a name end with their lease."""
        if self._telling is not None:
            self._telling.cancel()
            self._tell_rest()
        if self._line.is_up and not self._is_named:
            for subscription in list(self._subscriptions.values()):
                self._line.do(self._session.unsubscribe(subscription.name, time.monotonic()))
        await self._line.close()
        self._over(Disconnected(f"{self.name} has left {self._line.address}"))
        calls = self._calls - {asyncio.current_task()}  # a callback may close
        for task in calls:
            task.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._answering.end()

    def __repr__(self) -> str:
        state = "connected to" if self.is_connected else "not connected to"
        return f"<{type(self).__name__} {self.name}, {state} {self.address}, {len(self._subscriptions)} subscriptions>"

    @property
    def is_connected(self) -> bool:
        return self._line.is_up

    @property
    def is_durable(self) -> bool:
        """Whether what is published outlives a crash of the broker, once it is acknowledged."""
        return self._line.is_durable

    @property
    def address(self) -> str:
        """Where the broker is, for people."""
        return self._line.address

    # --- publishing ---

    async def publish(self, event: Event, *, durable: bool = True) -> None:
        """Publish an event; with `durable`, return when the broker has stored it.

        That waits while there is no connection: `async with asyncio.timeout(5)` around it says for how long. What was
        cancelled, by that or otherwise, may be published all the same, now or when there is a connection again. Who
        has to know publishes the same event again: a broker that has it takes it no second time, and this returns.

        NotAccepted where the broker refuses it; so it does with another event of the same source and id. OutcomeUnknown
        if its disk failed while it stored the event, which may be there when the broker was started again.
        """
        if durable:
            await self._publishing.stored(event)
        elif self._line.post(event):
            await self._line.make_room()

    async def publish_many(self, events: Iterable[Event], *, durable: bool = True) -> None:
        """Publish events in order. NotAccepted where the broker refuses some; the others are published.

        OutcomeUnknown, which names them, if the broker cannot tell whether it has stored some.
        Of what is cancelled all, some or none may be published; see `publish`.
        """
        await (self._publishing.all_stored(events) if durable else self._publishing.all_posted(events))

    # --- subscribing ---

    async def subscribe(
        self,
        wanted: Filter | str,
        callback: Callback | None = None,
        *,
        name: str | None = None,
        queue: int = QUEUE,
        overflow: Overflow = "block",
        handback: object = None,
        checking: Checking | None = None,
        replay: Replay | None = None,
        settled: bool = False,
        seen: Mapping[str, int] | None = None,
    ) -> Subscription:
        """Subscribe; returns when the broker has it. A `callback` is called with each notification.

        With `settled` it returns when all brokers within reach have it. It waits up to 10 seconds for a broker that is
        to be linked and is not; then a logged warning names that broker.

        With `replay`, past events come first, and then those that come, without a gap and none twice. With `checking`,
        the broker is asked now and then whether any was lost; without, that is seen when the next one comes. With
        `seen`, as an earlier subscription had it, the subscription starts at these cursors.
        """
        self._line.check("subscribe")
        check_cursors("seen", seen)
        if seen and replay is not None:
            raise WrongValue("seen is given without replay", replay, "a subscription goes on, or begins with the past")
        check_flag("settled", settled)
        check_text("the name of a subscription", name)
        check_callable("a callback", callback)
        check_number("the queue of a subscription", queue)
        if replay is not None and not isinstance(replay, Replay):
            raise WrongType("replay is a Replay, such as Replay(last=10)", replay)
        if overflow not in OVERFLOWS:
            raise WrongValue(f"overflow is one of {', '.join(OVERFLOWS)}", overflow)
        if checking is not None and (isinstance(checking, type) or not isinstance(checking, Checking)):
            raise WrongType("checking is a strategy, such as vestnik.Adaptive()", checking)
        name = name or f"s{next(self._names)}"
        if name in self._subscriptions:
            raise WrongValue(
                "a subscription has a name of its own", name, "that one is taken: change it, or choose another name"
            )
        made = Subscription(self, name, as_filter(wanted), queue, overflow, handback)
        self._subscriptions[name] = made
        acts = self._session.subscribe(
            name,
            made.filter,
            time.monotonic(),
            lease=LEASE,
            window=made.window,
            checking=checking,
            replay=replay,
            settled=settled,
            adopts=self._is_named,
            seen=seen or {},
        )
        try:
            await self._answers.done(("subscription", name), acts)
        except NotAccepted:
            del self._subscriptions[name]
            raise
        except BaseException:
            self.give_up(made)
            raise
        if callback is not None:
            made.call(callback, self._calls)
        return made

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; what is waiting can still be taken. With its client it has ended before."""
        _check_subscription(subscription)
        name = subscription.name
        if self._subscriptions.get(name) is subscription:
            del self._subscriptions[name]
            subscription.end()
            if not self._line.is_open:
                return
            with suppress(Disconnected):  # then its client has left meanwhile
                await self._answers.done(("subscription", name), self._session.unsubscribe(name, time.monotonic()))

    async def change(self, subscription: Subscription, wanted: Filter | str) -> None:
        """Give a subscription another filter. What was on its way may still come; nothing is lost or repeated.

        Disconnected where the subscription is over.
        """
        self._line.check("change")
        _check_subscription(subscription)
        found, name = as_filter(wanted), subscription.name
        if self._subscriptions.get(name) is not subscription:
            raise Disconnected(f"subscription {name} is over and cannot be changed; subscribe again")
        await self._answers.done(("subscription", name), self._session.change(name, found, time.monotonic()))
        subscription.filter = found

    def check(self) -> None:
        """TurnedAway where the broker has sent this client away for good; Disconnected where it was left."""
        self._line.check("check")

    def seen(self, subscription: Subscription) -> Mapping[str, int]:
        """Return the cursors up to which a subscription was given everything."""
        is_there = self._subscriptions.get(subscription.name) is subscription
        return self._session.seen(subscription.name) if is_there else {}

    def begun(self, subscription: Subscription) -> Mapping[str, int]:
        """Return the cursors at which live events start after a replay that picks; empty if the broker did not say."""
        is_there = self._subscriptions.get(subscription.name) is subscription
        return self._session.begun(subscription.name) if is_there else {}

    def give_up(self, subscription: Subscription, reason: VestnikError | None = None) -> None:
        """End a subscription without waiting for an answer."""
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]
            subscription.end(reason)
            self._line.do(self._session.unsubscribe(subscription.name, time.monotonic()))

    # --- the past ---

    async def fetch(
        self, wanted: Filter | str, *, limit: int | None = 100, since: Any = None, latest_by: str | None = None
    ) -> Past:
        """Return past events that brokers have stored, oldest first: the newest `limit` that are wanted, or all.

        If a broker could not be asked, the `missing` of what is returned says so, and a warning is logged. They come
        page by page; if the connection is lost meanwhile, all are fetched again.
        """
        self._line.check("fetch")
        check_number("the limit of a fetch", limit)
        replay = Replay(last=limit, since=since, latest_by=latest_by, all=limit is None)
        request, acts = self._session.fetch(as_filter(wanted), replay, time.monotonic())
        try:
            found = await self._answers.found(request, acts)
        finally:
            self._session.abandon(request)
        for reason in found.lost:
            LOG.warning("not all of the past was found: %s", reason)
        return Past(found.events, found.lost)

    async def review(self, wanted: Filter | str = "TRUE", *, after: int = -1, upto: int = 0, most: int = 0) -> Reviewed:
        """A page of what the broker took behind position `after` and up to `upto`, of `most` events or as it has room.

        Without these positions it is of all that is kept. `vestnik.wire.leaves` opens it; behind `page.after` there may
        be more. NotAccepted where there is no right to the past.
        """
        self._line.check("review")
        for what, number, least in (("after", after, -1), ("upto", upto, 0), ("most", most, 0)):
            check_number(f"{what} of a review", number, least)
        request, acts = self._session.review(as_filter(wanted), after, upto, most, time.monotonic())
        found: Reviewed = (await self._answers.found(request, acts)).data
        return found

    # --- brokers themselves ---

    async def inspect(self, kind: str, to: str = "", **about: Any) -> Any:
        """Ask the broker, or the one with the name `to`, about itself; plain data. NotAccepted where it does not say.

        `vestnik.server.desk` has the kinds.
        """
        self._line.check("inspect")
        check_text("the kind of a question", kind)
        return (await self._answers.found(*self._session.question(kind, about, to, time.monotonic()))).data

    # --- advertising ---

    async def advertise(self, offered: Filter | str, *, name: str | None = None, settled: bool = False) -> str:
        """Say what is going to be published; return the name by which to take it back.

        With `settled` it returns when the subscriptions that concern it have come to the broker. A logged warning names
        brokers that could not be asked.
        """
        self._line.check("advertise")
        check_flag("settled", settled)
        check_text("the name of an advertisement", name)
        name = name or f"a{next(self._names)}"
        acts = self._session.advertise(name, as_filter(offered), time.monotonic(), lease=LEASE, settled=settled)
        await self._answers.done(("advertisement", name), acts)
        return name

    async def unadvertise(self, name: str) -> None:
        self._line.check("unadvertise")
        check_text("the name of an advertisement", name)
        await self._answers.done(("advertisement", name), self._session.unadvertise(name, time.monotonic()))

    def withdraw(self, name: str) -> None:
        """Take an advertisement back without waiting for an answer."""
        self._line.do(self._session.unadvertise(name, time.monotonic()))

    async def replays(self, offered: Filter | str, answer: ReplayAnswer, *, name: str | None = None) -> Replays:
        """Answer subscriptions and fetches that ask for the past of what is `offered`, with events of your choice.

        This also advertises the filter. `answer` is called with a ReplayRequest, and returns events, oldest first; it
        may be an async function or a generator. Its events go only to the subscription or fetch that asked, in the
        order of time with what brokers have stored. An event that a broker has as well comes once.

        If `answer` fails or takes too long, the subscription is told of a gap. An answer that is not read on for a
        minute is closed. If it is read on later, `answer` is called again, and what was read is skipped.
        """
        self._line.check("replays")
        check_text("the name of replays", name)
        check_callable("an answer", answer)
        name = name or f"r{next(self._names)}"
        if name in self._answering:
            raise WrongValue("replays have a name of their own", name, "that one is taken: choose another name")
        made = Replays(self, name, as_filter(offered))
        self._answering.add(name, answer)
        acts = self._session.advertise(name, made.filter, time.monotonic(), lease=LEASE, replays=True)
        try:
            await self._answers.done(("advertisement", name), acts)
        except BaseException:
            self.end_replays(made)
            raise
        return made

    def end_replays(self, replays: Replays) -> None:
        """Answer no more replays, unless they have ended with their client."""
        if replays.name in self._answering:
            self._answering.remove(replays.name)
            if self._line.is_open:
                self.withdraw(replays.name)

    def _recalled(self, answer: Recalled) -> None:
        self._line.do([Say(answer)])

    # --- what the session wants of the application ---

    def _perform(self, act: Act) -> None:
        if isinstance(act, Hand):
            numbers = act.numbers
            names = (numbers[0][0],) if len(numbers) == 1 else tuple([name for name, _ in numbers])  # mostly one
            for name, number in numbers:
                known = self._subscriptions.get(name)
                if known is not None:
                    known.give(act.event, number, names, replayed=act.replayed)
            return
        match act:
            case Found() | Told() | Done():
                self._answers.take(act)
            case AskApplication(recall):
                self._answering.take(recall)
            case Lost(name, first, last) if name in self._subscriptions:
                self._subscriptions[name].miss(last - first + 1, "the broker has them no more", last)
            case Missing(name, reason) if name in self._subscriptions:
                self._subscriptions[name].miss(None, reason)
            case Passed(name) if name in self._subscriptions:
                self._subscriptions[name].pass_over()
            case Over(name, reason) if name in self._subscriptions:
                error = NotAccepted(f"subscription {name}", reason)
                LOG.warning("it is over: %s", error)
                self._subscriptions.pop(name).end(error)

    def _over(self, error: VestnikError) -> None:
        """There will be no answers and no notifications any more."""
        self._answers.end(error)
        self._publishing.end(error)
        left = isinstance(error, Disconnected)
        for subscription in self._subscriptions.values():
            subscription.end(None if left else error)


def _check_subscription(given: object) -> None:
    if not isinstance(given, Subscription):
        raise WrongType("a subscription is what bus.subscribe returned", given)
