"""Calls back with the notifications of a subscription, one after another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from vestnik.client.notifications import Notification

if TYPE_CHECKING:
    from vestnik.client.subscriptions import Subscription

LOG: Final = logging.getLogger(__name__)

Callback: TypeAlias = Callable[[Notification], Awaitable[None] | None]


class Calling:
    """Calls back with a notification as it comes, unless others wait before it.

    What a callback returns is awaited in a task, which is in `tasks` meanwhile; the next notifications wait in the
    subscription. An exception is logged, and the next notification is called with.
    """

    def __init__(self, subscription: Subscription, callback: Callback, tasks: set[asyncio.Task[None]]) -> None:
        self._subscription = subscription
        self._callback = callback
        self._tasks = tasks
        self.is_busy = False
        self._begin()

    def call(self, notification: Notification) -> None:
        """Call with a notification, while not busy. If that has to be awaited, be busy until it is done."""
        result = self._called(notification)
        if result is not None:
            self._begin(notification, result)

    def _begin(self, notification: Notification | None = None, result: Awaitable[None] | None = None) -> None:
        self.is_busy = True
        task = asyncio.get_running_loop().create_task(self._go_on(notification, result))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _go_on(self, notification: Notification | None, result: Awaitable[None] | None) -> None:
        """Await what was returned, and call with all that waits."""
        try:
            while True:
                if notification is not None and result is not None:
                    await self._awaited(notification, result)
                notification = self._subscription.try_get()
                if notification is None:
                    return
                result = self._called(notification)
        finally:
            self.is_busy = False

    def _called(self, notification: Notification) -> Awaitable[None] | None:
        try:
            return self._callback(notification)
        except Exception:
            self._log(notification)
            return None

    async def _awaited(self, notification: Notification, result: Awaitable[None]) -> None:
        try:
            await result
        except Exception:
            self._log(notification)

    def _log(self, notification: Notification) -> None:
        LOG.exception("the callback of subscription %s failed for %r", self._subscription.name, notification.event)
