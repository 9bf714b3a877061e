"""Pushing what a subscription gets to a sink: in order, and each again until the sink has taken it."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import h11
from msgspec.structs import replace

from vestnik.client.notifications import Gap, Notification
from vestnik.client.subscriptions import Subscription
from vestnik.errors import Disconnected, VestnikError
from vestnik.gateway.encoding import Encoder
from vestnik.gateway.handshake import reason_of
from vestnik.gateway.hooks import Hook
from vestnik.gateway.http_events import STRUCTURED
from vestnik.gateway.metrics import Metrics
from vestnik.gateway.notices import Notices
from vestnik.gateway.sinks import Sink, ask
from vestnik.model.events import Event

GAP: Final = "vestnik.gap"
"""The type of the event by which a sink is told that some are lost."""
FIRST_PAUSE, LONGEST_PAUSE, LONGEST_WISH = 0.5, 60.0, 3600.0
"""Seconds before something is tried again: at first, later, and where the sink says for how long."""
QUIET = 1.0
"""Seconds without a notification after which it is looked how far brokers have come."""
GONE: Final = 410
UNWANTED: Final = frozenset({400, 413, 415, 422})
"""With these a sink says that it will never take this event."""

Verdict: TypeAlias = Literal["taken", "unwanted"]


class Push:
    """A hook that is carried out. What is not taken yet waits in the subscription, which has a bound."""

    def __init__(self, hook: Hook, sink: Sink, encoder: Encoder, metrics: Metrics, notices: Notices) -> None:
        self.sink = sink
        self.delivered = self.refused = self.lost = 0
        self.failing = ""  # why the last attempt failed; empty where it did not
        self.ended = ""  # why nothing is pushed any more
        self._hook = hook
        self._interval = 0.0 if hook.rate is None else 60.0 / hook.rate
        self._encoder = encoder
        self._metrics = metrics
        self._notices = notices
        self._unwanted = 0  # events that the sink did not want since the last that it took
        self._seen: Mapping[str, int] = hook.seen
        self._subscription: Subscription | None = None

    @property
    def hook(self) -> Hook:
        """As it would go on from here."""
        self._note_begun()
        return self._hook

    async def run(self, subscription: Subscription, gap: Gap | None = None) -> None:
        """Push until the subscription ends, or the sink is gone for good. A gap is told first."""
        self._subscription = subscription
        try:
            while True:
                if gap is not None:
                    await self._tell(gap)
                self._note(subscription.seen)
                try:
                    notification = await subscription.get(QUIET)
                except TimeoutError:
                    gap = subscription.take_gap()
                else:
                    gap = None
                    await self._push(notification)
        except VestnikError as error:
            self.end(str(error))
        finally:
            self._note_begun()
            self._subscription = None

    def end(self, reason: str) -> None:
        """Push nothing any more."""
        self.ended = reason
        self._notices.hook_ended(self._hook, reason)

    def fail(self, reason: str) -> None:
        """Note that an attempt failed, which will be repeated."""
        self.failing = reason
        self._notices.hook_fails(self._hook, reason)

    def _note_begun(self) -> None:
        """Note where live events start after picked ones, once the broker has said so: nothing is picked again then."""
        if not self._hook.seen and self._subscription is not None and (begun := self._subscription.begun):
            self._hook = replace(self._hook, seen=dict(begun))

    def _note(self, seen: Mapping[str, int]) -> None:
        """Note that everything below these cursors was pushed."""
        if seen and seen != self._seen:
            self._seen, self._hook = seen, replace(self._hook, seen=dict(seen), replay=None)

    async def _push(self, notification: Notification) -> None:
        gap = self._gap(notification)
        if gap is not None:
            await self._tell(gap)
        if await self._deliver(self._encoder.text(notification.event)) == "taken":
            self.delivered += 1
            self._metrics.delivered.labels("webhook").inc()
        else:
            self.refused += 1
            self._unwanted += 1

    async def _tell(self, gap: Gap) -> None:
        self.lost += gap.lost or 0
        self._metrics.lost.labels("webhook").inc(gap.lost or 0)
        await self._deliver(_gap_text(gap, self._hook.id))

    def _gap(self, notification: Notification) -> Gap | None:
        gap = notification.gap
        if self._unwanted and gap is None:
            gap = Gap(self._unwanted, "the sink refused them")
        elif self._unwanted and gap is not None:
            gap = Gap(None if gap.lost is None else gap.lost + self._unwanted, f"{gap.reason}; others the sink refused")
        self._unwanted = 0
        return gap

    async def _deliver(self, text: bytes) -> Verdict:
        """Try until the sink has taken it, or says that it never will. Disconnected where it is gone for good."""
        pause = FIRST_PAUSE
        while True:
            begun = time.monotonic()
            status, wish = await self._attempt(text)
            took = 200 <= status < 300
            self._metrics.attempts.labels("taken" if took else "failed").inc()
            if status == GONE:
                raise Disconnected("the sink is gone: it answered 410")
            if took or status in UNWANTED:
                await asyncio.sleep(max(0.0, begun + self._interval - time.monotonic()))
                return "taken" if took else "unwanted"
            await asyncio.sleep(max(pause * random.uniform(0.5, 1.0), wish, self._interval))
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _attempt(self, text: bytes) -> tuple[int, float]:
        """What the sink answered, 0 for nothing, and for how long it wants to be left alone."""
        try:
            answer = await ask(self.sink, "POST", self._headers(), text)
        except h11.LocalProtocolError as error:
            raise Disconnected(f"the gateway cannot send it: {error}; make the web hook again") from None
        except (OSError, h11.RemoteProtocolError) as error:
            self.fail(reason_of(error))
            return 0, 0.0
        if 200 <= answer.status < 300:
            self.failing = ""
        else:
            self.fail(f"the sink answered {answer.status}")
        return answer.status, _wish(answer.headers.get("retry-after", "").strip())

    def _headers(self) -> dict[str, str]:
        token = self._hook.token
        permission = {} if token is None else {"authorization": f"Bearer {token}"}
        return {"content-type": f"{STRUCTURED}; charset=utf-8", **permission}


def _gap_text(gap: Gap, id: str) -> bytes:
    return Event(GAP, {"lost": gap.lost, "reason": gap.reason}, source=f"subscriptions/{id}").to_json().encode()


def _wish(text: str) -> float:
    """The seconds of a Retry-After."""
    if text.isdecimal():
        return min(float(text), LONGEST_WISH)
    try:
        at = email.utils.parsedate_to_datetime(text).timestamp() if text else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return min(max(0.0, at - time.time()), LONGEST_WISH)
