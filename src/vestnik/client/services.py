"""The client with all that is composed of its parts: views, demand, requests and factories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from vestnik.client.arguments import (
    as_filter,
    check_event,
    check_number,
    check_seconds,
    check_text,
    check_timeout,
    is_async,
)
from vestnik.client.bus import Bus
from vestnik.client.factories import Factory, Make
from vestnik.client.notifications import Notification
from vestnik.client.requests import Requests, reply_to
from vestnik.client.views import View
from vestnik.client.wanted import Wanted
from vestnik.errors import WrongType
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.transport.ends import Dial


class Service(Protocol):
    """Ends with its client."""

    async def close(self) -> None: ...


class ServiceBus(Bus):
    """A client of one broker; see `Bus`."""

    def __init__(
        self,
        dial: Dial,
        address: str,
        *,
        name: str | None = None,
        token: str | None = None,
        timeout: float | None = 10.0,
    ) -> None:
        super().__init__(dial, address, name=name, token=token, timeout=timeout)
        self._services: dict[int, Service] = {}  # by identity
        self._requests = Requests(self)
        self._is_open = False

    async def _open(self) -> None:
        await super()._open()
        self._is_open = True
        try:
            for factory in [service for service in self._services.values() if isinstance(service, Factory)]:
                factory.begin()
                await factory.ready()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self._is_open = False
        for service in list(self._services.values()):
            await service.close()
        await super().close()

    def detach(self, service: Service) -> None:
        """A service has ended by itself."""
        self._services.pop(id(service), None)

    async def view(self, wanted: Filter | str, *, key: str) -> View:
        """The last event for each value at the path `key`, as a mapping, and its changes."""
        check_text("the key of a view", key)
        made = View(self, as_filter(wanted), key)
        await self._start(made)
        return made

    async def wanted(self, offered: Filter | str) -> Wanted:
        """Whether any subscription, at any broker, overlaps what is `offered`, and when that changes."""
        made = Wanted(self, as_filter(offered))
        await self._start(made)
        return made

    async def _start(self, made: View | Wanted) -> None:
        self._services[id(made)] = made
        try:
            await made.start()
        except BaseException:
            await made.close()
            raise

    async def request(self, request: Event, *, timeout: float = 10.0) -> Event:
        """Publish an event that asks for a reply, and return the first; TimeoutError where none comes in time."""
        check_event(request, "a request is an Event")
        check_timeout("the timeout of a request", timeout)
        return await self._requests.first(request, timeout)

    async def request_all(self, request: Event, *, timeout: float = 1.0, limit: int | None = None) -> list[Event]:
        """Publish an event that asks for replies; those that come in time, or the first `limit`."""
        check_event(request, "a request is an Event")
        check_timeout("the timeout of a request", timeout)
        check_number("the limit of a request", limit)
        return await self._requests.all(request, timeout, limit)

    async def reply(self, request: Event | Notification, answer: Event | Mapping[str, Any] | None = None) -> None:
        """Answer a request, with an event or with the data of one. ValueError where it asks for no reply."""
        asked = request.event if isinstance(request, Notification) else request
        check_event(asked, "what is replied to is an Event, or the notification of one")
        if answer is not None and not isinstance(answer, Event | Mapping):
            raise WrongType("a reply is an Event, or the data of one as a dict", answer)
        await self.publish(reply_to(asked, answer))

    def factory(
        self, offered: Filter | str, *, key: str | None = None, linger: float = 5.0, warm: int = 100
    ) -> Callable[[Make], Factory]:
        """Decorates an async function: it is run while somebody wants what is `offered`, and is cancelled when not.

        With a `key`, it runs once for each value at this path that somebody wants; where these are not finitely many,
        once for all. It is given a Producer, with the last `warm` events of the past, and is stopped `linger` seconds
        after the last subscription has ended. A client that is not connected starts it when it is.
        """

        wanted = as_filter(offered)
        check_text("the key of a factory", key)
        check_seconds("the linger of a factory", linger)
        check_number("the warm of a factory", warm, 0)

        def decorate(make: Make) -> Factory:
            if not is_async(make):
                raise WrongType("a factory runs an async function: async def produce(producer): ...", make)
            made = Factory(self, wanted, make, key, linger, warm)
            self._services[id(made)] = made
            if self._is_open:
                made.begin()
            return made

        return decorate
