"""`vestnik doctor`"""

from __future__ import annotations

import errno
import importlib.util
import os
import platform
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import click

from vestnik import __version__
from vestnik.cli.loops import run
from vestnik.cli.outputs import echo_json
from vestnik.client.connect import connect
from vestnik.client.environment import URL
from vestnik.errors import MissingJava, NotAccepted, VestnikError
from vestnik.spark.java import find_java
from vestnik.spark.session import MODULES
from vestnik.transport.addresses import Address, read_address

UNWELL = 1
OLDEST = 3, 11
NOT_BEFORE = 1_700_000_000
"""A clock that shows less than this was never set."""
SLOW = 0.02
"""Seconds of a sync of the disk above which durable publishing is slow."""
SKEWED = 1.0
"""Seconds between clocks above which events seem to expire early or late."""
EXTRAS = {
    "fast": ("numba", "numpy", "pyarrow"),
    "web": ("starlette", "uvicorn", "websockets", "prometheus_client"),
    "lab": ("matplotlib",),
    "lake": ("pyarrow",),
    "spark": MODULES,
}
REACH_WITHIN = 2.0


class Found(NamedTuple):
    """What was looked at, whether it is well, and what to do where it is not."""

    state: Literal["ok", "note", "FAIL"]
    what: str
    said: str


@click.command("doctor", epilog="Exit codes: 0 all is well; 1 something is not.")
@click.option("--url", metavar="URL", help="A broker to reach.  [default: $VESTNIK_URL, or vestnik://127.0.0.1:8020]")
@click.option("--listen", metavar="HOST:PORT", help="Where a broker is to listen.  [default: 127.0.0.1:8020]")
@click.option("--data", type=click.Path(path_type=Path), metavar="FOLDER", help="Where a broker is to store.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line, for each finding.")
@click.pass_context
def command(ctx: click.Context, url: str | None, listen: str | None, data: Path | None, as_json: bool) -> None:
    """Look at this machine: Python, optional parts, Java, ports, the clock, the data folder, and the broker."""
    findings = [*_python(), *_extras(), _java(), *_clock()]
    reached = run(_broker(url, is_named=url is not None or bool(os.environ.get(URL))))
    findings.append(reached)
    port = read_address(listen) if listen else Address("127.0.0.1", 8020)
    findings += _port(port)
    findings += [] if data is None else _folder(data)
    for found in findings:
        if as_json:
            echo_json(found._asdict())
        else:
            click.echo(f"{found.state:4}  {found.what:8}  {found.said}")
    ctx.exit(UNWELL if any(found.state == "FAIL" for found in findings) else 0)


def _python() -> Iterator[Found]:
    said = f"Python {platform.python_version()}, Vestnik {__version__}, {platform.system()} {platform.machine()}"
    yield Found("ok" if sys.version_info[:2] >= OLDEST else "FAIL", "python", said)
    if importlib.util.find_spec("uvloop") is None:
        yield Found("note", "uvloop", "is not installed: brokers and clients are slower; pip install uvloop")


def _extras() -> Iterator[Found]:
    for extra, modules in EXTRAS.items():
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        if missing:
            yield Found("note", extra, f"not installed ({', '.join(missing)}): pip install 'vestnik[{extra}]'")
        else:
            yield Found("ok", extra, "installed")


def _java() -> Found:
    """Which Java Spark would run on; that there is none is no fault where Spark is not used."""
    try:
        java = find_java()
    except MissingJava as error:
        return Found("note", "java", str(error))
    return Found("ok", "java", f"{java.version} at {java.home}, found by {java.found_by}: Spark would run on it")


def _clock() -> Iterator[Found]:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if time.time() < NOT_BEFORE:
        yield Found("FAIL", "clock", f"shows {now}: set it, since events expire and are held by it")
    else:
        yield Found("ok", "clock", f"shows {now}")


async def _broker(url: str | None, *, is_named: bool) -> Found:
    """Whether there is a broker; that there is none is no fault where nobody named one."""
    try:
        async with connect(url, timeout=REACH_WITHIN) as bus:
            begun = time.perf_counter()
            try:
                status = await bus.inspect("status")
            except NotAccepted as error:
                return Found("ok", "broker", f"one at {bus.address} says no more: {error.reason}")
            took = (time.perf_counter() - begun) * 1000
            known = len(status["brokers"])
            return Found(
                "ok", "broker", f"{status['broker']} at {bus.address} answers in {took:.1f} ms; it knows {known}"
            )
    except VestnikError as error:
        return Found("FAIL" if is_named else "note", "broker", str(error))


def _port(address: Address) -> Iterator[Found]:
    """Whether a broker could listen, or does."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(address)
        except OSError as error:
            has_broker = error.errno == errno.EADDRINUSE and run(_broker(str(address), is_named=True)).state == "ok"
            taken = "in use, by a broker" if has_broker else error.strerror or str(error)
            yield Found("ok" if has_broker else "FAIL", "port", f"{address}: {taken}")
        else:
            yield Found("ok", "port", f"{address} is free")


def _folder(folder: Path) -> Iterator[Found]:
    """Whether a broker could store there, and how fast."""
    nearest = next(path for path in [folder, *folder.absolute().parents] if path.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=nearest) as file:
            file.write(b"vestnik")
            file.flush()
            begun = time.perf_counter()
            os.fsync(file.fileno())
            took = time.perf_counter() - begun
    except OSError as error:
        yield Found("FAIL", "data", f"{folder} cannot be written: {error.strerror or error}")
        return
    free = os.statvfs(nearest)
    room = free.f_bavail * free.f_frsize / 2**30
    said = f"{folder} can be written: a sync takes {took * 1000:.1f} ms, {room:,.1f} GiB are free"
    yield Found("note" if took > SLOW or room < 1 else "ok", "data", said)
