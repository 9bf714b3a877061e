"""`script/jepsen`: runs with faults, one line each, and a total. The exit code is 1 if any of them went wrong."""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

from jepsen.disk import enter_namespace
from jepsen.judge import Finding
from jepsen.plan import LEASES, STRATEGIES, Plan, planned
from jepsen.run import Outcome, run

QUICK_SECONDS = 8.0
SHOWN = 5
"""Findings of each class that are shown."""
PROBLEMS = (RuntimeError, TimeoutError, OSError, subprocess.SubprocessError, ExceptionGroup)
"""Failures of brokers or of the harness that are no findings of the judge."""
INTERRUPTED = 130


def main() -> int:
    given = _arguments().parse_args()
    has_disk = enter_namespace()
    if not has_disk:
        _say("no disk gets full: this system allows no mount namespace (unshare --user --mount)")
    plans = _plans(given, has_disk)
    total: Counter[str] = Counter()
    wrong = 0
    for number, plan in enumerate(plans, 1):
        _say(f"run {number} of {len(plans)}: {plan}, {plan.seconds:g} seconds")
        folder = Path(tempfile.mkdtemp(prefix=f"vestnik-jepsen-{plan.seed}-"))
        try:
            outcome = asyncio.run(_stoppable(plan, folder))
        except PROBLEMS as error:
            sys.stdout.write(f"{plan}; problem: {_first(error)!r}\n")
            _say(_repeat(plan, folder))
            wrong += 1
            continue
        except (KeyboardInterrupt, asyncio.CancelledError):
            rmtree(folder)
            return INTERRUPTED
        sys.stdout.write(f"{outcome}\n")
        sys.stdout.flush()
        total.update(_counts(outcome))
        if outcome.is_right:
            rmtree(folder)
        else:
            wrong += 1
            _explain(outcome)
            _say(_repeat(plan, folder))
    counts = "; ".join(f"{name} {count}" for name, count in total.items())
    sys.stdout.write(f"total: {len(plans)} runs, {wrong} went wrong; {counts}\n")
    return 1 if wrong else 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="script/jepsen", description="Run brokers under faults, and judge deliveries."
    )
    parser.add_argument("--runs", type=int, default=20, help="how many; 20 go through all variants")
    parser.add_argument("--seconds", type=float, default=180.0, help="how long faults go on in each run")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each run has the next one")
    parser.add_argument("--quick", action="store_true", help="one run of about 20 seconds")
    parser.add_argument("--no-faults", action="store_true", help="let nothing go wrong")
    parser.add_argument("--strategy", choices=STRATEGIES, help="instead of that of the seed")
    parser.add_argument("--lease", type=float, choices=LEASES, help="instead of that of the seed")
    parser.add_argument("--advertisements", action=argparse.BooleanOptionalAction, help="instead of that of the seed")
    return parser


def _plans(given: argparse.Namespace, has_disk: bool) -> list[Plan]:
    runs, seconds = (1, QUICK_SECONDS) if given.quick else (given.runs, given.seconds)
    chosen = {name: getattr(given, name) for name in ("strategy", "lease", "advertisements")}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    seeds = range(given.seed, given.seed + runs)
    plans = [planned(seed, seconds, faults=not given.no_faults, disk=has_disk) for seed in seeds]
    return [replace(plan, **chosen) for plan in plans]


def _first(error: BaseException) -> BaseException:
    """Return the first error of a group of them."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def _stoppable(plan: Plan, folder: Path) -> Outcome:
    """Let SIGTERM end a run as Ctrl-C does, so that it ends its processes."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await run(plan, folder)


def _counts(outcome: Outcome) -> dict[str, int]:
    found = outcome.verdict
    return {
        "faults": sum(outcome.faults.values()),
        "acknowledged": found.acknowledged,
        "due": found.due,
        "delivered": found.delivered,
        "silent losses": len(found.lost),
        "duplicates": len(found.duplicates),
        "reordered": len(found.reordered),
        "wrong": len(found.wrong),
        "gaps": found.gaps,
        "check disagrees": int(not outcome.comparison.agrees),
    }


def _explain(outcome: Outcome) -> None:
    found = outcome.verdict
    _say(f"  faults: {', '.join(f'{name} {count}' for name, count in outcome.faults.items()) or 'none'}")
    for name, findings in (
        ("silent losses", found.lost),
        ("duplicates", found.duplicates),
        ("reordered", found.reordered),
        ("wrong", found.wrong),
    ):
        if findings:
            by_subscriber = Counter(finding.subscriber for finding in findings)
            _say(f"  {name}: {', '.join(f'{who} {count}' for who, count in by_subscriber.items())}")
            _say(f"    such as {'; '.join(map(_shown, findings[:SHOWN]))}")


def _shown(finding: Finding) -> str:
    said = f" ({finding.said})" if finding.said else ""
    return f"{finding.subscriber} {finding.key.source}-{finding.key.number}{said}"


def _repeat(plan: Plan, folder: Path) -> str:
    advertisements = "--advertisements" if plan.advertisements else "--no-advertisements"
    variant = f"--strategy {plan.strategy} {advertisements} --lease {plan.lease:g}"
    command = f"script/jepsen --runs 1 --seconds {plan.seconds:g} --seed {plan.seed} {variant}"
    return f"  kept {folder}; repeat it by: {command}{'' if plan.faults else ' --no-faults'}"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
