"""`vestnik check`: how it ends, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec import structs

from vestnik import Event, Filter
from vestnik.cli import main
from vestnik.trace.files import from_plain, to_lines
from vestnik.trace.records import (
    Advertised,
    AnyRecord,
    Crashed,
    Cut,
    Linked,
    Notified,
    Published,
    Restarted,
    Settled,
    Subscribed,
)

EVENT = Event("t", {"x": 5}, source="p", id="e\x1b1")
BEGIN: list[AnyRecord] = [Subscribed(0.0, "c", "s", Filter.parse("x > 1")), Settled(1.0), Published(2.0, "p", EVENT)]
HANDED = Notified(3.0, "c", EVENT, (("s", 1),))
RIGHT = [*BEGIN, HANDED, Settled(4.0)]
WRONG = [*BEGIN, Settled(4.0)]


def check(folder: Path, records: list[AnyRecord], *options: str) -> Result:
    (folder / "t.jsonl").write_bytes(b"".join(to_lines(records)))
    return CliRunner().invoke(main, ["check", str(folder / "t.jsonl"), *options])


def test_a_right_trace(tmp_path: Path) -> None:
    result = check(tmp_path, RIGHT)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "nothing is wrong: 5 records, 1 published, 1 notified\n"
    assert (check(tmp_path, RIGHT, "--json").exit_code, check(tmp_path, RIGHT, "--json").stdout) == (0, "")


def test_a_violation_is_printed_with_its_counterexample(tmp_path: Path) -> None:
    result = check(tmp_path, WRONG)
    assert (result.exit_code, result.stderr) == (1, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "liveness: c was not notified of p/e\\x1b1 for s, which wants it"
    assert lines[1] == "  0 Subscribed client='c' name='s' filter=x > 1"
    assert lines[2].startswith("  2 Published client='p' event=Event('t', {'x': 5}") and "\x1b" not in result.stdout
    assert lines[3:] == ["  4 Settled", "1 violation: 4 records, 1 published, 0 notified"]


def test_a_violation_in_json(tmp_path: Path) -> None:
    result = check(tmp_path, WRONG, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["rule"], found["client"], found["subscription"]) == ("liveness", "c", "s")
    assert found["event"]["id"] == EVENT.id
    assert [from_plain(record) for record in found["records"]] == [WRONG[0], WRONG[2], WRONG[3]]


def test_of_each_rule_the_first_violations_are_printed(tmp_path: Path) -> None:
    more = [Published(2.5, "p", EVENT.replace(id=f"e{number}")) for number in range(1021)]
    records: list[AnyRecord] = [*BEGIN, HANDED, HANDED, *more, Settled(4.0)]
    lines = check(tmp_path, records).stdout.splitlines()
    assert sum(line.startswith("liveness: c was not") for line in lines) == 20
    assert sum(line.startswith("once: ") for line in lines) == 1
    assert lines[-2] == "liveness: and 1,001 more; --json prints all"
    assert lines[-1].startswith("1,023 violations: ")
    assert len(check(tmp_path, records, "--json").stdout.splitlines()) == 1023


def test_options(tmp_path: Path) -> None:
    assert check(tmp_path, RIGHT, "--advertisements").exit_code == 1
    assert check(tmp_path, [Advertised(0.0, "p", "a", Filter.all()), *RIGHT], "--advertisements").exit_code == 0
    assert check(tmp_path, RIGHT, "--settling", "0.5").exit_code == 1
    assert check(tmp_path, WRONG, "--since", "2.5").exit_code == 0
    crashed: list[AnyRecord] = [*WRONG[:2], Crashed(1.5, "b"), WRONG[2], Restarted(2.5, "b"), WRONG[3]]
    assert (check(tmp_path, crashed).exit_code, check(tmp_path, crashed, "--stored").exit_code) == (0, 1)
    assert check(tmp_path, WRONG, "--settling", "-1").exit_code == 2


def test_what_is_late_for_an_outage_that_things_do_not_settle_in(tmp_path: Path) -> None:
    cut: list[AnyRecord] = [BEGIN[0], Linked(0.0, "b1", "b2"), Cut(20.0, "b2", "b1"), Published(30.0, "p", EVENT)]
    records = [*cut, Linked(40.0, "b1", "b2"), Notified(41.0, "c", EVENT, (("s", 1),)), Crashed(60.0, "b1")]
    result = check(tmp_path, records, "--settling", "5")
    assert result.exit_code == 1 and "not in time" in result.stdout
    assert result.stderr.startswith("vestnik: --settling 5 is shorter than b1 - b2 was away, 20 seconds from 20 on")
    assert (
        check(tmp_path, records, "--settling", "21").exit_code,
        check(tmp_path, WRONG, "--settling", "1").stderr,
    ) == (
        0,
        "",
    )


def test_times_are_as_people_write_them(tmp_path: Path) -> None:
    now = 1_794_814_300.25
    late: list[AnyRecord] = [structs.replace(record, at=now + record.at) for record in WRONG]
    assert check(tmp_path, late).stdout.splitlines()[-2] == "  2026-11-16T07:31:44.250Z Settled"


def test_a_trace_that_never_settles_says_so(tmp_path: Path) -> None:
    result = check(tmp_path, [BEGIN[0], BEGIN[2]])
    assert result.exit_code == 0 and "never settles" in result.stderr
    assert check(tmp_path, [BEGIN[0], BEGIN[2]], "--settling", "1").stderr == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "t.jsonl:1: expected the header of a trace"),
        (b'{"vestnik":"trace","version":1}\n{"op":"Settled"}\n', "t.jsonl:2: Object missing required field `at`"),
        (b'{"vestnik":"trace","version":9}\n', "t.jsonl:1: version 9"),
    ],
)
def test_what_is_no_trace(tmp_path: Path, text: bytes, said: str) -> None:
    (tmp_path / "t.jsonl").write_bytes(text)
    result = CliRunner().invoke(main, ["check", str(tmp_path / "t.jsonl")])
    assert result.exit_code == 2 and result.stdout == "" and said in result.stderr


def test_no_such_file() -> None:
    result = CliRunner().invoke(main, ["check", "nowhere.jsonl"])
    assert (result.exit_code, result.stderr) == (2, "vestnik: nowhere.jsonl: there is no such file\n")


def test_standard_input() -> None:
    result = CliRunner().invoke(main, ["check", "-"], input=b"".join(to_lines(RIGHT)))
    assert result.exit_code == 0
    assert "standard input:1: " in CliRunner().invoke(main, ["check", "-"], input=b"").stderr


def test_help_names_the_exit_codes() -> None:
    result = CliRunner().invoke(main, ["check", "--help"])
    assert result.exit_code == 0 and "Exit codes: 0 " in result.stdout


def test_a_trace_that_is_cut_off_says_so(tmp_path: Path) -> None:
    lines = list(to_lines(RIGHT))
    (tmp_path / "t.jsonl").write_bytes(b"".join(lines[:-1]))
    result = CliRunner().invoke(main, ["check", str(tmp_path / "t.jsonl")])
    assert result.exit_code == 0 and result.stdout.startswith("nothing is wrong so far: 5 records")
    assert "t.jsonl has no end: it was cut off" in result.stderr
    (tmp_path / "t.jsonl").write_bytes(b"".join([*lines[:-2], lines[-2][:9]]))
    assert CliRunner().invoke(main, ["check", str(tmp_path / "t.jsonl")]).exit_code == 2


def test_traces_are_checked_as_one(tmp_path: Path) -> None:
    parts = [RIGHT[:1], RIGHT[2:3], [RIGHT[1], *RIGHT[3:]]]
    files = [tmp_path / f"{number}.jsonl" for number in range(3)]
    for file, part in zip(files, parts, strict=True):
        file.write_bytes(b"".join(to_lines(part)))
    result = CliRunner().invoke(main, ["check", *map(str, files)])
    assert (result.exit_code, result.stdout) == (0, "nothing is wrong: 5 records, 1 published, 1 notified\n")
    assert CliRunner().invoke(main, ["check", *map(str, files[1:])]).exit_code == 1
