"""DataFrames published as events, once, through Spark itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from spark.brokers import events, published, running, write
from vestnik.spark.source.source import VestnikSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SELECT = "select 't' as type, to_json(named_struct('n', id)) as data from range(0, {count}, 1, 3)"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with running(tmp_path / "b") as url:
        yield url


def wanted(*ranges: range, source: str = "spark", type: str = "t") -> Counter[tuple[str, str, int]]:
    return Counter([(source, type, n) for some in ranges for n in some])


def test_a_frame_is_published_and_nothing_is_left_of_it(spark: SparkSession, tmp_path: Path, url: str) -> None:
    writing = spark.sql(SELECT.format(count=2_500)).write.format("vestnik").mode("append").option("url", url)
    writing.option("source", "feed").option("stagingLocation", str(tmp_path / "staging")).save()
    assert published(url) == wanted(range(2_500), source="feed")
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_job_with_a_name_is_done_once(spark: SparkSession, tmp_path: Path, url: str) -> None:
    for _ in range(2):
        writing = spark.sql(SELECT.format(count=10)).write.format("vestnik").mode("append").option("url", url)
        writing.option("job", "nightly-1").option("stagingLocation", str(tmp_path / "staging")).save()
    assert published(url) == wanted(range(10))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select 't' as type, '{}' as data, 1 as price", "price.*goes into data"),
        ("select 't' as type", "type and data"),
        (
            "select 't' as type, if(id = 7, 'x', '{}') as data from range(0, 10, 1, 2)",
            r"partition 1.*row 2: data.*onBadRow",
        ),
    ],
)
def test_rows_that_are_no_events_are_named(spark: SparkSession, url: str, query: str, said: str) -> None:
    with pytest.raises(PySparkException, match=f"(?s){said}"):
        spark.sql(query).write.format("vestnik").mode("append").option("url", url).save()
    assert published(url) == Counter()


def crashing(after: int) -> type[VestnikSource]:
    """The same source, whose driver fails once so many events are published; pickled by value."""

    class Crashing(VestnikSource):
        @classmethod
        def name(cls) -> str:
            return "crashing"

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            from vestnik.client.sync import SyncBus
            from vestnik.spark.source import publishing

            publishing.CHUNK = 10  # type: ignore[misc]
            whole = SyncBus.publish_many
            left = [after]

            def publish_some(bus: SyncBus, events: Any, **how: Any) -> None:
                whole(bus, list(events)[: left[0]], **how)
                left[0] -= len(list(events))
                if left[0] < 0:
                    raise RuntimeError("crashed")

            SyncBus.publish_many = publish_some  # type: ignore[assignment, method-assign]
            return super().streamWriter(schema, overwrite)

    return Crashing


def republished(frame: DataFrame, format: str, url: str, checkpoint: Path) -> Any:
    writing = frame.selectExpr("'copy' as type", "data").writeStream.format(format).option("url", url)
    return writing.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def test_a_stream_is_published_once_though_its_driver_fails_on_the_way(
    spark: SparkSession, tmp_path: Path, url: str
) -> None:
    write(tmp_path / "in", events(100))
    spark.dataSource.register(crashing(37))
    frame = spark.readStream.format("vestnik").option("maxEventsPerTrigger", 50).load(str(tmp_path / "in"))
    failed = republished(frame, "crashing", url, tmp_path / "checkpoint")
    with pytest.raises(PySparkException, match="crashed"):
        failed.awaitTermination(120)
    assert published(url).total() == 37
    assert republished(frame, "vestnik", url, tmp_path / "checkpoint").awaitTermination(120)
    assert published(url) == wanted(range(1, 101), type="copy")
    write(tmp_path / "in", events(10, start=101))
    assert republished(frame, "vestnik", url, tmp_path / "checkpoint").awaitTermination(120)
    assert published(url) == wanted(range(1, 111), type="copy")
