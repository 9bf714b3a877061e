"""Subscriptions that are pushed to a sink: `POST /subscriptions`, and what became of them."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct, structs
from starlette.requests import Request
from starlette.responses import Response

from vestnik.client.bus import Bus
from vestnik.client.notifications import Gap
from vestnik.client.subscriptions import Subscription
from vestnik.errors import Disconnected, InvalidRequest, InvalidSetting, NotAccepted, Unreachable, VestnikError
from vestnik.gateway.admission import Caller
from vestnik.gateway.answers import answer
from vestnik.gateway.bodies import read_as, read_replay
from vestnik.gateway.decoding import decoded, parsed
from vestnik.gateway.encoding import Encoder
from vestnik.gateway.handshake import permitted_rate
from vestnik.gateway.hooks import Hook, HookFile
from vestnik.gateway.metrics import Metrics
from vestnik.gateway.notices import Notices
from vestnik.gateway.pushing import Push
from vestnik.gateway.sessions import Connect
from vestnik.gateway.settings import GatewaySettings
from vestnik.gateway.sinks import read_sink
from vestnik.gateway.turns import Turns
from vestnik.wire.replays import Replay

LOG: Final = logging.getLogger(__name__)

QUEUE = 1000
CLOSE_WITHIN: Final = 0.3
"""Seconds for which a gateway that is closed waits until hooks are written."""
WRITTEN_EVERY = 5.0
"""Seconds after which it is written down how far hooks have come."""
RETRY: Final = 1.0
LONGEST_TOKEN: Final = 4096
UNSENDABLE: Final = (
    f"it is sent as Authorization: Bearer TOKEN, so it has 1 to {LONGEST_TOKEN:,} printable ASCII characters,"
    " and no space at either end"
)
RESTARTED: Final = "the gateway was restarted; what came meanwhile follows if the broker has it, some of it again"
RESTARTED_MIDWAY: Final = f"{RESTARTED}; what was to be replayed may not have come in full"


class Wanted(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be pushed where. The sink is shown `token`, which is not told to anybody else."""

    filter: str
    sink: str
    replay: str | None = None
    token: str | None = None


class _Running(NamedTuple):
    push: Push
    task: asyncio.Task[None]


class Webhooks:
    """All of them. Only who shows the token with which one was made sees it."""

    def __init__(
        self,
        connect: Connect,
        encoder: Encoder,
        turns: Turns,
        metrics: Metrics,
        notices: Notices,
        settings: GatewaySettings,
    ) -> None:
        self._connect = connect
        self._encoder = encoder
        self._turns = turns
        self._metrics = metrics
        self._notices = notices
        self._settings = settings
        self._file = HookFile(settings.hooks)
        self._running: dict[str, _Running] = {}
        self._opening = 0
        self._writing: asyncio.Task[None] | None = None

    # --- requests ---

    async def post(self, request: Request, caller: Caller) -> Response:
        async with self._turns.body(request, caller.owner(request)) as body:
            wanted = await decoded(len(body), partial(read_as, Wanted, body))
        if wanted.token is not None and not is_sendable(wanted.token):
            raise InvalidRequest(UNSENDABLE, "token")
        most = self._settings.webhooks
        if len(self._hooks()) + self._opening >= most:
            raise InvalidRequest(f"there are {most:,} webhooks, and no more at a time", status=503)
        self._opening += 1
        try:
            push = await self._begin(wanted, caller.token)
        finally:
            self._opening -= 1
        try:
            await self._file.write(self._hooks())
        except OSError as error:
            await _stop(self._running.pop(push.hook.id))
            raise InvalidRequest(f"it could not be stored: {error.strerror}", status=503) from None
        return answer(_shown(push), 201, {"location": f"/subscriptions/{push.hook.id}"})

    async def get_all(self, _: Request, caller: Caller) -> Response:
        return answer([_shown(one.push) for one in self._running.values() if one.push.hook.owner == caller.token])

    async def get(self, request: Request, caller: Caller) -> Response:
        return answer(_shown(self._own(request, caller).push))

    async def delete(self, request: Request, caller: Caller) -> Response:
        running = self._own(request, caller)
        del self._running[running.push.hook.id]
        await _stop(running)
        await self._write()
        return Response(status_code=204)

    def _own(self, request: Request, caller: Caller) -> _Running:
        id = request.path_params["id"]
        running = self._running.get(id)
        if running is None or running.push.hook.owner != caller.token:
            raise InvalidRequest(f"there is no subscription {id}", "id", 404)
        return running

    # --- pushing ---

    async def _begin(self, wanted: Wanted, owner: str | None) -> Push:
        """Subscribe, then ask the sink: nobody is asked anything for who has no right to subscribe."""
        sink = read_sink(wanted.sink, self._settings.sinks)
        replay = None if wanted.replay is None else read_replay(wanted.replay)
        hook = Hook(
            id=secrets.token_urlsafe(12),
            filter=wanted.filter,
            sink=wanted.sink,
            owner=owner,
            token=wanted.token,
            replay=wanted.replay,
        )
        bus, subscription = await self._subscribed(hook, replay=replay)
        seen = dict(subscription.seen or subscription.begun)  # before anything is pushed
        try:
            rate = await permitted_rate(sink)
        except BaseException:
            await bus.close()
            raise
        hook = structs.replace(hook, rate=None if math.isinf(rate) else rate, seen=seen)
        push = Push(hook, sink, self._encoder, self._metrics, self._notices)
        self._run(push, asyncio.create_task(_pushed(push, bus, subscription)))
        return push

    def _run(self, push: Push, task: asyncio.Task[None]) -> None:
        """Of those that have ended no more are remembered than there may be."""
        self._running[push.hook.id] = _Running(push, task)
        ended = [id for id, running in self._running.items() if running.push.ended]
        for id in ended[: max(0, len(self._running) - 2 * self._settings.webhooks)]:
            del self._running[id]

    async def _subscribed(
        self, hook: Hook, *, replay: Replay | None = None, seen: Mapping[str, int] | None = None
    ) -> tuple[Bus, Subscription]:
        wanted = await parsed(hook.filter)
        bus = self._connect(hook.owner)
        try:
            async with asyncio.timeout(self._settings.patience):
                await bus.__aenter__()
                return bus, await bus.subscribe(wanted, queue=QUEUE, replay=replay, seen=seen)
        except BaseException:
            await bus.close()
            raise

    # --- before and after ---

    def open(self) -> None:
        """Go on with the hooks in the file. InvalidSetting where one of them may be pushed to its sink no more."""
        for push in [self._known(hook) for hook in self._file.read()]:
            self._run(push, asyncio.create_task(self._resumed(push)))
        if self._settings.hooks is not None:
            self._writing = asyncio.create_task(self._write_now_and_then())

    def _known(self, hook: Hook) -> Push:
        try:
            sink = read_sink(hook.sink, self._settings.sinks)
        except InvalidRequest as error:
            reason = f"{error.reason}, or remove the web hook from {self._settings.hooks}"
            raise InvalidSetting("sink", reason) from None
        return Push(hook, sink, self._encoder, self._metrics, self._notices)

    async def _resumed(self, push: Push) -> None:
        """Subscribe again at the cursors of the hook, as soon as the broker can be reached.

        A hook that has cursors does not replay: what a replay picks would be something else by now. One without cursors
        starts its replay again. Without the right to replay, the hook goes on with what is new.
        """
        seen: Mapping[str, int] | None = push.hook.seen or None
        replay = None if push.hook.replay is None else read_replay(push.hook.replay)
        reason = RESTARTED_MIDWAY if replay is not None and replay.picks else RESTARTED
        replay = None if seen else replay
        while True:
            try:
                bus, subscription = await self._subscribed(push.hook, replay=replay, seen=seen)
            except NotAccepted as error:
                if seen is None and replay is None:
                    push.end(str(error))
                    return
                seen = replay = None
            except (Unreachable, Disconnected, TimeoutError) as error:
                push.fail(str(error) or "the broker did not answer in time")
                await asyncio.sleep(RETRY)
            except VestnikError as error:
                push.end(str(error))
                return
            else:
                await _pushed(push, bus, subscription, Gap(None, reason))
                return

    async def _write_now_and_then(self) -> None:
        written: list[Hook] = []
        while True:
            await asyncio.sleep(WRITTEN_EVERY)
            hooks = self._hooks()
            if hooks != written:
                await self._write()
                written = hooks

    def _hooks(self) -> list[Hook]:
        return [running.push.hook for running in self._running.values() if not running.push.ended]

    async def _write(self) -> None:
        """Where that fails, more is pushed again after a restart."""
        try:
            await self._file.write(self._hooks())
        except OSError as error:
            LOG.warning("web hooks could not be stored: %s", error)

    async def close(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        await asyncio.gather(*map(_stop, self._running.values()))
        with suppress(TimeoutError):  # more is pushed again then
            async with asyncio.timeout(CLOSE_WITHIN):
                await self._write()
        self._file.close()


async def _pushed(push: Push, bus: Bus, subscription: Subscription, gap: Gap | None = None) -> None:
    try:
        await push.run(subscription, gap)
    except Exception as error:
        LOG.exception("the web hook %s is over", push.hook.id)
        push.end(f"something went wrong in the gateway: {type(error).__name__}")
    finally:
        await bus.close()


async def _stop(running: _Running) -> None:
    running.task.cancel()
    await asyncio.gather(running.task, return_exceptions=True)


def is_sendable(token: str) -> bool:
    """Return whether a sink can be shown the token in a header."""
    return 0 < len(token) <= LONGEST_TOKEN and token.isascii() and token.isprintable() and token == token.strip()


def _shown(push: Push) -> dict[str, object]:
    state = "ended" if push.ended else "failing" if push.failing else "active"
    return {
        "id": push.hook.id,
        "filter": push.hook.filter,
        "sink": push.sink.url,
        "protocol": "HTTP",
        "state": state,
        "reason": push.ended or push.failing,
        "delivered": push.delivered,
        "refused": push.refused,
        "lost": push.lost,
    }
