"""What `vestnik sim` prints and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.explore_mistakes import tell_entries_after_fetches
from vestnik.cli import main
from vestnik.cli.sim import soak as soak_command
from vestnik.sim.soak import Claim
from vestnik.trace.files import from_lines
from vestnik.verify.violations import Violation

SCENARIO = """
duration = 5
[topology]
kind = "star"
brokers = 4
[routing]
strategy = "merging"
advertisements = true
[workload]
kind = "stock"
stocks = 4
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["sim", *arguments])


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("words", [[], ["run"], ["soak"], ["explore"]])
def test_every_command_has_help(words: list[str]) -> None:
    result = run(*words, "--help")
    assert result.exit_code == 0 and (not words or "Exit codes: 0 " in result.stdout)


def test_a_run_prints_a_summary(scenario: str) -> None:
    result = run("run", scenario)
    assert result.exit_code == 0 and result.stderr == ""
    rows = [line.split()[0] for line in result.stdout.splitlines()]
    assert rows[:4] == ["simulated", "published", "notified", "messages"]
    assert rows[-2:] == ["subscription", "advertisement"]


def test_the_summary_agrees_with_the_trace(scenario: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    result = run("run", scenario, "--json", "--messages", "--trace", str(trace))
    summary = json.loads(result.stdout)
    with trace.open("rb") as file:
        kinds = [type(record).__name__ for record in from_lines(file)]
    assert kinds.count("Published") == summary["published"] > 0
    assert kinds.count("Notified") == summary["notified"] > 0
    assert kinds.count("Sent") == sum(summary["messages"].values())


def test_a_run_twice_gives_the_same_bytes(scenario: str, tmp_path: Path) -> None:
    names = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for name in names:
        run("run", scenario, "--trace", str(name))
    assert names[0].read_bytes() == names[1].read_bytes()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (SCENARIO.replace("merging", "hovering"), "no routing strategy called 'hovering'"),
        (SCENARIO.replace("brokers", "borkers"), "topology: Object contains unknown field `borkers`"),
        ("\udc80", "no text in UTF-8"),
    ],
)
def test_a_wrong_scenario_is_refused(content: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    result = run("run", str(path))
    assert result.exit_code == 2 and reason in result.stderr and result.stdout == ""


def test_a_trace_that_cannot_be_written_is_named(scenario: str, tmp_path: Path) -> None:
    path = tmp_path / "away" / "trace.jsonl"
    result = run("run", scenario, "--trace", str(path))
    assert result.exit_code == 2 and result.stderr == f"vestnik: {path}: No such file or directory\n"


def test_soaking_prints_totals() -> None:
    result = run("soak", "--seeds", "3")
    assert result.exit_code == 0
    assert result.stdout.split()[:4] == ["scenarios", "3", "failures", "0"]


def test_soaking_ends_when_the_time_is_up() -> None:
    result = run("soak", "--seeds", "1000000", "--minutes", "0.001")
    assert result.exit_code == 0 and int(result.stdout.split()[1].replace(",", "")) < 1_000


def test_a_failure_is_shown_with_its_seed_and_its_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(claim: Claim) -> list[Violation]:
        return [Violation("liveness", "nobody was told", records=tuple(claim.records[:2]))]

    monkeypatch.setattr(soak_command, "check", found)
    result = run("soak", "--seeds", "1", "--first", "17")
    assert result.exit_code == 1
    assert "seed 17: " in result.stdout and "  liveness: nobody was told\n    " in result.stdout


def test_an_exploration_prints_how_large_it_was() -> None:
    result = run("explore", "--operations", "1", "--faults", "0")
    assert result.exit_code == 0 and result.stderr == ""
    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        "states", "quiescent", "moves", "states", "moves", "complete"
    ]  # fmt: skip


def test_an_exploration_as_json() -> None:
    found = json.loads(run("explore", "--operations", "1", "--only", "publish", "--json").stdout)
    assert found["is_complete"] and found["wrong"] == "" and found["path"] == []
    assert found["moves"] > found["states"] >= found["quiescent"] == 3  # nothing, or one of two clients has published


def test_an_exploration_shows_the_way_to_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    tell_entries_after_fetches(monkeypatch)
    result = run("explore", "--operations", "2", "--subscriptions", "1", "--only", "subscribe,publish")
    assert result.exit_code == 1
    wrong = result.stdout.partition("wrong: ")[2].splitlines()
    assert "is lost" in wrong[0] and wrong[1].startswith("  1. ")


def test_an_exploration_of_unknown_operations_is_refused() -> None:
    result = run("explore", "--only", "publish,explode")
    assert result.exit_code == 2 and "explode" in result.stderr and "subscribe" in result.stderr
