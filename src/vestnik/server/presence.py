"""Whether those who have connected are still there, and have said who they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from vestnik.transport.ends import End

HELLO_WITHIN = 10.0
"""Seconds in which whoever connects has to say who it is."""
ANSWER_WITHIN = 2.0
"""Seconds in which a neighbour has to be heard from when somebody else comes by its name."""


class Presence:
    """Sends away who is silent for too long, by `refuse`; not those who are `unheard`, because nobody listens to them.

    Everybody has to be heard from within `heartbeat` seconds, and is asked by `ping` whether it is there. Who sends a
    message that is not complete yet is heard. `beats` is called at every beat.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        heartbeat: float,
        ping: Callable[[End], None],
        refuse: Callable[[End, str, str], None],
        unheard: Callable[[End], bool],
        beats: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._heartbeat = heartbeat
        self._ping = ping
        self._refuse = refuse
        self._unheard = unheard
        self._beats = beats
        self._strangers: dict[End, asyncio.TimerHandle] = {}
        self._guests: dict[End, None] = {}
        # How many bytes had come at the last beat from those who were not heard since, and
        # when somebody came by their name from those who were not heard since then.
        self._quiet: dict[End, int] = {}
        self._doubted: dict[End, int] = {}
        self._pulse = loop.call_later(heartbeat, self._beat)

    @property
    def strangers(self) -> list[End]:
        """Who has not said who it is, the first to come first."""
        return list(self._strangers)

    def is_stranger(self, end: End) -> bool:
        return end in self._strangers

    def came(self, end: End) -> None:
        reason = f"nobody said Hello or Welcome for {HELLO_WITHIN:g} seconds"
        self._strangers[end] = self._loop.call_later(HELLO_WITHIN, self._refuse, end, "silence", reason)

    def known(self, end: End) -> None:
        """It has said who it is, and was let in."""
        self._no_stranger(end)
        self._guests[end] = None

    def heard(self, end: End) -> None:
        self._quiet.pop(end, None)
        self._doubted.pop(end, None)

    def left(self, end: End) -> None:
        self._no_stranger(end)
        self._guests.pop(end, None)
        self.heard(end)

    def doubt(self, end: End) -> None:
        """Somebody else comes by its name: it may have begun anew, or there are two of that name."""
        if end not in self._doubted:
            self._doubted[end] = end.arrived
            self._ping(end)
            self._loop.call_later(ANSWER_WITHIN, self._doubted_for_long, end)

    def close(self) -> None:
        self._pulse.cancel()

    def _beat(self) -> None:
        """Ask those who were silent whether they are there; who did not answer the last time is not."""
        self._pulse = self._loop.call_later(self._heartbeat, self._beat)
        self._beats()
        for end in [end for end, had in self._quiet.items() if end.arrived == had and not self._unheard(end)]:
            self._refuse(end, "silence", f"nothing was heard for {self._heartbeat:g} seconds")
        self._quiet = {end: end.arrived for end in self._guests}
        for end in self._guests:
            self._ping(end)

    def _doubted_for_long(self, end: End) -> None:
        if end not in self._doubted:
            return
        if self._unheard(end) or end.arrived > self._doubted[end]:
            self._doubted[end] = end.arrived
            self._loop.call_later(ANSWER_WITHIN, self._doubted_for_long, end)
        else:
            self._refuse(end, "silence", f"nothing was heard for {ANSWER_WITHIN:g} seconds")

    def _no_stranger(self, end: End) -> None:
        timer = self._strangers.pop(end, None)
        if timer is not None:
            timer.cancel()
