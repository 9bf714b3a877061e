"""`vestnik pipeline verify` says what `vestnik check` says, and more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from vestnik import Event, Filter
from vestnik.cli import main
from vestnik.errors import InvalidTrace
from vestnik.spark.traces import read_traces
from vestnik.spark.verify import violations
from vestnik.trace.files import Begin, End, to_line, to_lines
from vestnik.trace.records import (
    AnyRecord,
    Attached,
    Cut,
    Linked,
    Notified,
    Published,
    Restarted,
    Sent,
    Settled,
    Subscribed,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = ("p", "e1")
EVENT = Event("t", {"x": 5}, source="p", id="e1", stream=("b1", "p"), seq=1)
OTHER = EVENT.replace(id="e2", data={"x": 0}, seq=2)
AT_1: list[AnyRecord] = [
    Attached(0.0, "p", "b1"),
    Published(2.0, "p", EVENT),
    Sent(2.1, "b1", "b2", "Forward", (KEY,)),
    Published(2.2, "p", OTHER),
    Sent(2.3, "b1", "b2", "Forward", (("p", "e2"),)),
]
AT_2: list[AnyRecord] = [Attached(0.0, "c", "b2"), Subscribed(0.5, "c", "s", Filter.parse("x > 1"))]
HANDED = Notified(2.75, "c", EVENT, (("s", 1),))


class Kept:
    """A session that is not stopped: the others want it, too."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        pass


@pytest.fixture(autouse=True)
def kept(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.cli.running.start_session", lambda *_: Kept(spark))


def written(path: Path, lines: list[bytes]) -> str:
    path.write_bytes(b"".join(lines))
    return str(path)


def life(node: str, records: list[AnyRecord], *ends: bytes) -> list[bytes]:
    return [to_line(Begin(node)), *map(to_line, records), *ends]


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["pipeline", "verify", *arguments])


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments])


def test_a_run_of_two_brokers(tmp_path: Path) -> None:
    end, out = to_line(End()), tmp_path / "out"
    files = [
        written(tmp_path / "1.jsonl", life("b1", AT_1, end)),
        written(tmp_path / "2.jsonl", life("b2", [*AT_2, HANDED], end)),
    ]
    result, checked = verify(*files, "--settling", "0.6", "--out", str(out)), check(*files, "--settling", "0.6")
    assert (result.exit_code, result.stderr) == (0, checked.stderr) == (checked.exit_code, "")
    assert result.stdout == checked.stdout + (
        "\n"
        "latency                   deliveries       p50       p90       p99       max\n"
        "all                                1      0.75      0.75      0.75      0.75\n"
        "b2                                 1      0.75      0.75      0.75      0.75\n"
        "\n"
        "link                          copies   useless\n"
        "b1 -> b2                           2         1\n"
    )
    assert pq.read_table(out / "violations").num_rows == 0
    assert sorted(pq.read_table(out / "latency").column("scope").to_pylist()) == ["all", "broker", "client"]
    assert pq.read_table(out / "useless").to_pylist() == [
        {"run": "", "sender": "b1", "receiver": "b2", "copies": 2, "useless": 1}
    ]
    again = verify(*files, "--out", str(out))
    assert again.exit_code == 2 and "is there already" in again.stderr


def test_what_is_wrong_is_told_as_check_does(tmp_path: Path) -> None:
    away: list[AnyRecord] = [Linked(0.0, "b1", "b2"), Cut(20.0, "b1", "b2"), Linked(40.0, "b1", "b2")]
    first = life("b1", [*AT_1, Attached(4.0, "q", "b1")])
    cut = written(tmp_path / "1.jsonl", [*first, *life("b1", away)])
    missing = written(tmp_path / "2.jsonl", life("b2", [*AT_2, Settled(9.0)], to_line(End())))
    result, checked = verify(cut, missing, "--settling", "0.5"), check(cut, missing, "--settling", "0.5")
    assert "liveness: c was not notified of p/e1" in checked.stdout
    assert "b1 was killed, and went on" in checked.stderr and "has no end" in checked.stderr
    assert (result.exit_code, result.stderr) == (1, checked.stderr)
    assert result.stdout.startswith(checked.stdout)


@pytest.mark.parametrize("line", [b'{"op":"Settled"}\n', b'{"op":"Settled","at":3'], ids=["no record", "half a line"])
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, spark: SparkSession, line: bytes) -> None:
    right = written(tmp_path / "1.jsonl", list(to_lines(AT_1)))
    wrong = written(tmp_path / "2.jsonl", [*list(to_lines(AT_2))[:-1], line])
    result, checked = verify(right, wrong), check(right, wrong)
    assert "2.jsonl:4: " in result.stderr
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", checked.stderr)
    with pytest.raises(InvalidTrace, match=r"2\.jsonl:4: "):
        violations(read_traces(spark, {"one": [right], "other": [right, wrong]}))


def test_a_trace_that_is_missing_or_there_twice_is_refused_as_check_does(tmp_path: Path) -> None:
    one = written(tmp_path / "1.jsonl", life("b1", [Restarted(0.0, "b1", "b1/1"), *AT_1], to_line(End())))
    linked = [Restarted(0.0, "b2", "b2/1"), Linked(0.0, "b2", "b1"), *AT_2, HANDED]
    two = written(tmp_path / "2.jsonl", life("b2", linked, to_line(End())))
    copy = written(tmp_path / "copy.jsonl", life("b2", linked))
    for files in ([two], [one, two, copy], [one, two, two]):
        result, checked = verify(*files), check(*files)
        assert (result.exit_code, result.stdout, result.stderr) == (2, "", checked.stderr)
    assert verify(one, two).exit_code == check(one, two).exit_code == 0


def test_what_is_no_file(tmp_path: Path) -> None:
    assert verify("nowhere.jsonl").stderr == check("nowhere.jsonl").stderr
    assert verify("nowhere.jsonl").exit_code == verify("-").exit_code == 2
    empty = written(tmp_path / "e.jsonl", [])
    assert (verify(empty).exit_code, verify(empty).stderr) == (2, check(empty).stderr)
    bare = written(tmp_path / "b.jsonl", list(to_lines([])))
    assert (verify(bare).exit_code, verify(bare).stdout) == (0, check(bare).stdout)
