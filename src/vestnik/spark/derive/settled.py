"""What the watermark has reached: of a stream Spark knows it, of a table it is found here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vestnik.errors import WrongValue

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LATEST = "latest"
"""The latest time of the readings that a row was made of."""


def settled(rows: DataFrame, time: str, delay: int) -> DataFrame:
    """The rows of a table whose `time` is not behind the watermark, which is `delay` milliseconds behind all LATEST.

    Both columns are in microseconds.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    everything = Window.partitionBy(sql.lit(0))
    known = rows.withColumn(LATEST, sql.max(LATEST).over(everything))
    return known.where(f"{time} <= (floor({LATEST} / 1000) - {delay}) * 1000")


def check_early(events: DataFrame, early: bool) -> None:
    """Streams give nothing early."""
    if early and events.isStreaming:
        raise WrongValue("of a stream, what the watermark has not reached is not known yet", "early=True")
