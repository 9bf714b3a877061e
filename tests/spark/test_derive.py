"""Spark derives what the definition says, from tables and from streams; commands publish it, once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from lake.lakes import NOON, write
from spark.brokers import running
from vestnik import Event
from vestnik.cli import main
from vestnik.errors import WrongValue
from vestnik.lake.events import events_of
from vestnik.lake.journals import open_journal
from vestnik.lake.rows import batch_of
from vestnik.lake.schema import EVENTS
from vestnik.lake.taking import take_in
from vestnik.spark.derive import Above, Fall, Rise, candles, definition, rates, triggers
from vestnik.spark.derive.made import Naming, candle_event, firing_event, rate_event
from vestnik.spark.derive.series import Reading
from vestnik.spark.schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = 1_000_000
LATENESS = 5
WINDOW, DELAY = 4_000, LATENESS * 1_000
TRIGGERS = (Above(10), Rise(20, "2s"), Fall(30, "4s"))


def quotes(count: int = 240, seed: int = 7) -> list[Event]:
    """Quotes of two symbols, five a second, many at the same time, each up to LATENESS seconds late."""
    rng = random.Random(seed)
    return [
        Event(
            "quote",
            {"stock": {"symbol": rng.choice(["A", "B"])}, "price": rng.choice([8, 9, 10.5, 11, 12, 14]), "size": n % 5},
            source=f"s{n % 2}",
            id=str(n),
            time=NOON + n * SECOND // 5 // 1_000_000 * 1_000_000 + rng.choice([0, 500, 1_000, 400_000])
            - rng.randrange(LATENESS) * SECOND,
        ).stamped("b", n + 1)
        for n in range(count)
    ]  # fmt: skip


def odd() -> list[Event]:
    """Events that say nothing of a price."""
    bodies: list[dict[str, Any]] = [
        {"stock": {"symbol": "A"}},
        {"stock": {"symbol": "A"}, "price": "9"},
        {"stock": {"symbol": True}, "price": 9},
        {"stock": "A", "price": 9},
    ]
    return [Event("odd", body, source="odd", id=str(n), time=NOON) for n, body in enumerate(bodies)]


def readings(events: list[Event]) -> list[Reading]:
    return [
        Reading(
            event.data["stock"]["symbol"], event.time or 0, event.broker or "", event.seq or 0, event.source, event.id,
            float(event.data["price"]), float(event.data["size"]),
        )
        for event in events
    ]  # fmt: skip


def defined(events: list[Event], delay: int | None = DELAY) -> list[Event]:
    """What is to be derived from the quotes among `events`."""
    said = readings([event for event in events if event.type == "quote"])
    counted = [
        Reading(event.type, event.time or 0, event.broker or "", event.seq or 0, event.source, event.id)
        for event in events
    ]
    by_window = Naming("candle", "derive", ("candle", "stock.symbol", "price", "size", WINDOW))
    found = [candle_event(one, by_window) for one in definition.candles(said, WINDOW, delay)]
    by_type = Naming("rate", "derive", ("rate", "type", WINDOW))
    found += [rate_event(one, by_type) for one in definition.rates(counted, WINDOW, delay)]
    for trigger in TRIGGERS:
        naming = Naming(trigger.name, "derive", (trigger.name, "stock.symbol", "price", trigger.said()))
        found += [firing_event(trigger, one, naming) for one in definition.firings(trigger, said, delay)]
    return sorted(found, key=_name)


def derived(events: DataFrame, **how: Any) -> list[DataFrame]:
    """What is found by windows, and by triggers."""
    window, delay = f"{WINDOW}ms", f"{DELAY}ms"
    of_prices = {"key": "stock.symbol", "value": "price", "watermark": delay, **how}
    by_window = candles(events, window=window, volume="size", **of_prices)
    return [
        by_window.union(rates(events, window=window, watermark=delay, **how)),
        triggers(events, TRIGGERS, **of_prices),
    ]


def _name(event: Event) -> tuple[str, str]:
    return event.source, event.id


def found_in(*frames: DataFrame) -> list[Event]:
    return sorted([event for frame in frames for event in events_of(frame.toArrow())], key=_name)


def table(spark: SparkSession, events: list[Event]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_batches([batch_of(events)]))


def test_of_a_table_it_is_what_is_defined(spark: SparkSession) -> None:
    events = quotes()
    rows = table(spark, [*events, *odd()])
    frames = derived(rows)
    assert [frame.columns for frame in frames] == [EVENTS.names] * 2
    wanted = defined([*events, *odd()])
    assert {event.type for event in wanted} == {"candle", "rate", "above", "rise", "fall"}
    assert found_in(*frames) == wanted
    assert found_in(*derived(rows, early=True)) == defined([*events, *odd()], None) != wanted


def test_of_a_stream_it_is_the_same_in_several_batches(spark: SparkSession, tmp_path: Path) -> None:
    events = quotes()
    (tmp_path / "in").mkdir()
    for at in range(0, len(events), 80):
        file = tmp_path / "in" / f"{at:03}.parquet"
        pq.write_table(pa.Table.from_batches([batch_of(events[at : at + 80])]), file)
        os.utime(file, (at, at))
    reader = spark.readStream.schema(spark_schema(EVENTS)).option("maxFilesPerTrigger", 1)
    stream = reader.parquet(str(tmp_path / "in"))
    queries = [
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / f"checkpoint{number}"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out" / str(number)))
        for number, frame in enumerate(derived(stream))
    ]
    for query in queries:
        assert query.awaitTermination(240)
        batches = query.recentProgress
        assert len([batch for batch in batches if batch.numInputRows]) == 3
        assert not sum(state.numRowsDroppedByWatermark for batch in batches for state in batch.stateOperators)
    out = [spark.read.parquet(str(tmp_path / "out" / str(number))) for number in range(2)]
    assert found_in(*out) == defined(events)
    with pytest.raises(WrongValue, match="watermark"):
        candles(stream, "symbol", "price", early=True)


class Kept:
    """A session that is not stopped by who is done with it: it is that of all tests."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None: ...


@pytest.fixture
def command(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("vestnik.cli.running.start_session", lambda *_: Kept(spark))

    def run(*words: str | Path) -> Result:
        return CliRunner().invoke(main, ["pipeline", "derive", *map(str, words)])

    return run


OF_PRICES = ("--key", "stock.symbol", "--value", "price", "--watermark", f"{LATENESS}s")


def published(url: str, filter: str) -> list[Event]:
    with open_journal(url) as journal:
        found = [taken.event.replace(stream=None, seq=None) for taken in journal.read(filter=filter)]
    return sorted(found, key=_name)


def test_candles_of_a_lake_are_published_once(command: Any, tmp_path: Path) -> None:
    events = quotes(120)
    write(tmp_path / "b", "b", [*events, *(event.stamped("b", 500 + n) for n, event in enumerate(odd()))])
    take_in(tmp_path / "lake", [tmp_path / "b"])
    wanted = [event for event in defined(events) if event.type == "candle"]
    given = ("candles", *OF_PRICES, "--volume", "size", "--window", f"{WINDOW}ms", "--from", tmp_path / "lake")
    with running(tmp_path / "to") as url:
        done = command(*given, "--to", url)
        assert done.exit_code == 0, done.output
        assert done.stdout == f"{len(wanted)} candles from 120 readings\n"
        assert done.stderr == "vestnik: events were passed over: 2 without a key, 2 without a number\n"
        again = command(*given, "--to", url)
        assert again.stdout == f"{len(wanted)} candles from 120 readings, {len(wanted)} of them published before\n"
        assert published(url, "type = 'candle'") == wanted
        picked = command(*given, "--to", url, "--filter", "type = 'quote'")
        assert picked.stdout == f"{len(wanted)} candles from 120 readings\n", "of some events, so these are others"
        assert not picked.stderr
    assert len(wanted) > 5


def test_a_checkpoint_goes_on_and_what_is_late_is_counted(command: Any, spark: SparkSession, tmp_path: Path) -> None:
    events = quotes(150)
    write(tmp_path / "b", "b", events[:100])
    to_files = ("--from", tmp_path / "b", "--out", tmp_path / "out", "--checkpoint", tmp_path / "checkpoint")
    given = ("triggers", *OF_PRICES, "--above", "10", *to_files)
    done = command(*given)
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith("from 100 readings\n") and not done.stderr
    late = Event("quote", {"stock": {"symbol": "A"}, "price": 1}, source="s", id="late", time=NOON - 60 * SECOND)
    write(tmp_path / "b", "b", [late.stamped("b", 900), *events[100:]])
    again = command(*given)
    assert again.stdout.endswith("from 51 readings\n")
    assert again.stderr == "vestnik: 1 rows came later than the watermark allows, and were dropped\n"
    wanted = [event for event in defined(events) if event.type == "above"]
    assert found_in(spark.read.parquet(str(tmp_path / "out"))) == wanted
    other = command(*given[:-4], "--out", tmp_path / "out", "--checkpoint", tmp_path / "checkpoint", "--filter", "TRUE")
    assert other.exit_code == 2 and 'another run: filter was null and is "TRUE"' in other.stderr


def test_the_example_matches_derives_and_publishes_back(tmp_path: Path) -> None:
    script = Path(__file__).parent.parent.parent / "examples" / "spark_stream.py"
    with running(tmp_path / "b") as url:
        done = subprocess.run([sys.executable, str(script), url], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "ACME opened at 100.0, was 101.0 at most and 99.0 at least, and closed at 99.0",
        "ACME rose from 99.0 to 107.0",
        "INIT opened at 31.0, was 31.0 at most and 30.0 at least, and closed at 30.0",
        "ann would receive ACME-3",
        "ann would receive ACME-4",
        "bob would receive INIT-3",
    ]


TO = ("--to", "vestnik://127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("candles", "--value", "price", "--key", "a b", "--out", "o"), "--key: a path leads to a value"),
        (("candles", "--value", "price", "--key", "a", "--window", "1x", "--out", "o"), "--window: a duration is"),
        (("rates", "--watermark", "soon", "--out", "o"), "--watermark: a duration is"),
        (("rates",), "--to URL, or --out DIR"),
        (("rates", "--out", "o", *TO), "--to URL, or --out DIR"),
        (("rates", "--to", "folder"), "published at a broker"),
        (("rates", "--out", "o", "--follow"), "needs --checkpoint"),
        (("rates", "--out", "o", "--checkpoint", "c", "--early"), "--early is for --out"),
        (("rates", "--out", "o", "--filter", "price >"), "the filter is wrong"),
        (("rates", "--out", "o", "--from", "nothing"), "nothing is neither a lake, nor the data folder"),
        (("rates", "--out", "b"), "b is there already"),
        (("triggers", "--key", "a", "--value", "b", "--out", "o"), "--above, --below, --rise or --fall"),
        (("triggers", "--key", "a", "--value", "b", "--out", "o", "--rise", "5"), "--within 10m"),
        (("triggers", "--key", "a", "--value", "b", "--out", "o", "--above", "5", "--within", "1m"), "--within goes"),
        (("triggers", "--key", "a", "--value", "b", "--out", "o", "--fall", "500", "--within", "1m"), "at most 100"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_spark_starts(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vestnik.cli.running.start_session", partial(pytest.fail, "Spark was started"))
    write(tmp_path / "b", "b", [])
    done = CliRunner().invoke(main, ["pipeline", "derive", *words, "--from", "b"])
    assert done.exit_code == 2, done.output
    assert said in done.stderr
