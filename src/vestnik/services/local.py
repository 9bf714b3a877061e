"""A broker and its clients in one process, without sockets."""

from __future__ import annotations

import secrets
from pathlib import Path

from vestnik.client.arguments import check_text
from vestnik.client.services import ServiceBus
from vestnik.server.process import Broker
from vestnik.services.embedded import HERE, Embedded, Uplink
from vestnik.transport.addresses import read_address
from vestnik.transport.ends import End, Receiver
from vestnik.transport.memory import pair


def within(broker: Broker, *, name: str | None = None, token: str | None = None) -> ServiceBus:
    """A client of a broker in this process, for `async with`."""

    async def reach(receiver: Receiver) -> End:
        end, _ = pair(receiver, broker.host, (name or "a client in this process", broker.settings.name))
        return end

    return ServiceBus(reach, HERE, name=name, token=token)


class LocalBus(ServiceBus):
    """A client of a broker of its own, for one process or for tests; `client` gives it further clients.

    With `join`, the address of a broker elsewhere, the two are neighbours, and events go to and fro. It routes as that
    broker does; if `routing` or `advertisements` are given, that broker must route so. Whoever enters it waits until
    they are linked: Unreachable if that takes longer than `timeout` seconds, TurnedAway with the reason if the other
    refuses. That one may want to know it by a certificate, which is for the name `broker`.

    Without `join` both have defaults: it routes by merging, without advertisements.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        join: str | None = None,
        routing: str | None = None,
        advertisements: bool | None = None,
        broker: str | None = None,
        tls_cert: Path | None = None,
        tls_key: Path | None = None,
        tls_ca: Path | None = None,
        timeout: float | None = 10.0,
    ) -> None:
        check_text("the name of a broker", broker)
        super().__init__(self._reach, HERE, name=name)
        self._embedded = Embedded(
            broker or f"local-{secrets.token_hex(8)}",
            None if join is None else read_address(join),
            routing=routing,
            advertisements=advertisements,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_ca=tls_ca,
            timeout=timeout,
        )

    def client(self, name: str | None = None) -> ServiceBus:
        """Another client of the same broker, for `async with`."""
        return self._embedded.client(name)

    @property
    def uplink(self) -> Uplink:
        """How another broker in this process joins this one."""

        async def connect(receiver: Receiver) -> End:
            return self._embedded.connect(receiver, "a neighbour in this process")

        return Uplink(HERE, connect)

    async def _open(self) -> None:
        await self._embedded.start()
        try:
            await super()._open()
        except BaseException:
            await self._embedded.stop()
            raise

    async def close(self) -> None:
        await super().close()
        await self._embedded.stop()

    async def _reach(self, receiver: Receiver) -> End:
        return self._embedded.connect(receiver, self.name)
