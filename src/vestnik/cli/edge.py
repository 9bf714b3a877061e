"""A broker with a gateway in its process."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final

from vestnik.errors import MissingExtra
from vestnik.logs import emit
from vestnik.server.process import Broker
from vestnik.services.local import within
from vestnik.transport import tls
from vestnik.transport.addresses import Address

LOG: Final = logging.getLogger(__name__)

HOOKS: Final = "webhooks.json"


def behind_gateway(broker: Broker, listen: Address) -> AbstractAsyncContextManager[None]:
    """Let a broker run, and its gateway at `listen`."""
    try:
        from vestnik.cli.readings import readings
        from vestnik.gateway.app import Gateway
        from vestnik.gateway.server import GatewayServer
        from vestnik.gateway.settings import GatewaySettings
    except ModuleNotFoundError as error:
        raise MissingExtra("serving HTTP", "web") from error

    def missing() -> list[str]:
        disk = [f"a disk that stores: {broker.failure}"] if broker.failure else []
        return [*disk, *[f"the link to {at}" for at in broker.missing]]

    data = broker.settings.data
    hooks = None if data is None else data / HOOKS
    limits = broker.settings.limits
    settings = GatewaySettings(
        origins=broker.settings.origin,
        sinks=broker.settings.sink,
        hooks=hooks,
        values=limits.values,
        batch=limits.batch,
        http_connections=limits.http_connections,
        http_header_seconds=limits.http_header_seconds,
    )
    gateway = Gateway(
        lambda token: within(broker, token=token),
        settings,
        missing=missing,
        failure=lambda: broker.host.engine.failure,
        readings=lambda: readings(broker),
    )

    cert, key = broker.settings.tls_cert, broker.settings.tls_key
    secure = None if cert is None or key is None else tls.listening(cert, key)
    if secure is not None and cert is not None:
        broker.reloaded = partial(tls.load, secure, cert, key)

    @asynccontextmanager
    async def both() -> AsyncIterator[None]:
        async with broker, GatewayServer(gateway, listen, secure) as server:
            emit(LOG, logging.INFO, "gateway.listening", f"http on {server.address}", address=server.address)
            yield

    return both()
