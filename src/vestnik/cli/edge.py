"""A broker with a gateway in its process."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final

from vestnik.errors import MissingExtra
from vestnik.logs import emit
from vestnik.observe.inspection import status
from vestnik.server.process import Broker
from vestnik.services.local import within
from vestnik.transport import tls
from vestnik.transport.addresses import Address

LOG: Final = logging.getLogger(__name__)

HOOKS: Final = "webhooks.json"


def behind_gateway(broker: Broker, listen: Address) -> AbstractAsyncContextManager[None]:
    """Let a broker run, and its gateway at `listen`."""
    try:
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
        readings=lambda: _readings(broker),
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


def _readings(broker: Broker) -> Mapping[str, tuple[float, str]]:
    seen = status(broker.host.core, broker.host.chronicle.begun, broker.host.counts)
    return {
        "broker_neighbours": (len(seen["neighbours"]), "Brokers that it is linked with."),
        "broker_clients": (seen["connected"], "Clients that are there."),
        "broker_clients_full": (seen["full"], "Clients that do not take what they are sent."),
        "broker_subscriptions": (seen["subscriptions"], "Subscriptions of its clients."),
        "broker_store_failed": (
            float(bool(broker.failure)),
            "1 if its disk has failed and it stores nothing any more.",
        ),
        "broker_entries": (seen["entries"], "Entries of the routing table."),
        "broker_events_taken_total": (seen["taken"], "Events from clients."),
        "broker_events_passed_total": (seen["passed"], "Events from neighbours."),
        "broker_notifications_total": (seen["notified"], "Notifications that were sent to clients."),
    }
