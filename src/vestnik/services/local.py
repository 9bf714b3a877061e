"""A broker and its clients in one process, without sockets."""

from __future__ import annotations

import secrets
from pathlib import Path

from vestnik.client.arguments import check_text
from vestnik.client.services import ServiceBus
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import Address, read_address
from vestnik.transport.ends import End, Receiver
from vestnik.transport.memory import pair

HERE = "this process"


def within(broker: Broker, *, name: str | None = None, token: str | None = None) -> ServiceBus:
    """A client of a broker in this process, for `async with`."""

    async def reach(receiver: Receiver) -> End:
        end, _ = pair(receiver, broker.host, (name or "a client in this process", broker.settings.name))
        return end

    return ServiceBus(reach, HERE, name=name, token=token)


class LocalBus(ServiceBus):
    """A client of a broker of its own, for one process or for tests; `client` gives it further clients.

    With `join`, the address of a broker elsewhere, the two are neighbours, and events go to and fro. That one may want
    to know it by a certificate, which is for the name `broker`.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        join: str | None = None,
        routing: str = "merging",
        advertisements: bool = False,
        broker: str | None = None,
        tls_cert: Path | None = None,
        tls_key: Path | None = None,
        tls_ca: Path | None = None,
    ) -> None:
        check_text("the name of a broker", broker)
        check_text("the strategy of routing", routing)
        super().__init__(self._reach, HERE, name=name)
        neighbours: tuple[Address, ...] = () if join is None else (read_address(join),)
        settings = Settings(
            name=broker or f"local-{secrets.token_hex(8)}",
            join=neighbours,
            routing=routing,
            advertisements=advertisements,
            tls_cert=tls_cert,
            tls_key=tls_key,
            tls_ca=tls_ca,
        )
        self._broker = Broker(settings, listens=False)

    def client(self, name: str | None = None) -> ServiceBus:
        """Another client of the same broker, for `async with`."""
        return within(self._broker, name=name)

    def reached_by(self, other: Receiver) -> End:
        """A new connection to its broker: the end of the other."""
        return pair(other, self._broker.host, ("a neighbour in this process", self._broker.settings.name))[0]

    async def _open(self) -> None:
        await self._broker.__aenter__()
        try:
            await super()._open()
        except BaseException:
            await self._broker.__aexit__()
            raise

    async def close(self) -> None:
        await super().close()
        await self._broker.__aexit__()

    async def _reach(self, receiver: Receiver) -> End:
        end, _ = pair(receiver, self._broker.host, (self.name, self._broker.settings.name))
        return end
