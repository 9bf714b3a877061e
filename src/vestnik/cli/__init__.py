"""The command line: `vestnik`. Nothing of the package but this part is loaded before a command runs."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

import click

from vestnik import __version__
from vestnik.cli.lazy import LazyGroup
from vestnik.errors import VestnikError

BAD_INPUT, INTERRUPTED, READER_GONE = 2, 130, 141


class Root(LazyGroup):
    """The root command: turns each error of a command into one message and an exit code."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and exit with its code, also if standard output or standard error takes nothing."""
        try:
            return super().main(*args, **options)
        except VestnikError as error:
            sys.exit(_failed(str(error), BAD_INPUT))
        except OSError as error:
            sys.exit(_failed(f"{error.filename}: {error.strerror}" if error.filename else str(error), BAD_INPUT))
        finally:
            _drop_unwritten(sys.stdout)
            _drop_unwritten(sys.stderr)

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # text that the terminal's encoding lacks is escaped, not a failure
                stream.reconfigure(errors="backslashreplace")
        from vestnik.cli.logs import warnings_to_stderr

        try:
            try:
                with warnings_to_stderr():
                    return super().invoke(ctx)
            finally:
                if sys.stdout is not None:  # it is None if a shell closed it with >&-
                    sys.stdout.flush()
        except KeyboardInterrupt:
            ctx.exit(_failed("interrupted", INTERRUPTED))
        except BrokenPipeError:
            ctx.exit(READER_GONE)


def _failed(message: str, code: int) -> int:
    with suppress(OSError):  # if nobody can read the message, the exit code remains
        click.echo(f"vestnik: {message}", err=True)
    return code


def _drop_unwritten(stream: TextIO | None) -> None:
    """Discard what cannot be written: the interpreter would try again at its end, fail, and exit with 120."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@click.group(
    cls=Root,
    commands_from={
        "filter": ("vestnik.cli.filter:group", "Check, explain, relate and match filters."),
        "serve": ("vestnik.cli.serve:command", "Run a broker."),
        "config": ("vestnik.cli.config:group", "The settings of a broker."),
        "token": ("vestnik.cli.token:group", "Tokens, by which clients prove who they are."),
        "pub": ("vestnik.cli.pub:command", "Publish events."),
        "sub": ("vestnik.cli.sub:command", "Print the events that match a filter."),
        "fetch": ("vestnik.cli.fetch:command", "Print past events that match a filter."),
        "adv": ("vestnik.cli.adv:command", "Advertise what is going to be published."),
        "history": ("vestnik.cli.history:command", "What a broker has stored."),
        "why": ("vestnik.cli.why:command", "Why did somebody not get an event?"),
        "top": ("vestnik.cli.top:command", "Watch all brokers."),
        "link": ("vestnik.cli.link:group", "Make and end links between brokers."),
        "sim": ("vestnik.cli.sim:group", "Simulate brokers and clients in virtual time, with faults."),
        "check": ("vestnik.cli.check:command", "Check that what happened in a network is right."),
        "lab": ("vestnik.cli.lab:group", "Run the experiments of the papers."),
        "pipeline": ("vestnik.cli.pipeline:group", "Work over stored or very many events, on Spark."),
        "doctor": ("vestnik.cli.doctor:command", "Look whether this machine is ready."),
        "bench": ("vestnik.cli.bench:command", "Measure how fast a broker is."),
        "demo": ("vestnik.cli.demo:group", "Three brokers, a market, and a broker that is killed."),
    },
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 the answer is no, or some events could not be read; 2 wrong input or usage; "
    "130 interrupted; 141 the reader of the output has gone.",
)
@click.version_option(__version__, prog_name="vestnik")
def main() -> None:
    """Filters over events, and who wants which event.

    Results go to standard output, messages to standard error.
    """
