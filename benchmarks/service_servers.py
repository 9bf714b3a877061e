"""Brokers as processes of their own: ours, and those of others where they are installed."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

PATIENCE = 10.0
"""Seconds in which a server takes connections."""
LISTENING = re.compile(r"listening on \S*:(\d+)")
PEERS = {"nats": "nats-server", "redis": "redis-server", "mosquitto": "mosquitto"}

RUN = "from vestnik.cli import main; main()"
SLOW_DISK = """
import os, time
sync = os.fdatasync
def slowly(file):
    time.sleep({seconds})
    sync(file)
os.fdatasync = slowly
"""


class Server:
    """A process that runs; `port` is where it listens."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self.port = port

    @property
    def memory(self) -> int:
        """Bytes that are resident."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) * 1024


def cpu_of(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a process so far, of all threads."""
    return time.clock_gettime(~process.pid << 3 | 2)  # the number that the system gives to the clock of a process


def installed() -> list[str]:
    """The peers that can be started here."""
    return [name for name, program in PEERS.items() if _program(program) is not None]


@contextmanager
def serving(system: str, data: Path | None = None, sync_takes: float | None = None) -> Iterator[Server]:
    """A server that takes connections, until the end of the block; `data` and a slow disk are for ours."""
    with TemporaryDirectory() as folder, (Path(folder) / "log").open("w+") as log:
        port = _free_port() if system in PEERS else 0
        command = _command(system, port, Path(folder), data, sync_takes)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        try:
            yield Server(process, _open_port(system, process, port, Path(log.name)))
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            process.kill()
            process.wait()


def _command(system: str, port: int, folder: Path, data: Path | None, sync_takes: float | None) -> list[str]:
    match system:
        case "nats":
            return [_found(system), "--addr", "127.0.0.1", "--port", str(port)]
        case "redis":
            return [_found(system), "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)]
        case "mosquitto":
            settings = folder / "mosquitto.conf"
            settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n")
            return [_found(system), "-c", str(settings)]
    code = RUN if sync_takes is None else SLOW_DISK.format(seconds=sync_takes) + RUN
    where = ["--data", str(data)] if data is not None else ["--lease", "3600"] if system == "bare" else []
    return [sys.executable, "-c", code, "serve", "--name", "bench", "--listen", f"127.0.0.1:{port}", *where]


def _found(system: str) -> str:
    found = _program(PEERS[system])
    assert found is not None
    return found


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _open_port(system: str, process: subprocess.Popen[bytes], port: int, log: Path) -> int:
    """Wait until a server takes connections; return its port. Ours chooses one itself, and says it in its log."""
    limit = time.monotonic() + PATIENCE
    while True:
        found = LISTENING.search(log.read_text())
        port = int(found[1]) if found else port
        with suppress(ConnectionRefusedError):
            if port:
                socket.create_connection(("127.0.0.1", port)).close()
                return port
        if process.poll() is not None or time.monotonic() > limit:
            raise RuntimeError(f"{system} did not start: {' '.join(map(str, process.args))}")  # type: ignore[arg-type]
        time.sleep(0.02)
