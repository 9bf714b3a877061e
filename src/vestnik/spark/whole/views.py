"""What people want to see of large tables: few rows, collected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from vestnik.report.times import bin_width

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row: TypeAlias = dict[str, Any]

MOST_DRAWN: Final = 8
"""Types, and keys of candles, that are drawn."""
TOP: Final = 30
"""Rows of a table for people."""
MOMENTS: Final = 60
"""Bins of time that a figure has, at most."""
LAST: Final = 120
"""Candles of a key that are drawn."""
AT: Final = "coalesce(time, taken_at)"
CANDLE: Final = "key string, start string, end string, open double, high double, low double, close double, count bigint"
FIRING: Final = "key string, value double, base double"


def rows(table: DataFrame, most: int = TOP) -> list[Row]:
    return [row.asDict(recursive=True) for row in table.limit(most).collect()]


def types(events: DataFrame) -> list[Row]:
    """The types of which there is most, with how many and from when to when."""
    first, last = _text(f"min({AT})"), _text(f"max({AT})")
    found = events.groupBy("type").agg(*_expressions("count(*) AS events", f"{first} AS first", f"{last} AS last"))
    return rows(found.orderBy("events", ascending=False))


def over_time(events: DataFrame) -> list[Row]:
    """Count the events of the most frequent types in bins of time, which begin `at` and last `seconds`.

    There is a row for each type and bin, whether events come or not.
    """
    times = events.selectExpr("type", f"unix_micros({AT}) AS at")
    first, last = times.selectExpr("min(at)", "max(at)").first() or (None, None)
    if first is None or last is None:
        return []
    width = bin_width(first, last, MOMENTS)
    first -= first % width
    most = times.groupBy("type").count().orderBy("count", ascending=False).limit(MOST_DRAWN)
    stretches = times.selectExpr("type", f"(at - {first}) DIV {width} AS stretch")
    counted = stretches.join(most.select("type"), "type").groupBy("type", "stretch").count()
    found = {(row["stretch"], row["type"]): row["count"] for row in rows(counted, MOST_DRAWN * (MOMENTS + 1))}
    return [
        {
            "type": type,
            "at": (first + stretch * width) / 1e6,
            "seconds": width / 1e6,
            "events": found.get((stretch, type), 0),
        }
        for stretch in range((last - first) // width + 1)
        for type in sorted({type for _, type in found})
    ]


def missing(quarantined: DataFrame) -> list[Row]:
    """Return how many positions of which journals are not in a lake, and why; null if the number is not known."""
    last = "max(position + positions - 1) AS last"
    sums = _expressions("sum(positions) AS positions", "min(position) AS first", last)
    return rows(quarantined.groupBy("taken_by", "kind").agg(*sums).orderBy("taken_by", "kind"))


def top(pairs: DataFrame, subscriptions: DataFrame) -> list[Row]:
    """The subscriptions that most events satisfy."""
    counted = pairs.groupBy("subscription_id").count().orderBy("count", ascending=False).limit(TOP)
    named = counted.join(subscriptions, counted.subscription_id == subscriptions.id)
    found = named.selectExpr("subscription_id AS subscription", "count AS events", "filter")
    return rows(found.orderBy("events", ascending=False))


def without_pairs(pairs: DataFrame, subscriptions: DataFrame) -> int:
    """How many subscriptions no event satisfies."""
    return subscriptions.join(pairs, subscriptions.id == pairs.subscription_id, "left_anti").count()


def candles(made: DataFrame) -> list[Row]:
    """The last candles of the keys with the most readings."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    found = made.select(sql.from_json("data", CANDLE).alias("candle")).select("candle.*")
    most = found.groupBy("key").agg(sql.sum("count").alias("all")).orderBy("all", ascending=False).limit(MOST_DRAWN)
    place = Window.partitionBy("key").orderBy(sql.desc("start"))
    last = found.join(most.select("key"), "key").withColumn("place", sql.row_number().over(place))
    return rows(last.where(f"place <= {LAST}").drop("place").orderBy("key", "start"), MOST_DRAWN * LAST)


def triggers(made: DataFrame) -> list[Row]:
    """The last that fired."""
    from pyspark.sql import functions as sql

    found = made.select("time", "type", sql.from_json("data", FIRING).alias("firing")).orderBy(sql.desc("time"))
    return rows(found.selectExpr(f"{_text('time')} AS time", "type", "firing.key", "firing.base", "firing.value"))


def _text(time: str) -> str:
    """A time as people read it, in the session's zone, which is UTC."""
    return f"date_format({time}, \"yyyy-MM-dd HH:mm:ss.SSS'Z'\")"


def _expressions(*texts: str) -> list[Any]:
    from pyspark.sql import functions as sql

    return [sql.expr(text) for text in texts]
