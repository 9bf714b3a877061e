"""The plan of Spark SQL: workers rank events, and a join of integers finds the pairs.

All that is delicate about values (a number beyond 2**53, 1 and TRUE, what is missing) is in the ranks, which are those
of the compiled matcher; so both plans give the same pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import pyarrow as pa

from vestnik.errors import WrongValue
from vestnik.spark.answers import Ranking
from vestnik.spark.shards import Subscriptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def joined(rows: DataFrame, subscriptions: Subscriptions, paths: Sequence[tuple[str, ...]]) -> DataFrame:
    """The pairs, for subscriptions of one shard that are intervals of ranks."""
    from pyspark.sql.functions import broadcast, col

    boxes = subscriptions.shards[0].open().boxes if len(subscriptions.shards) == 1 else None
    if boxes is None:
        raise WrongValue("subscriptions for a join are intervals at the same paths, in one shard", "others")
    shard = subscriptions.shards[0]
    count = len(boxes.paths)
    ranks = ", ".join(f"r{number} int" for number in range(count))
    events = rows.mapInArrow(Ranking(shard, paths), f"event_source string, event_id string, {ranks}")
    ends = {
        f"{end}{n}": pa.array(table[:, n]) for end, table in (("a", boxes.low), ("b", boxes.high)) for n in range(count)
    }
    table = pa.table({"subscription_id": shard.open().ids.take(pa.array(boxes.owners)), **ends})
    wanted = rows.sparkSession.createDataFrame(table)
    within = [col("r0") == col("a0")]
    for n in range(1, count):
        within += [col(f"a{n}") <= col(f"r{n}"), col(f"r{n}") <= col(f"b{n}")]
    return events.join(broadcast(wanted), reduce(and_, within)).select("event_source", "event_id", "subscription_id")
