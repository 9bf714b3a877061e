"""A command that starts Spark says why that takes long, and what it is doing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from vestnik.cli import running
from vestnik.spark.session import FIRST_START

STEPS = """
from vestnik.cli import running
from vestnik.spark.session import FIRST_START
class Spark:
    def stop(self): pass
def session(master, name, say):
    for step in STEPS:
        say(step)
    return Spark()
STEPS = [FIRST_START, "starting Spark"]
running.start_session = session
with running.running(None, "x"):
    pass
"""


class Spark:
    def stop(self) -> None:
        """Nothing runs."""


@pytest.mark.parametrize("steps", [[FIRST_START, "preparing Java", "starting Spark"], ["starting Spark"]])
def test_a_log_has_why_the_first_start_takes_long_and_no_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], steps: list[str]
) -> None:
    def session(master: Any, name: str, say: Callable[[str], object]) -> Spark:
        for step in steps:
            say(step)
        return Spark()

    monkeypatch.setattr(running, "start_session", session)
    with running.running(None, "test"):
        pass
    told = [f"vestnik: {FIRST_START}"] if FIRST_START in steps else []
    assert capsys.readouterr().err.splitlines() == told


def test_a_person_at_a_terminal_sees_the_steps() -> None:
    screen, terminal = pty.openpty()
    try:
        done = subprocess.run([sys.executable, "-c", STEPS], stderr=terminal, timeout=60)
        found = os.read(screen, 100_000).decode()
    finally:
        os.close(screen)
        os.close(terminal)
    assert done.returncode == 0 and FIRST_START in found and "starting Spark" in found
