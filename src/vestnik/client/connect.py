"""Connecting to a broker by its address."""

from __future__ import annotations

import os

from vestnik.client.services import ServiceBus
from vestnik.transport.addresses import read_address
from vestnik.transport.ends import End, Receiver
from vestnik.transport.tcp import dial

URL, NAME, TOKEN = "VESTNIK_URL", "VESTNIK_NAME", "VESTNIK_TOKEN"
DEFAULT_URL = "vestnik://127.0.0.1:8020"


def connect(
    url: str | None = None, *, name: str | None = None, token: str | None = None, timeout: float = 10.0
) -> ServiceBus:
    """A client of the broker at `url`, for `async with`; what is left out is taken from the environment.

    The variables are VESTNIK_URL, VESTNIK_NAME and VESTNIK_TOKEN; without any the broker is sought on this machine.
    """
    address = read_address(url or os.environ.get(URL) or DEFAULT_URL)

    async def reach(receiver: Receiver) -> End:
        return await dial(receiver, *address)

    name, token = name or os.environ.get(NAME), token or os.environ.get(TOKEN)
    return ServiceBus(reach, str(address), name=name, token=token, timeout=timeout)
