"""Events x subscriptions: who would receive what, for tables and streams of any length.

    match(spark.read.parquet("lake"), subscriptions)                    event_source, event_id, subscription_id
    match(events, subscriptions, "lists")                               event_source, event_id, subscriptions
    match(events, subscriptions, "counts")                              event_source, event_id, matches

`events` has the columns of the event table (`vestnik.lake.schema.EVENTS`; those that may be null may be missing),
`subscriptions` has `id` and `filter`. The filters are those of brokers, and so are the answers: workers run the
package's compiled matcher. Which plan is taken:

- `passes`, while the shards take no more than ROUND bytes, and for streams: each event goes through all shards.
- `rounds`, beyond: events are repeated for each ROUND bytes of shards and sent there, and the answers put together.
- `join`, where it is asked for: pairs by Spark SQL. Workers rank the events, and a join finds the pairs; for
  subscriptions of one shard that are all intervals of ranks at the same paths, with a point at one of them
  (`symbol = 'X' AND price > 10`). It takes as long as `passes`, or up to twice as long, so the rule never takes it.

A row that cannot be read is in no answer; `unreadable` gives those rows and why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from vestnik.errors import WrongValue
from vestnik.lake.events import REQUIRED
from vestnik.lake.schema import EVENTS
from vestnik.spark import answers
from vestnik.spark.joined import joined
from vestnik.spark.rounds import in_rounds
from vestnik.spark.schemas import spark_schema
from vestnik.spark.shards import ROUND, ShardFile, Subscriptions, compile_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RESULTS: Final[dict[str, tuple[Callable[..., Any], pa.Schema]]] = {
    "pairs": (answers.pairs, answers.PAIRS),
    "lists": (answers.lists, answers.LISTS),
    "counts": (answers.counts, answers.COUNTS),
}
PLANS: Final = ("join", "passes", "rounds")


def match(
    events: DataFrame,
    subscriptions: DataFrame | Subscriptions,
    result: str = "pairs",
    *,
    plan: str | None = None,
    room: int = ROUND,
) -> DataFrame:
    """Which subscriptions each event satisfies. Subscriptions that do not parse are left out: compile them to see.

    Lists and counts have a row for each event, matched or not. `plan` takes another than the rule does; `room` is how
    many bytes of shards a worker may map at a time.
    """
    if result not in RESULTS:
        raise WrongValue(f"a result is one of {', '.join(RESULTS)}", result)
    if plan not in (None, *PLANS):
        raise WrongValue(f"a plan is one of {', '.join(PLANS)}", plan)
    wanted = subscriptions if isinstance(subscriptions, Subscriptions) else compile_subscriptions(subscriptions)
    paths = wanted.paths
    rows = looked_at(events, paths)
    answer, schema = RESULTS[result]
    match plan or chosen(wanted, streaming=events.isStreaming, room=room):
        case "join":
            if result != "pairs":
                raise WrongValue("a join gives pairs", result)
            return joined(rows, wanted, paths)
        case "rounds":
            return in_rounds(rows, wanted, paths, result, room)
        case _:
            work = answers.Work(wanted.shards, paths, answer)
            return rows.mapInArrow(work, spark_schema(schema))


def chosen(subscriptions: Subscriptions, *, streaming: bool, room: int = ROUND) -> str:
    """The plan that the rule takes."""
    if sum(shard.bytes for shard in subscriptions.shards) > room and not streaming:
        return "rounds"
    return "passes"


def unreadable(events: DataFrame, subscriptions: Subscriptions) -> DataFrame:
    """The rows that are no events as far as the subscriptions look at them: event_source, event_id, reason, data."""
    paths = subscriptions.paths
    check = answers.Check(paths)
    return looked_at(events, paths).mapInArrow(check, spark_schema(answers.UNREADABLE))


def looked_at(events: DataFrame, paths: Sequence[tuple[str, ...]]) -> DataFrame:
    """The columns of `events` that are needed."""
    if missing := [name for name in REQUIRED if name not in events.columns]:
        raise WrongValue(f"a table of events has the columns {', '.join(REQUIRED)}", f"without {', '.join(missing)}")
    needed = {"source", "id", *(path[0] for path in paths)}
    return events.select(*(name for name in EVENTS.names if name in needed and name in events.columns))


__all__ = ["ShardFile", "Subscriptions", "chosen", "compile_subscriptions", "match", "unreadable"]
