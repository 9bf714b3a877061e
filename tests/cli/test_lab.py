"""`vestnik lab list`, `run` and `report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vestnik.cli import main
from vestnik.lab import compare


def vestnik(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["lab", *arguments])


def test_the_experiments_are_listed() -> None:
    names = [line.split()[0] for line in vestnik("list").stdout.splitlines()]
    assert names[:2] == ["routing", "compare"]


def test_one_strategy_is_measured_as_json() -> None:
    options = (
        "--strategy covering --advertisements --form interval --subscriptions 20,50 --seeds 2 --operations 3 --json"
    )
    done = vestnik("run", "routing", *options.split())
    assert (done.exit_code, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["subscriptions"], row["seed"]) for row in rows] == [(20, 1), (50, 1), (20, 2), (50, 2)]
    for row in rows:
        assert (row["strategy"], row["advertisements"], row["form"]) == ("covering", True, "interval")
        assert row["admin_subscribe"] == row["admin_unsubscribe"] <= 4
        assert row["entries"] <= 4 * row["subscriptions"]
        assert row["exact_entries"] == pytest.approx(row["entries"], rel=0.3)
        assert row["exact_admin"] == pytest.approx(3.73, rel=0.01)
        assert (row["local_entries"], row["advertisement_entries"]) == (row["subscriptions"], 106)
    assert vestnik("run", "routing", *options.split()).stdout == done.stdout


def test_one_strategy_is_measured_as_a_table() -> None:
    done = vestnik("run", "routing", *"--strategy simple --subscriptions 10,30 --seeds 2".split())
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["subscriptions", "entries", "exact", "admin_subscribe", "admin_unsubscribe", "exact"],
        ["10", "1,060", "1,060", "106", "106", "106"],
        ["30", "3,180", "3,180", "106", "106", "106"],
    ]


def test_one_strategy_goes_on_from_what_is_in_the_folder(tmp_path: Path) -> None:
    options = ["--strategy", "identity", "--seeds", "2", "--out", str(tmp_path)]
    small = vestnik("run", "routing", *options, "--subscriptions", "10").stdout.splitlines()
    both = vestnik("run", "routing", *options, "--subscriptions", "10,30").stdout.splitlines()
    assert both[:2] == small
    rows = [json.loads(line) for line in (tmp_path / "routing.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["subscriptions"] for row in rows] == [10, 10, 30, 30]


def test_a_whole_experiment_and_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "REDUCED", compare.Size(6, 3, 1, 10, 2))
    folder = tmp_path / "new" / "folder"
    done = vestnik("run", "compare", "--jobs", "1", "--out", str(folder))
    assert done.exit_code == 0
    assert done.stdout.count("Verdict: ") == 6
    there = {str(path) for path in folder.iterdir()}
    assert {line.split()[1] for line in done.stderr.splitlines()} == there - {str(folder / "done.jsonl")}
    rows = vestnik("run", "compare", "--jobs", "1", "--json").stdout.splitlines()
    assert {json.loads(row)["table"] for row in rows} == {"compare"}
    report = vestnik("report", "--out", str(folder))
    assert (report.exit_code, report.stdout) == (0, f"{folder / 'report.html'}\n")
    assert "every strategy delivers the same" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("run routng", "no experiment called 'routng'; there are routing"),
        ("run routing --strategy coverin", "no routing strategy called 'coverin'; known are flooding"),
        ("run routing --strategy covering --form range", "no form 'range'; forms are equality and interval"),
        ("run routing --strategy covering --subscriptions 15", "15 is no multiple of 10"),
        ("run routing --strategy covering --subscriptions 0", "0 is no multiple of 10"),
        ("run routing --strategy covering --subscriptions 20,10", "the smallest first"),
        ("run routing --strategy covering --subscriptions ten", "not 'ten'"),
        ("run routing --strategy covering --seeds 0", "0 is not in the range"),
        ("run routing --strategy covering --operations 0", "0 is not in the range"),
        ("run routing --strategy covering --zipf nan", "finite numbers"),
        ("run routing --strategy covering --locality 2", "locality from 0 to 1"),
        ("run routing --strategy covering --tolerance 0.5", "a tolerance is for merging"),
        ("run routing --strategy merging --tolerance 2", "from 0 to 1, not 2.0"),
        ("run routing --strategy merging --producers -1", "there cannot be -1 producers"),
        ("run routing --strategy merging --full", "leave out --strategy"),
        ("run routing --form interval", "--form needs --strategy"),
        ("run compare --strategy covering", "--strategy is for the experiment routing, not for compare"),
        ("report --out nowhere", "there are no results in nowhere"),
    ],
)
def test_what_is_wrong_is_refused_with_the_reason(arguments: str, reason: str) -> None:
    done = vestnik(*arguments.split())
    assert done.exit_code == 2
    assert done.stdout == ""
    assert reason in done.stderr
