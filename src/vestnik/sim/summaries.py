"""What a simulation comes to: counts of messages, of records, and of what is in the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from vestnik.broker.core import BrokerCore
from vestnik.routing.propagation import Propagation
from vestnik.routing.router import AdvertisingRouter
from vestnik.sim.network import Network
from vestnik.trace.records import AnyRecord, Dropped, Lost, Notified, Published, Rejected


class Entries(NamedTuple):
    """How many entries there are in all tables: for neighbours, and for local clients."""

    remote: int = 0
    local: int = 0


class Summary(NamedTuple):
    seconds: float
    messages: dict[str, int]
    published: int
    rejected: int
    notified: int
    lost: int
    drops: dict[str, int]
    subscriptions: Entries
    advertisements: Entries

    def as_dict(self) -> dict[str, object]:
        """Plain data."""
        tables = {"subscriptions": self.subscriptions._asdict(), "advertisements": self.advertisements._asdict()}
        return self._asdict() | tables


class Tally:
    """Counts the records that it passes on to `record`."""

    def __init__(self, record: Callable[[AnyRecord], None]) -> None:
        self._record = record
        self.kinds: Counter[type[AnyRecord]] = Counter()
        self.drops: Counter[str] = Counter()
        self.lost = 0

    def take(self, record: AnyRecord) -> None:
        self.kinds[type(record)] += 1
        if isinstance(record, Dropped):
            self.drops[record.reason] += 1
        elif isinstance(record, Lost):
            self.lost += record.last - record.first + 1
        self._record(record)

    def summary(self, network: Network) -> Summary:
        subscriptions, advertisements = table_sizes(network)
        return Summary(
            seconds=network.now,
            messages={kind.__name__: count for kind, count in sorted(network.world.sent.items(), key=_by_name)},
            published=self.kinds[Published],
            rejected=self.kinds[Rejected],
            notified=self.kinds[Notified],
            lost=self.lost,
            drops=dict(sorted(self.drops.items())),
            subscriptions=subscriptions,
            advertisements=advertisements,
        )


def table_sizes(network: Network) -> tuple[Entries, Entries]:
    """The entries of subscriptions and of advertisements at all brokers that are up."""
    routers = [host.core.router for host in network.brokers.values() if isinstance(host.core, BrokerCore)]
    advertised = [router.advertisements for router in routers if isinstance(router, AdvertisingRouter)]
    return _entries([router.subscriptions for router in routers]), _entries(advertised)


def _entries(tables: list[Propagation]) -> Entries:
    """An entry with several sources counts for each neighbour, and for each subscription of a local client."""
    sources = [source for table in tables for _, of_entry in table for source in of_entry]
    local = sum(1 for source in sources if source.name)
    return Entries(len(sources) - local, local)


def _by_name(item: tuple[type, int]) -> str:
    return item[0].__name__
