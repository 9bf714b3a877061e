"""Processes of a run: `vestnik` commands and clients, which end when the process that started them does."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

VESTNIK = (sys.executable, "-c", "from vestnik.cli import main; main()")
DEATH_SIGNAL = 1
"""The option of prctl by which a process is sent a signal when its parent ends."""
_LIBC = ctypes.CDLL(None)


def _die_with_parent() -> None:
    _LIBC.prctl(DEATH_SIGNAL, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """Return that of this process, in which clients also find this package."""
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def start(command: tuple[str, ...], log: Path, *, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Start a command that appends its standard error to `log`."""
    with log.open("ab") as stderr:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=_environment(),
            preexec_fn=_die_with_parent,
        )


async def vestnik(*arguments: str, timeout: float = 15.0) -> tuple[int, str]:
    """Run a command of the product; return its exit code, or -1 after `timeout` seconds, and what it printed."""
    running = await asyncio.create_subprocess_exec(
        *VESTNIK,
        *arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=_die_with_parent,
    )
    try:
        async with asyncio.timeout(timeout):
            said, _ = await running.communicate()
    except TimeoutError:
        running.kill()
        await running.wait()
        return -1, f"no answer in {timeout:g} seconds"
    return running.returncode or 0, said.decode("utf-8", "replace")
