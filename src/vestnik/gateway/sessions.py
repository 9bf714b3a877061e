"""Clients of the broker for requests that need none of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from vestnik.client.bus import Bus
from vestnik.errors import Disconnected, InvalidRequest, TurnedAway, Unreachable

Connect: TypeAlias = Callable[[str | None], Bus]
"""A new client of the broker that shows it a token."""

IDLE: Final = 30.0
"""Seconds after which a client that nobody uses leaves."""


class _Loan:
    """A client, how many use it, and when it is to leave."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.users = 0
        self.entered = asyncio.create_task(bus.__aenter__())
        self.leaving: asyncio.TimerHandle | None = None


class Sessions:
    """One client for each token, for all requests that show it; `most` of them at a time.

    A client is waited for `patience` seconds.
    """

    def __init__(self, connect: Connect, most: int, patience: float) -> None:
        self._connect = connect
        self._most = most
        self._patience = patience
        self._loans: dict[str | None, _Loan] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def lent(self, token: str | None) -> AsyncIterator[Bus]:
        """A client that is connected. One that turns out not to be any more is not lent again."""
        loan = self._loan(token)
        loan.users += 1
        if loan.leaving is not None:
            loan.leaving.cancel()
        try:
            async with asyncio.timeout(self._patience):
                await asyncio.shield(loan.entered)
            loan.bus.check()
            yield loan.bus
        except (TurnedAway, Unreachable, Disconnected):
            self._drop(token, loan)
            raise
        finally:
            loan.users -= 1
            if not loan.users and self._loans.get(token) is loan:
                loan.leaving = asyncio.get_running_loop().call_later(IDLE, self._drop, token, loan)

    def _loan(self, token: str | None) -> _Loan:
        if token not in self._loans:
            if len(self._loans) >= self._most:
                raise InvalidRequest(f"{self._most:,} tokens are in use, and no more at a time", status=503)
            self._loans[token] = _Loan(self._connect(token))
        return self._loans[token]

    def _drop(self, token: str | None, loan: _Loan) -> None:
        if self._loans.get(token) is loan:
            del self._loans[token]
            if loan.leaving is not None:
                loan.leaving.cancel()
            task = asyncio.create_task(_leave(loan))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        for token, loan in list(self._loans.items()):
            self._drop(token, loan)
        await asyncio.gather(*self._leaving)


async def _leave(loan: _Loan) -> None:
    loan.entered.cancel()
    await asyncio.gather(loan.entered, return_exceptions=True)
    await loan.bus.close()
