"""`vestnik serve`"""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
import sys
from pathlib import Path
from typing import Any, Final

import click

from vestnik.cli.edge import behind_gateway
from vestnik.cli.logs import logging_to_stderr
from vestnik.cli.loops import run
from vestnik.cli.settings import found_settings, plain, settings_options
from vestnik.errors import InvalidSetting
from vestnik.logs import emit
from vestnik.matching.single.scan import load_by
from vestnik.server.configuration import Found, settings_of
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport import heavy

LOG: Final = logging.getLogger(__name__)

SWITCH = 0.001
"""Seconds for which a thread that reads something large keeps the interpreter while the event loop waits for it."""
ENDS: Final = (signal.SIGTERM, signal.SIGINT)
LEAST_FILES: Final = 64
"""Open files that the process must be allowed: a broker holds some 20 of its own, the rest is for connections."""
LEAVE_WITHIN: Final = 1.5
"""Seconds after a signal in which the broker and its disk have to be ready to end."""


@click.command("serve", epilog="Exit codes: 0 ended when it was told to; 2 it could not be started.")
@settings_options
def command(config: Path | None, **given: Any) -> None:
    """Run a broker, until SIGTERM or Ctrl-C. SIGHUP lets it read certificates and the access file again.

    What is not given here is looked for in the environment, as VESTNIK_LISTEN for --listen, and then in the file;
    `vestnik config show` says what was found where.
    """
    found = found_settings(config, given)
    settings = settings_of(found)
    _check_files()
    _collect_seldom()
    load_by(heavy.submit)
    sys.setswitchinterval(SWITCH)
    with logging_to_stderr(settings.log_level, settings.log_format):
        _tell(found)
        run(_serve(settings))


def _check_files() -> None:
    """Raise InvalidSetting if the process may not open as many files as a broker needs."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < LEAST_FILES:
        need = f"a broker needs {LEAST_FILES}, and one more for each connection"
        raise InvalidSetting("ulimit -n", f"the process may open {most} files; {need}: raise it, as by ulimit -n 1024")


def _tell(found: dict[str, Found]) -> None:
    """Log every setting, those of one origin together. None of them is secret: keys and tokens are in files."""
    for origin in dict.fromkeys(one.origin for one in found.values()):
        settings = {name: plain(value) for name, (value, where) in found.items() if where == origin}
        emit(LOG, logging.INFO, "settings", f"settings by {origin}", origin=origin, settings=settings)


def _collect_seldom() -> None:
    """A broker keeps many events, and its garbage has hardly any cycles: to look for these often would cost a third."""
    gc.freeze()
    gc.set_threshold(10_000, 50, 1_000)


def _exit(number: int, frame: object) -> None:
    """End a broker that has not begun yet: nothing was acknowledged, and a long recovery is not waited for."""
    raise SystemExit(0)


async def _serve(settings: Settings) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end(received: signal.Signals) -> None:
        """End in good order; the next signal ends the process at once."""
        emit(LOG, logging.INFO, "shutdown.requested", f"received {received.name}", signal=received.name)
        for number in ENDS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        broker.leave_within(LEAVE_WITHIN)
        ended.set()

    for number in ENDS:
        signal.signal(number, _exit)
    broker = Broker(settings)
    loop.add_signal_handler(signal.SIGHUP, broker.reload)
    async with broker if settings.http is None else behind_gateway(broker, settings.http):
        for number in ENDS:
            loop.add_signal_handler(number, end, number)
        await ended.wait()
