"""Matching in bulk gives what brokers give, by every plan, for tables and for streams."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings

from lake.lakes import quote, write
from laws.strategies import Case, cases, text_of
from spark.brokers import running
from vestnik import Event, Filter, FilterTooComplex, connect_sync
from vestnik.cli import main
from vestnik.cli.pipeline import inputs
from vestnik.errors import InvalidEvent, WrongValue
from vestnik.lake.rows import batch_of
from vestnik.lake.schema import EVENTS
from vestnik.lake.taking import take_in
from vestnik.matching import Matcher
from vestnik.spark.answers import Reader
from vestnik.spark.match import Subscriptions, chosen, compile_subscriptions, match, unreadable
from vestnik.spark.rounds import rounds_of
from vestnik.spark.shards import ShardFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PURE = [
    *(
        f"symbol = '{symbol}' AND price {bound}"
        for symbol in ("A", "B")
        for bound in ("> 10", "<= 1", "BETWEEN 1 AND 9")
    ),
    "symbol = 'A' AND price = 1",
    "symbol IN ('A', 'B', '1') AND price < 9007199254740993",
    "symbol = 1 AND price >= 9007199254740993",
    "symbol = TRUE AND price > -1e308",
    "symbol = NULL AND price IS NUMBER",
    "symbol = 'A' AND price = 1 AND price = 2",
]
ODD: list[Any] = [
    1, 1.0, True, False, None, "1", "A", 0, -0.0, 10, 10.5, 2**53, 2**53 + 1, float(2**53), 2**63 - 1, "", [1], {},
]  # fmt: skip


def table(spark: SparkSession, events: list[Event]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_batches([batch_of(events)]))


def subscriptions(spark: SparkSession, texts: Iterable[str]) -> DataFrame:
    rows = [(f"s{number}", text) for number, text in enumerate(texts)]
    return spark.createDataFrame(rows, "id string, filter string")


def expected(texts: Iterable[str], events: list[Event]) -> Counter[tuple[str, str, str]]:
    """What brokers find."""
    matcher: Matcher[str] = Matcher()
    for number, text in enumerate(texts):
        matcher.add(f"s{number}", Filter.parse(text))
    return Counter((event.source, event.id, id) for event in events for id in matcher.match(event))


def found(rows: DataFrame) -> Counter[tuple[str, str, str]]:
    return Counter((row.event_source, row.event_id, row.subscription_id) for row in rows.collect())


@pytest.fixture(scope="module")
def drawn() -> tuple[list[str], list[Event]]:
    """Filters of the whole language, and events; those of many examples together."""
    texts: list[str] = []
    events: list[Event] = []

    @settings(max_examples=40, database=None, derandomize=True, suppress_health_check=list(HealthCheck), deadline=None)
    @given(cases(trees=5, events=4))
    def draw(case: Case) -> None:
        for node in case.trees:
            try:
                Filter.parse(text := text_of(node, case.spelling))
                texts.append(text)
            except FilterTooComplex:
                pass
        events.extend(case.events)

    draw()
    return texts, [_apart(number, event) for number, event in enumerate(events)]


def _apart(number: int, event: Event) -> Event:
    """`event` with an id of its own, unless the id was drawn."""
    return Event.from_json(event.to_json().replace('"id":"i"', f'"id":"i{number}"'))


@pytest.fixture(scope="module")
def compiled(spark: SparkSession, drawn: tuple[list[str], list[Event]]) -> Subscriptions:
    return compile_subscriptions(subscriptions(spark, drawn[0]))


def test_pairs_are_those_of_brokers(
    spark: SparkSession, drawn: tuple[list[str], list[Event]], compiled: Subscriptions
) -> None:
    texts, events = drawn
    want = expected(texts, events)
    assert len(texts) > 100 and len(want) > 1_500
    assert compiled.rejected == [] and len(compiled) == len(texts)
    assert found(match(table(spark, events), compiled)) == want


def test_pairs_are_what_a_broker_delivered(spark: SparkSession, tmp_path: Path) -> None:
    texts = [
        *("n > 7", "symbol IN ('S1', 'S2') AND price < 3", "order.buyer LIKE '%nn'", "NOT EXISTS order.buyer"),
        *("n BETWEEN 3 AND 5 OR symbol = 'S0'", "ANY tags = 'é'", "ALL tags LIKE 'a%'", "note = 'a \"b\"\n'"),
        *("price = 1 AND type IS quote", "source != 's1'", "order IS MAP", "n = 9007199254740993"),
    ]
    more: list[dict[str, Any]] = [{"order": {"buyer": "ann"}}, {"tags": ["a", "é"]}, {"note": 'a "b"\n'}, {"order": 5}]
    events = [quote(n) for n in range(12)] + [Event("odd", data, source="s", id=f"o{n}") for n, data in enumerate(more)]
    events.append(Event("odd", {"n": 2**53 + 1, "tags": []}, source="s", id="large"))
    delivered: Counter[tuple[str, str, str]] = Counter()
    with running(tmp_path / "b") as url, connect_sync(url) as bus:
        wanted = [bus.subscribe(f"({text}) OR type = 'end'", settled=True) for text in texts]
        bus.publish_many([*(event.replace(stream=None, seq=None) for event in events), Event("end")])
        for number, one in enumerate(wanted):
            while (event := one.get(20).event).type != "end":
                delivered[event.source, event.id, f"s{number}"] += 1
        taken = spark.read.format("vestnik").load(url).where("type != 'end'")
        assert found(match(taken, subscriptions(spark, texts))) == delivered == expected(texts, events)
    assert len({id for _, _, id in delivered}) == len(texts), "each filter finds something"


def test_lists_and_counts_agree_with_pairs(
    spark: SparkSession, drawn: tuple[list[str], list[Event]], compiled: Subscriptions
) -> None:
    texts, events = drawn
    want = expected(texts, events)
    lists = match(table(spark, events), compiled, "lists").collect()
    counts = match(table(spark, events), compiled, "counts").collect()
    assert len(lists) == len(counts) == len(events)
    assert Counter((row[0], row[1], id) for row in lists for id in row.subscriptions) == want
    assert Counter((row[0], row[1], len(row.subscriptions)) for row in lists) == Counter(map(tuple, counts))


@pytest.mark.parametrize("result", ["pairs", "lists", "counts"])
def test_shards_and_rounds_equal_one(
    spark: SparkSession, drawn: tuple[list[str], list[Event]], compiled: Subscriptions, result: str
) -> None:
    texts, events = drawn
    events = [*events, events[0]]  # which is there twice
    several = compile_subscriptions(subscriptions(spark, texts), most=60)
    assert len(several.shards) > 2 and len(several) == len(compiled)
    assert chosen(several, streaming=False, room=1) == "rounds"
    answers = [
        match(table(spark, events), compiled, result),
        match(table(spark, events), several, result),
        match(table(spark, events), several, result, room=1),
    ]
    one, other, rounds = ([_plain(row) for row in answer.collect()] for answer in answers)
    assert Counter(one) == Counter(other) == Counter(rounds)
    assert answers[0].columns == answers[2].columns


def _plain(row: Any) -> tuple[Any, ...]:
    return tuple(tuple(sorted(cell)) if isinstance(cell, list) else cell for cell in row)


def test_a_round_holds_what_there_is_room_for() -> None:
    shards = [ShardFile(str(size), size, 1) for size in (3, 3, 5, 9, 1)]
    assert [[shard.bytes for shard in one] for one in rounds_of(shards, 6)] == [[3, 3], [5], [9], [1]]


def test_a_stream_gives_what_a_table_gives(
    spark: SparkSession, drawn: tuple[list[str], list[Event]], compiled: Subscriptions, tmp_path: Path
) -> None:
    texts, events = drawn
    for part in range(3):
        pq.write_table(pa.Table.from_batches([batch_of(events[part::3])]), tmp_path / f"{part}.parquet")
    stream = spark.readStream.schema(table(spark, events).schema).parquet(str(tmp_path))
    query = match(stream, compiled).writeStream.format("memory").queryName("matched").trigger(availableNow=True).start()
    query.awaitTermination()
    assert found(spark.table("matched")) == expected(texts, events)


def test_a_join_gives_the_pairs_of_the_matcher_whatever_the_values_are(spark: SparkSession) -> None:
    events = [
        Event("q", {"symbol": symbol, "price": price}, source="s", id=f"{a}-{b}")
        for a, symbol in enumerate(ODD)
        for b, price in enumerate(ODD)
    ]
    events += [Event("q", {}, source="s", id="none"), Event("q", {"price": 11}, source="s", id="some")]
    compiled = compile_subscriptions(subscriptions(spark, PURE))
    assert chosen(compiled, streaming=False) == "passes"
    want = expected(PURE, events)
    assert len(want) > 50
    for plan in ("join", "passes"):
        assert found(match(table(spark, events), compiled, plan=plan)) == want


@pytest.mark.parametrize("texts", [["a = 1 OR b = 2"], ["a LIKE '%x'"], ["a = 1", "b = 1"], ["ANY a = 1"], ["TRUE"]])
def test_what_is_no_intervals_at_the_same_paths_is_not_joined(spark: SparkSession, texts: list[str]) -> None:
    compiled = compile_subscriptions(subscriptions(spark, texts))
    with pytest.raises(WrongValue, match="for a join"):
        match(table(spark, []), compiled, plan="join")


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(spark: SparkSession) -> None:
    good = [Event("q", {"price": n}, source="s", id=f"g{n}") for n in range(30)]
    rows = batch_of(good).to_pylist()
    for n, data in enumerate(["{", "[]", '{"price": 9223372036854775808}', None, '{"price":\n 1}']):
        rows.insert(7 * n, {**rows[0], "id": f"b{n}", "data": data})
    rows.append({**rows[1], "id": None})
    schema = pa.schema([field.with_nullable(True) for field in EVENTS])
    events = spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))
    compiled = compile_subscriptions(subscriptions(spark, ["price >= 0", "price >=", "nonsense nonsense"]))
    assert [(one.id, one.filter) for one in compiled.rejected] == [("s1", "price >="), ("s2", "nonsense nonsense")]
    want = {*(f"g{n}" for n in range(30)), "b4"}
    for result in ("pairs", "lists", "counts"):
        assert {row.event_id for row in match(events, compiled, result).collect()} == want
    assert {row.event_id for row in match(events, compiled, plan="passes").collect()} == want
    bad = {row.event_id: row.reason for row in unreadable(events, compiled).collect()}
    assert bad.keys() == {"b0", "b1", "b2", "b3", None}
    assert "64 bits" in bad["b2"] and "null" in bad["b3"] and "object" in bad["b1"]


def test_no_subscriptions_and_no_events_are_no_matches(spark: SparkSession) -> None:
    none = compile_subscriptions(subscriptions(spark, []))
    some = [Event("q", {}, source="s", id="1")]
    assert len(none) == 0 and match(table(spark, some), none).collect() == []
    assert [tuple(row) for row in match(table(spark, some), none, "counts").collect()] == [("s", "1", 0)]
    assert match(table(spark, []), subscriptions(spark, ["TRUE"]), "lists").collect() == []


def test_wrong_arguments_are_refused(spark: SparkSession) -> None:
    events = table(spark, [])
    with pytest.raises(WrongValue, match="pairs, lists, counts"):
        match(events, subscriptions(spark, []), "triples")
    with pytest.raises(WrongValue, match="join, passes, rounds"):
        match(events, subscriptions(spark, []), plan="guess")
    with pytest.raises(WrongValue, match="a join gives pairs"):
        match(events, subscriptions(spark, ["a = 1"]), "counts", plan="join")
    with pytest.raises(WrongValue, match="without filter"):
        match(events, spark.createDataFrame([("a",)], "id string"))
    with pytest.raises(WrongValue, match="without id, data"):
        match(events.drop("id", "data"), subscriptions(spark, []))


# --- the command ---


class Kept:
    """A session that a command does not end."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        """It is the session of all tests."""


@pytest.fixture
def command(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setattr("vestnik.cli.running.start_session", lambda *_: Kept(spark))
    path = tmp_path / "s.jsonl"
    path.write_text('{"id": "cheap", "filter": "price < 10"}\n\n{"id": 7, "filter": "symbol LIKE \'%1\' OR n = 3"}\n')

    def run(events: Path | str, *options: str, out: str = "out") -> Result:
        given = ["--subscriptions", str(path), "--events", str(events), "--out", str(tmp_path / out), *options]
        return CliRunner().invoke(main, ["pipeline", "match", *given])

    return run


def wanted(events: Iterable[Event]) -> Counter[tuple[str, str, str]]:
    texts = {"cheap": Filter.parse("price < 10"), "7": Filter.parse("symbol LIKE '%1' OR n = 3")}
    return Counter((event.source, event.id, id) for event in events for id, f in texts.items() if f.matches(event))


def written(folder: Path) -> Counter[tuple[Any, ...]]:
    return Counter(_plain(row.values()) for row in pq.read_table(folder).to_pylist())


def unread(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "_quarantine").to_pylist()
    return rows


def test_a_lake_a_data_folder_and_json_lines_give_the_same(command: Any, tmp_path: Path) -> None:
    events = [quote(n, "b1") for n in range(60)]
    folder = write(tmp_path / "b1", "b1", events)
    take_in(tmp_path / "lake", [folder])
    (tmp_path / "e.jsonl").write_text("".join(event.to_json() + "\n" for event in events))
    for number, place in enumerate(["lake", "b1", "e.jsonl"]):
        result = command(tmp_path / place, out=f"out{number}")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout == f"{wanted(events).total()} pairs\n"
        assert written(tmp_path / f"out{number}") == wanted(events)
        assert pq.read_table(tmp_path / f"out{number}").schema.names == ["event_source", "event_id", "subscription_id"]
        assert unread(tmp_path / f"out{number}") == []


def test_counts_and_lists(command: Any, tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text("".join(quote(n).to_json() + "\n" for n in (1, 2, 50)))
    assert command(tmp_path / "e.jsonl", "--counts", out="counts").stdout == "3 events\n"
    assert written(tmp_path / "counts") == Counter([("s1", "1", 2), ("s2", "2", 1), ("s2", "50", 1)])
    assert command(tmp_path / "e.jsonl", "--lists", out="lists").exit_code == 0
    assert ("s1", "1", ("7", "cheap")) in written(tmp_path / "lists")


def test_what_a_command_cannot_read_is_named_and_in_the_quarantine(command: Any, tmp_path: Path) -> None:
    with (tmp_path / "s.jsonl").open("a") as file:
        file.write('{"id": "bad", "filter": "price <"}\n{"id": "7", "filter": "TRUE"}\n[]\n')
    (tmp_path / "e.jsonl").write_text(f'{quote(1).to_json()}\n{{"type": \n{quote(2).to_json()}\n')
    result = command(tmp_path / "e.jsonl")
    assert (result.exit_code, result.stdout) == (1, "3 pairs\n")
    places = [f"{tmp_path / 's.jsonl'}:{line}" for line in (5, 6, 4)]
    assert [row["place"] for row in unread(tmp_path / "out") if row["kind"] == "subscription"] == places
    assert [row["payload"] for row in unread(tmp_path / "out") if row["kind"] == "event"] == [b'{"type": ']
    for place in [*places, f"{tmp_path / 'e.jsonl'}:2"]:
        assert f"{place}: " in result.stderr
    assert "3 subscriptions could not be read" in result.stderr and "1 event could not be read" in result.stderr


def test_a_journal_is_read_by_tasks(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "POSITIONS", 7)
    took = [quote(n, "b1") for n in range(20)]
    assert command(write(tmp_path / "b1", "b1", [*took[:9], b"nonsense", *took[9:]])).exit_code == 1
    assert written(tmp_path / "out") == wanted(took) and len(unread(tmp_path / "out")) == 1
    assert command(write(tmp_path / "b2", "b2", []), "--counts", out="none").stdout == "0 events\n"


def test_a_damaged_record_and_a_damaged_row_are_named(command: Any, tmp_path: Path) -> None:
    folder = write(tmp_path / "b1", "b1", [quote(1, "b1"), b"nonsense", quote(2, "b1")])
    result = command(folder)
    assert result.exit_code == 1 and f"{folder}, position 2: " in result.stderr
    assert written(tmp_path / "out") == wanted([quote(1), quote(2)])
    rows = [*batch_of([quote(1), quote(2)]).to_pylist()]
    rows[0]["data"] = json.dumps([])
    (tmp_path / "rows").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=EVENTS), tmp_path / "rows" / "a.parquet")
    result = command(tmp_path / "rows", out="again")
    assert result.exit_code == 1 and "source s1, id 1: data: must be a JSON object" in result.stderr
    assert written(tmp_path / "again") == wanted([quote(2)])


def test_wrong_input_is_refused_before_spark_starts(command: Any, tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    cases = [
        (command(tmp_path / "e.jsonl", out="full"), "is there already"),
        (command(tmp_path / "nowhere"), "there is no such file"),
        (command(tmp_path / "full"), "neither a lake"),
        (command(tmp_path / "e.jsonl", "--counts", "--lists"), "not both"),
    ]
    for result, message in cases:
        assert result.exit_code == 2 and message in result.stderr, result.stderr


@pytest.mark.parametrize("texts", [['{"a":1}{"a":2}', ""], ['{"a":', "1}", '{"a":2} {"a":3}']], ids=repr)
def test_rows_that_make_up_for_one_another_are_not_taken_for_events(texts: list[str]) -> None:
    names = [str(number) for number in range(len(texts))]
    with pytest.raises(InvalidEvent):
        Reader([("data", "a")]).read(pa.record_batch({"source": names, "id": names, "data": texts}))
