"""How far subscriptions are from the ends of the logs that they read."""

from __future__ import annotations

from typing import NamedTuple

from vestnik.broker.core import BrokerCore
from vestnik.recovery.reader import ReaderKey
from vestnik.wire.messages import NodeId


class Lag(NamedTuple):
    """A subscription of a local client lags by this number of offsets, over all logs."""

    client: NodeId
    name: str
    offsets: int


def lags(core: BrokerCore) -> list[Lag]:
    """Return the subscriptions that lag, the one that lags most first.

    A subscription that reads live events lags by nothing. The end of a log that is out of reach is not known: what it
    accepts meanwhile does not count.
    """
    readers, roster = core.recovery.feeds.readers, core.recovery.feeds.roster
    found = [Lag(*key, lag_of(core, key)) for key in roster.apart_readers() if not readers[key].ends]
    return sorted([lag for lag in found if lag.offsets], key=lambda lag: (-lag.offsets, lag))


def lag_of(core: BrokerCore, key: ReaderKey) -> int:
    """Return by how many offsets a subscription lags in the logs that it reads by itself.

    A log of which nothing was read yet may begin at any offset: it does not count.
    """
    feeds = core.recovery.feeds.roster.own(key).items()
    edge, lagging = core.recovery.edge, [(origin, feed.cursor) for origin, feed in feeds if not feed.is_live]
    return sum([max(0, edge(origin) - cursor) for origin, cursor in lagging if cursor])
