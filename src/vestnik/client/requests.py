"""Requests and replies: events that ask for an answer at a subject of their own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from vestnik.client.notifications import Notification
from vestnik.client.subscriptions import Subscription
from vestnik.errors import WrongValue
from vestnik.model.events import Event

if TYPE_CHECKING:
    from vestnik.client.bus import Bus

REPLY_TO: Final = "replyto"
"""The extension of a request that says at which subject it is answered."""
REPLIES: Final = ".replies"
"""The subscription to them. With the dot it is not announced: nobody is to produce what it might want."""


class Requests:
    """The requests of one client. All replies come by one subscription, which is made with the first request."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._place = f"reply/{secrets.token_hex(8)}"
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Queue[Event]] = {}
        self._subscribing: asyncio.Task[Subscription] | None = None

    async def first(self, request: Event, timeout: float) -> Event:
        """The first reply; TimeoutError where none comes in time."""
        found = await self.all(request, timeout, 1)
        if not found:
            raise TimeoutError(f"nobody replied to {request.type} in {timeout:g} seconds")
        return found[0]

    async def all(self, request: Event, timeout: float, limit: int | None) -> list[Event]:
        """The replies that come in time, until there are `limit`."""
        subject = f"{self._place}/{next(self._numbers)}"
        replies = self._waiting[subject] = asyncio.Queue()
        found: list[Event] = []
        try:
            async with asyncio.timeout(timeout):
                await self._listen()
                await self._bus.publish(request.replace(extensions={**request.extensions, REPLY_TO: subject}))
                while limit is None or len(found) < limit:
                    found.append(await replies.get())
        except TimeoutError:
            pass
        finally:
            del self._waiting[subject]
        return found

    async def _listen(self) -> None:
        if self._subscribing is None:
            wanted = f"subject GLOB '{self._place}/*'"
            self._subscribing = asyncio.create_task(self._bus.subscribe(wanted, self._take, name=REPLIES))
        try:
            await asyncio.shield(self._subscribing)
        except Exception:
            self._subscribing = None
            raise

    def _take(self, notification: Notification) -> None:
        """What comes too late is for nobody."""
        replies = self._waiting.get(notification.event.subject or "")
        if replies is not None:
            replies.put_nowait(notification.event)


def reply_to(request: Event, answer: Event | Mapping[str, Any] | None) -> Event:
    """The event that answers a request; of plain data one with the type of the request and `.reply`.

    ValueError where `request` asks for no reply.
    """
    subject = request.extensions.get(REPLY_TO)
    if not isinstance(subject, str):
        raise WrongValue(
            f"a reply is to an event with the extension {REPLY_TO}", request.id, "bus.request publishes such events"
        )
    made = answer if isinstance(answer, Event) else Event(f"{request.type}.reply", dict(answer or {}))
    return made.replace(subject=subject, causes=[*made.causes, (request.source, request.id)])
