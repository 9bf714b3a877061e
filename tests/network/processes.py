"""`vestnik serve` as a process, for tests: where it listens, as it says itself."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

VESTNIK = Path(sys.executable).with_name("vestnik")
LISTENING = re.compile(r'\blistening on ([^\s",]+)')
HTTP = re.compile(r'\bhttp on ([^\s",]+)')


def told(stream: IO[str] | None, what: re.Pattern[str]) -> str:
    """Read lines of a log until one matches; return what its group holds, empty if the log ends before."""
    assert stream is not None
    for line in iter(stream.readline, ""):
        if found := what.search(line):
            return found[1]
    return ""


@contextmanager
def serving(*options: str, patch: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `vestnik serve`, after the statements `patch`; yield the process and where it listens."""
    code = f"{patch}\nfrom vestnik.cli import main\nmain()"
    command = [sys.executable, "-c", code, "serve", "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as running:
        try:
            yield running, told(running.stderr, LISTENING)
        finally:
            running.kill()
