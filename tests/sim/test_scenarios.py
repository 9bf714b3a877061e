"""Scenarios are read strictly, and run the same every time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vestnik.errors import InvalidScenario, UnknownStrategy
from vestnik.sim.runs import Run, run_scenario
from vestnik.sim.scenarios import read_scenario
from vestnik.trace.records import AnyRecord, Notified
from vestnik.verify.traces import check_trace

SCENARIOS = sorted((Path(__file__).parents[2] / "docs" / "scenarios").glob("*.toml"))

SMALL = """
duration = 10
[topology]
kind = "line"
brokers = 3
[routing]
strategy = "covering"
"""
LEASES = "[leases]\nlength = 5\nrefresh = 2\n"
FAULT = "[[faults]]\nat = 1\nkind = "


def test_a_small_scenario_is_enough() -> None:
    scenario = read_scenario(SMALL)
    assert (scenario.duration, scenario.seed, scenario.network().diameter) == (10.0, 0, 2)


@pytest.mark.parametrize(
    ("old", "new", "path", "reason"),
    [
        ("duration", "duratoin", "", "unknown field `duratoin`; did you mean duration"),
        ("duration = 10", "duration = -1", "duration", "must be from 0 to a finite number"),
        ("duration = 10", "duration = 'x'", "duration", "Expected `float`"),
        ("duration = 10", "duration =", "", "no TOML"),
        ('kind = "line"', 'kind = "ring"', "topology.kind", "Invalid value 'ring'; known are line, "),
        ("brokers = 3", "brokers = 0", "topology", "1 to 100,000 brokers"),
        ("brokers = 3", "size = 3", "topology", "unknown field `size`; known are kind, "),
        ('kind = "line"', 'kind = "random-graph"\nmore_links = 1', "topology", "needs a tree: with 3 links between 3"),
        ("[topology]", "[clients]\nrate = -2\n[topology]", "clients.rate", "must be from 0 to a finite number"),
        ("[topology]", "[links]\nloss = 2\n[topology]", "links", "probability"),
        ("[topology]", "[links]\nloss = 0.1\n[topology]", "links.loss", "without leases nothing heals"),
        ("[topology]", "[links]\nfifo = false\n[topology]", "links.fifo", "without leases nothing heals"),
        ("[topology]", "[clients]\nwindow = 10_000_000\n[topology]", "clients.window", "must be from 1 to 1,000,000"),
        ("[topology]", "[clients]\nwindow = 0\n[topology]", "clients.window", "must be from 1 to 1,000,000, not 0"),
        ("[topology]", "[clients]\nspecial = 1.5\n[topology]", "clients.special", "must be from 0 to 1.0, not 1.5"),
        ("[topology]", "[clients]\nbatch = 0\n[topology]", "clients.batch", "a batch is of 1 event or more, not of 0"),
        ("[topology]", "[clients]\nreplay = {}\n[topology]", "clients.replay", "a replay asks for something"),
        ("[topology]", "[clients]\nreplay = {last = 0}\n[topology]", "clients.replay", "the last 1 or more, not 0"),
        ("[topology]", f"{FAULT}'disk'\nlasting=1\nbroker='x'\n[topology]", "faults[0].broker", "no broker x"),
        ("[topology]", f"{FAULT}'pause'\nlasting=1\nclient='x'\n[topology]", "faults[0].client", "no client x"),
        ("[routing]", "[routing]\ntolerance = 0.1", "routing.tolerance", "is for merging, not for covering"),
        ("[topology]", f"{FAULT}'crush'\n[topology]", "faults[0].kind", "Invalid value 'crush'; did you mean crash"),
        ("[topology]", f"{FAULT}'crash'\nlasting=1\nbroker='x'\n[topology]", "faults[0].broker", "no broker x"),
        ("[topology]", f"{FAULT}'crash'\nlasting=10\nbroker='b0'\n[topology]", "faults[0]", "within the duration"),
        ("[topology]", f"{FAULT}'cut'\nlasting=1\nbetween=['b0', 'b2']\n[topology]", "faults[0].between", "no link"),
        ("[topology]", f"{FAULT}'away'\nlasting=1\nclient='x'\n[topology]", "faults[0].client", "no client x"),
        ("[topology]", f"{FAULT}'corrupt'\nbroker='b0'\n[topology]", "faults[0]", "without leases nothing heals"),
        ("[topology]", "[leases]\nlength=2\nrefresh=2\n[topology]", "leases.length", "must be above 2 s"),
        (
            "[topology]",
            f"{LEASES}[links]\ndelay = {{kind='uniform', least=0.5, most=2.0}}\n[topology]",
            "leases.length",
            "up to 2 links, some take 3 s longer than others; it must be above 5 s",
        ),
        ("[topology]", f"{LEASES}[links]\ndelay = {{kind='exponential', mean=1}}\n[topology]", "leases", "no bound"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_where_and_why(old: str, new: str, path: str, reason: str) -> None:
    with pytest.raises(InvalidScenario) as caught:
        read_scenario(SMALL.replace(old, new))
    assert caught.value.path == path and reason in caught.value.reason


def test_leases_heal_what_is_lost_and_what_overtakes_another() -> None:
    scenario = read_scenario(f"{SMALL}{LEASES}[links]\nloss = 0.1\nfifo = false")
    assert scenario.links.loss == 0.1


def test_consumers_may_be_slow_disks_fail_and_the_past_be_wanted() -> None:
    more = "[clients]\nbatch = 3\nnewcomers = 1\nreplay = {last = 5}\n[workload]\nkind = 'stock'\nstocks = 2\n"
    faults = "".join(f"{FAULT}'{kind}'\nlasting=1\nclient='c0'\n" for kind in ("pause", "stall"))
    trace: list[AnyRecord] = []
    run_scenario(read_scenario(f"{SMALL}{more}{faults}{FAULT}'disk'\nlasting=5\nbroker='b0'\n"), trace.append)
    assert any(isinstance(record, Notified) and record.replayed for record in trace)
    assert check_trace(trace, stored=True) == []


def test_unknown_strategies_are_refused() -> None:
    with pytest.raises(UnknownStrategy, match="known are flooding"):
        read_scenario(SMALL.replace("covering", "hovering"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_scenarios_of_the_guide_end_well(path: Path) -> None:
    trace: list[AnyRecord] = []
    scenario = read_scenario(path.read_text(encoding="utf-8"))
    run = Run(scenario, trace.append)
    shares = list(run.steps())
    summary = run.summary()
    assert shares[-1] == 1.0 and summary.published > 100 and summary.notified > 100
    assert check_trace(trace, since=run.right_since, advertisements=scenario.routing.advertisements) == []


PRINT = """
import sys
from vestnik.sim.runs import Run, run_scenario
from vestnik.sim.scenarios import read_scenario
from vestnik.trace.files import to_lines
trace = []
for name in sys.argv[1:]:
    run_scenario(read_scenario(open(name).read()), trace.append, all_sent=True)
sys.stdout.buffer.writelines(to_lines(trace))
"""


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    traces = [
        subprocess.run(
            [sys.executable, "-c", PRINT, *map(str, SCENARIOS)],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    ]
    assert traces[0].count(b"\n") > 10_000
    assert traces[0] == traces[1]


def test_another_seed_gives_another_trace() -> None:
    traces: list[list[AnyRecord]] = [[], []]
    for seed, trace in enumerate(traces):
        run_scenario(read_scenario(f"seed = {seed}\n{SMALL}"), trace.append)
    assert traces[0] != traces[1]
