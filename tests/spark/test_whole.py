"""The whole pipeline in one go: what comes of a plan, and plans that are none."""

from __future__ import annotations

import asyncio
import json
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from network.worlds import broker, client
from spark.test_match import Kept
from vestnik import Event, Filter
from vestnik.cli import main
from vestnik.lake.rows import batch_of
from vestnik.spark.whole import Stage, Whole, render
from vestnik.spark.whole.views import over_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAN = """
from = ["b1", "b2"]
lake = "lake"
out = "out"

[match]
subscriptions = "s.jsonl"

[[derive]]
what = "candles"
key = "symbol"
value = "price"
window = "5s"

[[derive]]
what = "triggers"
key = "symbol"
value = "price"
rise = [50]
within = "10s"

[verify]
traces = ["b1.jsonl", "b2.jsonl"]
"""
SUBSCRIPTIONS = {"dear": "price > 20", "a": "symbol = 'a'", "nobody": "symbol = 'z'"}
QUOTES = [
    Event("quote", {"symbol": "ab"[n % 2], "price": n}, source="feed", id=str(n), time=1_000_000 * n)
    for n in range(1, 31)
]


async def _record(folder: Path) -> None:
    async with (
        broker("b1", data=folder / "b1", trace=folder / "b1.jsonl") as b1,
        broker("b2", (b1,), data=folder / "b2", trace=folder / "b2.jsonl") as b2,
        client(b1) as publisher,
        client(b2) as desk,
    ):
        wanted = await desk.subscribe("price > 20", settled=True)
        await publisher.publish_many(QUOTES)
        for _ in range(10):
            await wanted.get(10)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    asyncio.run(_record(folder))
    lines = [json.dumps({"id": id, "filter": text}) + "\n" for id, text in SUBSCRIPTIONS.items()]
    (folder / "s.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture
def run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("vestnik.cli.running.start_session", lambda *_: Kept(spark))

    def run(plan: Path, *options: str) -> Result:
        return CliRunner().invoke(main, ["pipeline", "run", str(plan), *options])

    return run


class Page(HTMLParser):
    """The ids of a page, and how many pictures it has; no tag is left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.pictures = 0
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.pictures += tag == "img"
        if tag not in ("meta", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def test_all_stages_and_the_report(recorded: Path, run: Any) -> None:
    (recorded / "plan.toml").write_text(PLAN)
    done = run(recorded / "plan.toml", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    stages = {stage["stage"]: (stage["read"], stage["made"], stage["left_out"]) for stage in found["stages"]}
    pairs = {(e.id, id) for e in QUOTES for id, text in SUBSCRIPTIONS.items() if Filter.parse(text).matches(e)}
    assert stages["ingest"] == (30, 30, 0)
    assert stages["match"] == (30, len(pairs), 0)
    assert stages["candles-1"] == (30, len({(n % 2, n // 5) for n in range(1, 31)}), 0)
    assert stages["triggers-2"][0] == 30 and stages["triggers-2"][1] > 0
    assert stages["verify"][1:] == (0, 0)
    rows = pq.read_table(recorded / "out" / "match").to_pylist()
    assert {(row["event_id"], row["subscription_id"]) for row in rows} == pairs
    assert [(row["subscription"], row["events"]) for row in found["subscriptions"]] == [("a", 15), ("dear", 10)]
    assert found["unwanted"] == 1 and {row["key"] for row in found["candles"]} == {"a", "b"}
    assert found["latency"][0]["deliveries"] == 10
    page = Page((recorded / "out" / "report.html").read_text())
    assert page.ids == ["stages", "events", "subscriptions", "derived", "delivery"]
    assert page.pictures == 5, "events, subscriptions, candles of two keys, latency"


def test_again_it_replaces_what_it_made_and_tells_what_is_wrong(recorded: Path, run: Any, tmp_path: Path) -> None:
    lost = [line for line in (recorded / "b1.jsonl").read_text().splitlines() if '"Published"' not in line]
    (tmp_path / "b1.jsonl").write_text("\n".join(lost) + "\n")
    (tmp_path / "s.jsonl").write_text('{"id": "bad", "filter": "price >"}\n{"id": "a", "filter": "symbol = \'a\'"}\n')
    plan = f"""
from = ["{recorded}/b1"]
lake = "lake"
out = "out"
match.subscriptions = "s.jsonl"
verify.traces = ["b1.jsonl", "{recorded}/b2.jsonl"]
"""
    (tmp_path / "plan.toml").write_text(plan)
    for _ in range(2):
        done = run(tmp_path / "plan.toml")
        assert done.exit_code == 1 and "s.jsonl:1: bad: column 8: expected a value" in done.stderr
    assert "ingest                 0 read             0 new events" in done.stdout
    assert "10 violations" in (tmp_path / "out" / "report.html").read_text()
    assert not list(tmp_path.glob(".out*"))
    (bad,) = pq.read_table(tmp_path / "out" / "match" / "_quarantine").to_pylist()
    assert (bad["kind"], bad["place"], bad["payload"]) == ("subscription", f"{tmp_path}/s.jsonl:1", b"price >")


def test_where_no_events_come_there_are_none(spark: SparkSession) -> None:
    times = {"often": [0, 1, 2, 60, 61], "once": [30]}
    events = [Event(type, {}, time=second * 10**6) for type, seconds in times.items() for second in seconds]
    found = over_time(spark.createDataFrame(pa.Table.from_batches([batch_of(events)])))
    assert len(found) == 2 * len({row["at"] for row in found}) and found == sorted(found, key=lambda row: row["at"])
    for type, seconds in times.items():
        counts = {row["at"]: row["events"] for row in found if row["type"] == type}
        assert sum(counts.values()) == len(seconds) and 0 in counts.values() and max(counts) <= 61


@pytest.mark.parametrize("name", ["$x_$y^", "$\\frac$", "_hidden", "\u4e2d\U0001f600", "n" * 500, "two\nlines", " "])
def test_a_page_shows_any_name_as_it_is(name: str) -> None:
    whole = Whole(
        stages=[Stage(one, 1, 1, "of", 0, 1.0) for one in ("match", "verify")],
        types=[{"type": name, "events": 3}],
        over_time=[{"type": name, "at": 1.8e9, "seconds": 60.0, "events": 3}],
        subscriptions=[{"subscription": name, "events": 3}, {"subscription": f"{name}2", "events": 1}],
        latency=[{"scope": "broker", "name": name, "p50": 0.01, "p90": 0.1, "p99": 0.1, "max": 0.1}],
    )
    text = render(whole, name)
    assert Page(text).pictures == 3 and escape(name) in text


@pytest.mark.parametrize("seconds", [(0.0, 0.0), (0.0, 0.1), (-1.0, -0.5), (-1.0, 0.1)])
def test_a_page_shows_any_latency(seconds: tuple[float, float]) -> None:
    low, high = seconds
    row = {"scope": "all", "name": "", "p50": low, "p90": high, "p99": high, "max": high}
    assert Page(render(Whole(stages=[Stage("verify", 1, 0, "of", 0, 1.0)], latency=[row]), "t")).pictures == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("lake = ", "lakes = "), "unknown field `lakes`; did you mean lake"),
        (('["b1", "b2"]', "[]"), "from names no data folder"),
        (('"b2"]', '"s.jsonl"]'), "s.jsonl is no folder"),
        (('window = "5s"', 'window = "5 parsecs"'), "a duration is such as 1m"),
        (('key = "symbol"', 'key = "sym bol"'), "sym bol"),
        (("rise = [50]", ""), "triggers need one at least of above, below, rise and fall"),
        (('what = "candles"', 'what = "kandles"'), "kandles"),
        (('"s.jsonl"', '"t.jsonl"'), "there is no file"),
        (('out = "out"', 'out = "lake/out"'), "lake and out are folders apart"),
        (('out = "out"', 'out = "b1"'), "b1 is there already, and was not made by this command"),
        (('["b1.jsonl", "b2.jsonl"]', '["b1.jsonl", "b1.jsonl"]'), "b1.jsonl is given twice; give it once"),
        (("[verify]", "[verify"), "at the end of a table declaration"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_a_plan_that_is_none_is_refused_before_spark_starts(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], reason: str
) -> None:
    monkeypatch.setattr("vestnik.cli.running.start_session", None)
    plan = recorded / "wrong.toml"
    plan.write_text(PLAN.replace(*change, 1))
    done = CliRunner().invoke(main, ["pipeline", "run", str(plan)])
    assert done.exit_code == 2 and reason in done.stderr, done.output
    assert CliRunner().invoke(main, ["pipeline", "run", str(recorded / "none.toml")]).exit_code == 2
