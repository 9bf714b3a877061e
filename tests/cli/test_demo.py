"""`vestnik demo` in a real process: it adds up, and leaves nothing behind."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

VESTNIK = Path(sys.executable).with_name("vestnik")
SUMMARY = re.compile(
    r"published (\d+); to the desks: notified (\d+), replayed (\d+), made up after the kill (\d+), lost (\d+)",
    re.MULTILINE,
)


@contextmanager
def demo(folder: Path, *options: str, stdout: int | IO[bytes] = subprocess.PIPE) -> Iterator[subprocess.Popen[bytes]]:
    """It makes its files in `folder`; its brokers have this in their environment, by which they are found."""
    environment = os.environ | {"TMPDIR": str(folder), "DEMO_OF": str(folder), "TERM": "xterm"}
    command = [str(VESTNIK), "demo", *(options if "--report" in options else [*options, "--no-report"])]
    with subprocess.Popen(command, env=environment, stdout=stdout, stderr=subprocess.STDOUT) as running:
        try:
            yield running
        finally:
            running.kill()


def left_behind(folder: Path) -> list[str]:
    """The files in `folder`, and the processes that know of it."""
    mark = f"DEMO_OF={folder}\0".encode()
    found = [str(path) for path in folder.rglob("*")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it has ended, or is somebody else's
    return found


def until_said(running: subprocess.Popen[bytes], text: str) -> str:
    """All lines up to the one with this text."""
    assert running.stdout is not None
    said = ""
    for line in running.stdout:
        said += line.decode()
        if text in line.decode():
            return said
    raise AssertionError(f"it ended without saying {text!r}:\n{said}")


def test_it_ends_by_itself_and_all_adds_up(tmp_path: Path) -> None:
    page = tmp_path.with_name(f"{tmp_path.name}.html")
    with demo(tmp_path, "--seconds", "6", "--report", str(page)) as running:
        said, _ = running.communicate(timeout=300)
    text = said.decode()
    assert running.returncode == 0, text
    for happening in [
        "nobody wants quotes, so none is published",
        "somebody wants ACME: quotes begin",
        "not-matching: subscription s1 (price < 50 AND symbol = 'INIT') does not match: ",
        "is killed by kill -9",
        "nobody within reach wants ACME any more: quotes end",
        "check     nothing is wrong: ",
        f"report    is in {page}",
    ]:
        assert happening in text, text
    summary = SUMMARY.search(text)
    assert summary is not None, text
    published, notified, replayed, made_up, lost = map(int, summary.groups())
    assert published > 10 and notified > 10 and replayed == 10 and made_up > 0 and lost == 0
    assert f" {published} published" in text, "the brokers' traces say so, too"
    stages = dict(re.findall(r"pipeline  (ingest|match|verify) .* ([\d,]+) (?:new events|pairs|violations)", text))
    assert stages["ingest"] == str(published) and stages["match"] > "0" and stages["verify"] == "0", text
    assert page.read_text().startswith("<!doctype html>")
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("three brokers in a line", signal.SIGINT),
        ("history ", signal.SIGTERM),
        ("is killed by kill -9", signal.SIGTERM),
        ("vestnik check", signal.SIGHUP),
        ("vestnik pipeline", signal.SIGTERM),
    ],
)
def test_a_signal_at_any_moment_leaves_nothing_behind(tmp_path: Path, moment: str, number: signal.Signals) -> None:
    report = ["--report", str(tmp_path / "page.html")] if "pipeline" in moment else []
    with demo(tmp_path, "--seconds", "6", *report) as running:
        until_said(running, moment)
        assert left_behind(tmp_path)
        running.send_signal(number)
        assert running.wait(60) == 130
    assert left_behind(tmp_path) == []


def test_ctrl_c_ends_the_story_with_a_summary(tmp_path: Path) -> None:
    with demo(tmp_path, "--seconds", "60") as running:
        until_said(running, "board ")
        running.send_signal(signal.SIGINT)
        rest, _ = running.communicate(timeout=60)
    assert running.returncode == 0 and SUMMARY.search(rest.decode()), rest
    assert left_behind(tmp_path) == []


def test_a_reader_that_goes_leaves_nothing_behind(tmp_path: Path) -> None:
    with demo(tmp_path, "--seconds", "600") as running:
        until_said(running, "listening on")
        assert running.stdout is not None
        running.stdout.close()
        assert running.wait(60) == 141
    assert left_behind(tmp_path) == []


def test_a_terminal_shows_a_picture_until_ctrl_c(tmp_path: Path) -> None:
    shown, screen = pty.openpty()
    with demo(tmp_path, stdout=screen) as running:
        os.close(screen)
        drawn = b""
        while b"bargain" not in drawn:
            drawn += os.read(shown, 100_000)
        running.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 60
        while b"made up after the kill" not in drawn and time.monotonic() < deadline:
            drawn += os.read(shown, 100_000)
        assert running.wait(60) == 0
    os.close(shown)
    assert "─ desks ─".encode() in drawn and b"\x1b" in drawn
    assert left_behind(tmp_path) == []
