"""Turns of large requests: how much the gateway reads, and how much it holds decoded, over all connections.

A body of one megabyte becomes up to 40 MB of values. Many bodies at once would take the memory of the process, so a
request waits until there is room for it, and its body is not read before.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Final

from starlette.requests import Request

from vestnik.errors import InvalidRequest
from vestnik.gateway.bodies import announced, read_body
from vestnik.gateway.decoding import AT_ONCE, decoded
from vestnik.gateway.settings import GatewaySettings

BODIES: Final = 32
"""Bodies of the largest size that are read at once."""

_STRINGS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_PIECES: Final = re.compile(r'(?:[^"]++|"(?:[^"\\]++|\\.)*+"?){1,1000}+', re.DOTALL)
"""A piece of text with at most 1,000 strings. No other thread runs while the regex engine works on a piece."""
_BLANKS: Final = " \t\r\n"
_MARKS: Final = ",:[{"
"""One of these precedes each value but the first. The bracket of an empty list or map precedes no value."""


class Quota:
    """A quantity that requests share: `most` in all, and `share` of it for one owner. Requests get it in order."""

    def __init__(self, most: int, share: int) -> None:
        self._most = most
        self._share = share
        self._taken = 0
        self._owners: Counter[Hashable] = Counter()
        self._waiting: dict[asyncio.Future[None], tuple[int, Hashable]] = {}

    async def take(self, size: int, owner: Hashable) -> ExitStack:
        """Wait for room, and return what gives it back when it is closed. A size above the share takes the share."""
        size = min(size, self._share)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = size, owner
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            if self._waiting.pop(turn, None) is None:
                self._give_back(size, owner)
            else:
                self._grant()
            raise
        taken = ExitStack()
        taken.callback(self._give_back, size, owner)
        return taken

    def _give_back(self, size: int, owner: Hashable) -> None:
        self._taken -= size
        self._owners[owner] -= size
        if not self._owners[owner]:
            del self._owners[owner]
        self._grant()

    def _grant(self) -> None:
        """Let in those who wait, in order. An owner whose share is used up does not hold up others."""
        for turn, (size, owner) in list(self._waiting.items()):
            if turn.done() or self._owners[owner] + size > self._share:
                continue
            if self._taken + size > self._most:
                return
            del self._waiting[turn]
            self._taken += size
            self._owners[owner] += size
            turn.set_result(None)


class Turns:
    """The room for bodies that are read, in bytes, and for requests that are not answered yet, in values.

    One owner, such as a token at one address or a socket, has at most half of each. Requests of up to AT_ONCE bytes
    need no room.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self._largest = settings.largest
        self._most = settings.values
        self._patience = settings.patience
        self._bytes = Quota(BODIES * settings.largest, BODIES // 2 * settings.largest)
        self._values = Quota(2 * settings.values, settings.values)

    @asynccontextmanager
    async def body(self, request: Request, owner: Hashable) -> AsyncIterator[bytes]:
        """Wait for room, read the body of a request, and keep the room until the request is answered.

        InvalidRequest if the body is too large, has too many values, or there is no room in time.
        """
        size = announced(request, self._largest)
        with ExitStack() as held:
            if size > AT_ONCE:
                held.enter_context(await self._in_time(self._bytes, size, owner))
            body = await read_body(request, self._largest)
            count = await self._counted(body.decode("latin-1"))
            if count:
                held.enter_context(await self._in_time(self._values, count, owner))
            yield body

    async def hold(self, message: str, owner: Hashable) -> ExitStack:
        """Wait for room for the values of a message that has come. InvalidRequest if it has too many."""
        count = await self._counted(message)
        return await self._values.take(count, owner) if count else ExitStack()

    async def _in_time(self, room: Quota, size: int, owner: Hashable) -> ExitStack:
        try:
            async with asyncio.timeout(self._patience):
                return await room.take(size, owner)
        except TimeoutError:
            reason = f"the gateway had no room for a large request in {self._patience:g} seconds; try again"
            raise InvalidRequest(reason, status=503) from None

    async def _counted(self, text: str) -> int:
        """Return a bound of the values in a text; 0 if it is short."""
        most = self._most
        if len(text) <= min(AT_ONCE, most):
            return 0
        count = most_values(text)
        if count > most:
            count = await decoded(len(text), partial(values_in_json, text))
        if count > most:
            reason = f"there are {count:,} values; a request may have limits.values = {most:,}: send several requests"
            raise InvalidRequest(reason, status=413)
        return 0 if len(text) <= AT_ONCE else count


def most_values(text: str) -> int:
    """Return a number that the values in a JSON text do not exceed; what strings contain may be counted too."""
    return 1 + _marks(text)


def values_in_json(text: str) -> int:
    """Count the values in a JSON text, names included, as `values_in` counts those of MessagePack."""
    count = 1
    for piece in _PIECES.finditer(text):
        bare = _STRINGS.sub("0", piece[0])
        for blank in _BLANKS:
            bare = bare.replace(blank, "")
        count += _marks(bare) - bare.count("[]") - bare.count("{}")
    return count


def _marks(text: str) -> int:
    return sum([text.count(mark) for mark in _MARKS])
