"""`vestnik check` refuses traces of which one is missing or there twice, and only these."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vestnik import Event, Filter
from vestnik.cli import main
from vestnik.trace.files import Begin, End, to_line, to_lines
from vestnik.trace.records import AnyRecord, Attached, Linked, Notified, Published, Quiet, Restarted, Subscribed

NAMES = "b1", "b2", "b3"


def event(broker: str) -> Event:
    return Event("t", {"x": 5}, source="p", id=f"of-{broker}", stream=(broker, "p"), seq=1)


def begun(broker: str, *neighbours: str, at: float = 0.0) -> list[AnyRecord]:
    return [Restarted(at, broker, f"{broker}/1"), *[Linked(at, broker, other) for other in neighbours]]


def notified(of: str, *, replayed: bool = False) -> list[AnyRecord]:
    client: list[AnyRecord] = [Attached(1.0, "c", "b1"), Subscribed(1.0, "c", "s", Filter.all())]
    return [*client, Notified(3.0, "c", event(of), (("s", 1),), replayed=replayed)]


def published(broker: str) -> list[AnyRecord]:
    return [Attached(1.5, "p", broker), Published(2.0, "p", event(broker))]


def written(path: Path, broker: str, records: list[AnyRecord]) -> str:
    path.write_bytes(b"".join([to_line(Begin(broker)), *map(to_line, records), to_line(End())]))
    return str(path)


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments])


@pytest.fixture
def line(tmp_path: Path) -> dict[str, str]:
    """The traces of b1 - b2 - b3: a client at b1 is notified of an event that b2 accepted."""
    records = {
        "b1": [*begun("b1", "b2"), *notified("b2")],
        "b2": [*begun("b2", "b1", "b3"), *published("b2")],
        "b3": begun("b3", "b2"),
    }
    return {name: written(tmp_path / f"{name}.jsonl", name, records[name]) for name in NAMES}


# --- missing ---


def test_a_missing_trace_is_named_instead_of_violations(line: dict[str, str]) -> None:
    assert check(*line.values()).exit_code == 0
    result = check(line["b1"], line["b3"])
    said = "the trace of b2 is missing: clients were notified of events that b2 accepted; give the trace of b2, too"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"vestnik: {said}\n")
    assert check(line["b1"], line["b3"], "--json").exit_code == 2


def test_several_missing_traces(tmp_path: Path) -> None:
    """The log of b3, which is no neighbour, is known from what b1 has read."""
    quiet = Quiet(4.0, "b1", 3.5, (("b1/1", 1), ("b2/1", 2), ("b3/1", 2)))
    more = Notified(3.1, "c", event("b3"), (("s", 2),))
    trace = written(tmp_path / "b1.jsonl", "b1", [*begun("b1", "b2"), *notified("b2"), more, quiet])
    assert "the traces of b2 and b3 are missing: " in check(trace).stderr


def test_a_missing_trace_of_a_broker_that_accepted_nothing_is_not_asked_for(line: dict[str, str]) -> None:
    assert check(line["b1"], line["b2"]).exit_code == 0


def test_a_broker_with_an_empty_trace_is_not_missing(line: dict[str, str], tmp_path: Path) -> None:
    """An event that it did not accept is a violation."""
    empty = written(tmp_path / "b2.jsonl", "b2", [])
    result = check(line["b1"], empty, line["b3"])
    assert result.exit_code == 1 and result.stdout.startswith("published: c was notified of p/of-b2, which nobody had")


@pytest.mark.parametrize("replayed", [False, True])
def test_an_event_of_a_broker_that_no_trace_mentions_is_a_violation(tmp_path: Path, *, replayed: bool) -> None:
    """So is one of a former broker, which a history without a trace replays."""
    records = [*begun("b1", "history"), *notified("b9", replayed=replayed)]
    assert check(written(tmp_path / "b1.jsonl", "b1", records)).exit_code == 1


def test_the_answer_of_a_client_is_of_no_log(tmp_path: Path) -> None:
    answer = Notified(3.0, "c", Event("t", {}, source="p", id="a"), (("s", 1),), replayed=True, answered=True)
    assert check(written(tmp_path / "b1.jsonl", "b1", [*begun("b1", "b2"), *notified("b2")[:2], answer])).exit_code == 0


def test_a_trace_of_a_whole_network_lacks_no_broker(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(to_lines([*begun("b1", "b2"), *notified("b2")])))
    assert check(str(path)).exit_code == 1


# --- twice ---


def test_a_file_that_is_given_twice_is_refused(
    line: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = check(*line.values(), line["b1"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"vestnik: {line['b1']} is given twice; give it once\n"
    monkeypatch.chdir(tmp_path)
    result = check(*line.values(), "b1.jsonl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"vestnik: {line['b1']} and b1.jsonl are the same file; give only one of them\n"
    assert check("-", "-").stderr == "vestnik: standard input is given twice; give it once\n"


def test_a_copy_of_a_trace_is_refused(line: dict[str, str], tmp_path: Path) -> None:
    """Also one that was made while the broker was running."""
    lines = Path(line["b2"]).read_bytes().splitlines(keepends=True)
    for count in (len(lines), 3):
        copy = tmp_path / "copy.jsonl"
        copy.write_bytes(b"".join(lines[:count]))
        result = check(*line.values(), str(copy))
        assert (result.exit_code, result.stdout) == (2, "")
        said = f"{line['b2']} and {copy} hold the same trace of b2; give only one of them"
        assert result.stderr == f"vestnik: {said}\n"


def test_a_file_that_holds_a_trace_twice_is_refused(line: dict[str, str], tmp_path: Path) -> None:
    double = tmp_path / "double.jsonl"
    double.write_bytes(Path(line["b1"]).read_bytes() * 2)
    result = check(str(double), line["b2"])
    assert result.exit_code == 2 and result.stderr.startswith(f"vestnik: {double} holds the same trace of b1 twice; ")


def test_two_lives_of_a_broker_are_not_the_same_trace(tmp_path: Path) -> None:
    files = [written(tmp_path / f"{at:g}.jsonl", "b1", begun("b1", at=at)) for at in (0.0, 5.0)]
    assert check(*files).exit_code == 0
