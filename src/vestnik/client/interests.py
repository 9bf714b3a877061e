"""Who wants something: the open subscriptions that overlap a filter, at all brokers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vestnik.client.notifications import Notification
from vestnik.client.subscriptions import Subscription
from vestnik.errors import FilterError, VestnikError
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import BROKER, SUBSCRIPTION

if TYPE_CHECKING:
    from vestnik.client.bus import Bus

LOG: Final = logging.getLogger(__name__)


class Interest(NamedTuple):
    """A subscription of a client at a broker: the seq of what was heard of it last, and its filter while it is open."""

    broker: str
    client: str
    name: str
    seq: int
    filter: Filter | None


class Interests:
    """Kept up to date by what brokers announce. `changed` is called when it is another than before.

    If something may have been missed, and when a broker comes within reach, brokers are asked again what is open. What
    was announced while an answer was on its way is newer than the answer.
    """

    def __init__(self, bus: Bus, offered: Filter, changed: Callable[[], None]) -> None:
        self._bus = bus
        self._changed = changed
        text = str(offered).replace("'", "''")
        self._open = f"type IS {SUBSCRIPTION} AND OVERLAPS(filter, '{text}')"
        self._known: dict[tuple[str, str, str], Interest] = {}
        self._subscription: Subscription | None = None
        self._again: asyncio.Task[None] | None = None
        self._is_stale = False
        self._asking = 0  # how many answers are waited for
        self._announced: set[tuple[str, str, str]] = set()  # meanwhile

    async def start(self) -> None:
        """Returns when all that is open is known."""
        wanted = f"{self._open} OR type IS {BROKER}"
        self._subscription = await self._bus.subscribe(wanted, self._take, queue=10_000)
        self._subscription.when_missed = self._ask_soon
        await self._ask()

    async def stop(self) -> None:
        if self._again is not None:
            self._again.cancel()
            await asyncio.gather(self._again, return_exceptions=True)
        if self._subscription is not None:
            self._bus.give_up(self._subscription)

    @property
    def all(self) -> list[Interest]:
        """Those that are open."""
        return [interest for interest in self._known.values() if interest.filter is not None]

    # --- what is heard ---

    def _take(self, notification: Notification) -> None:
        event = notification.event
        if event.type == f"{BROKER}.left":
            for interest in [known for known in self.all if known.broker == event.data["broker"]]:
                self._note(interest._replace(filter=None))
            if self._asking:
                self._ask_soon()  # the answer may be older than this
        elif event.type == f"{BROKER}.joined":
            self._ask_soon()
        else:
            heard = _interest(event)
            if self._asking:
                self._announced.add(heard[:3])
            self._note(heard)

    def _note(self, heard: Interest) -> None:
        """The last word about a subscription counts."""
        key = heard[:3]
        before = self._known.get(key)
        if before is not None and before.seq > heard.seq:
            return
        if heard.filter is None and not self._asking:
            self._known.pop(key, None)
        else:
            self._known[key] = heard
        if (before and before.filter) != heard.filter:
            self._changed()

    # --- what is asked ---

    def _ask_soon(self) -> None:
        self._is_stale = True
        self._announced.clear()
        if self._again is None or self._again.done():
            self._again = asyncio.create_task(self._ask_again())

    async def _ask_again(self) -> None:
        """Ask until nothing happened meanwhile that makes it necessary once more."""
        try:
            while self._is_stale:
                self._is_stale = False
                await self._ask()
        except VestnikError as error:
            LOG.warning("it could not be asked for %s: %s", self._open, error)

    async def _ask(self) -> None:
        """What is not open any more, and was not heard of meanwhile, has ended."""
        before = self.all
        self._asking += 1
        try:
            found = [_interest(event) for event in await self._bus.fetch(self._open, limit=None)]
            for interest in found:
                if interest[:3] not in self._announced:
                    self._note(interest)
        finally:
            self._asking -= 1
            if not self._asking:
                self._announced.clear()
                self._known = {interest[:3]: interest for interest in self.all}
        open = {interest[:3] for interest in found}
        for interest in before:
            if interest[:3] not in open and self._known.get(interest[:3]) == interest:
                self._note(interest._replace(filter=None))


def _interest(event: Event) -> Interest:
    data = event.data
    wanted = _filter(data["filter"]) if event.type.endswith(".made") else None
    return Interest(data["broker"], data["client"], data["name"], event.seq or 0, wanted)


def _filter(data: str | dict[str, Any]) -> Filter:
    """A filter of kinds that are not known here may want anything."""
    try:
        return Filter.parse(data) if isinstance(data, str) else Filter.from_dict(data)
    except FilterError:
        return Filter.all()
