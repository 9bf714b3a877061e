"""What the commands that derive have in common."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final

import click
from msgspec import json

from vestnik.cli.inputs import Refused, parsed
from vestnik.cli.outputs import echo_json
from vestnik.cli.pipeline.inputs import say_dropped
from vestnik.cli.pipeline.outputs import check_new, written_whole
from vestnik.cli.pipeline.progress import task_progress
from vestnik.cli.running import running
from vestnik.client.sync import connect_sync
from vestnik.errors import WrongValue
from vestnik.journal.folders import JOURNAL
from vestnik.lake.journals import is_address, open_journal
from vestnik.lake.layout import LOG
from vestnik.spark.checkpoints import check_checkpoint
from vestnik.spark.derive.durations import millis
from vestnik.spark.derive.readings import REASONS, path_of
from vestnik.spark.derive.running import DERIVED, LATE, NEW, READ, Target, derive_stream, derive_table
from vestnik.spark.lake import events as lake_events
from vestnik.spark.source.offsets import EARLIEST
from vestnik.spark.wanted import wanted

DERIVATION: Final = "derivation.json"
"""In the folder of a checkpoint: what it is the checkpoint of."""
PATIENCE: Final = 10.0
LACKING: Final = dict(
    zip(REASONS, ("that are none", "without a key", "without a number", "without a time"), strict=True)
)

OPTIONS = (
    click.option(
        "--from",
        "journals",
        multiple=True,
        required=True,
        metavar="FOLDER|URL",
        help="A lake; or the data folder of a broker, or where it runs, once for each broker.",
    ),
    click.option("--filter", "filter_", metavar="FILTER", help="Only of events that it matches."),
    click.option("--to", metavar="URL", help="Publish the new events at this broker."),
    click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Or write them to Parquet files there."),
    click.option("--watermark", default="10s", show_default=True, metavar="DURATION", help="How late events may come."),
    click.option(
        "--checkpoint",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Go on where the last run with it ended.",
    ),
    click.option("--follow", is_flag=True, help="With --checkpoint: go on until SIGTERM or Ctrl-C."),
    click.option("--early", is_flag=True, help="With --out: also what the watermark has not reached."),
    click.option("--source", default="derive", show_default=True, metavar="SOURCE", help="Of the new events."),
    click.option("--master", metavar="MASTER", help="Where Spark runs, as spark://HOST:PORT.  [default: here]"),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
)


def derive_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that all have."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, kw_only=True)
class Asked:
    """From what to derive, where to, and how; Refused where that does not go together."""

    journals: tuple[str, ...]
    filter_: str | None
    to: str | None
    out: Path | None
    watermark: str
    checkpoint: Path | None
    follow: bool
    early: bool
    source: str
    master: str | None
    as_json: bool

    def __post_init__(self) -> None:
        if (self.to is None) == (self.out is None):
            raise Refused("say where the new events go: --to URL, or --out DIR")
        if self.to is not None and not is_address(self.to):
            raise Refused(f"events are published at a broker, --to vestnik://HOST:PORT, not {self.to}")
        if self.follow and self.checkpoint is None:
            raise Refused("--follow needs --checkpoint DIR, to go on from when it is started again")
        if self.early and (self.to is not None or self.checkpoint is not None):
            raise Refused("--early is for --out without --checkpoint: what is not over yet may become another")
        if self.checkpoint is not None and self.lake is not None:
            raise Refused("a lake is read as a whole: leave --checkpoint out, or name the brokers that it is from")
        if not self.source:
            raise Refused("--source is not empty")
        check_durations(0, watermark=self.watermark)
        if self.filter_ is not None:
            parsed(self.filter_)
        self._check_places()

    @property
    def lake(self) -> Path | None:
        """The lake to read, if it is one."""
        lakes = [Path(name) for name in self.journals if not is_address(name) and (Path(name) / LOG).is_dir()]
        if lakes and len(self.journals) > 1:
            raise Refused(f"{lakes[0]} is a lake, which is read alone")
        return lakes[0] if lakes else None

    def _check_places(self) -> None:
        """See that what is read is there, and that the folder for what is written can be one."""
        for name in self.journals if self.lake is None else ():
            if "," in name:
                raise Refused(f"{name}: brokers are named one by one, --from once for each; no folder has a comma")
            if not is_address(name) and not (Path(name) / JOURNAL).is_dir():
                raise Refused(f"{name} is neither a lake, nor the data folder of a broker")
            with open_journal(name, **({"timeout": PATIENCE} if is_address(name) else {})) as journal:
                if not self.goes_on:
                    say_dropped(journal)
        if self.to is not None:
            with connect_sync(self.to, timeout=PATIENCE):
                pass
        if self.out is not None and not self.goes_on:
            check_new(self.out)

    @property
    def goes_on(self) -> bool:
        """Whether an earlier run has begun with this checkpoint."""
        return self.checkpoint is not None and (self.checkpoint / DERIVATION).exists()


def check_paths(**paths: str | None) -> None:
    """Refused where one is no path."""
    for name, path in paths.items():
        try:
            _ = path is None or path_of(path)
        except WrongValue as error:
            raise Refused(f"--{name}: {error}") from None


def check_durations(least: int, **durations: str) -> None:
    """Refused where one is no duration of so many milliseconds or more."""
    for name, duration in durations.items():
        try:
            millis(duration, least)
        except WrongValue as error:
            raise Refused(f"--{name}: {error}") from None


def derive(asked: Asked, what: str, how: Callable[..., Any], settings: dict[str, Any]) -> None:
    """Derive, and say how much was."""
    of = "" if asked.filter_ is None else str(parsed(asked.filter_))
    how = partial(how, watermark=asked.watermark, source=asked.source, of=of)
    if asked.checkpoint is not None:
        said = settings | {"watermark": asked.watermark, "source": asked.source, "filter": asked.filter_}
        _claim(asked.checkpoint, said | {"to": asked.to, "out": asked.out and str(asked.out.absolute())})
        check_checkpoint(asked.checkpoint)
    with running(asked.master, "vestnik derive") as spark:
        if asked.checkpoint is not None:
            events = _events(spark.readStream, asked)
            with _until_stopped() as stopping:
                target = Target(url=asked.to, folder=asked.out)
                totals = derive_stream(events, how, target, asked.checkpoint, stopping, follow=asked.follow)
        else:
            events = lake_events(spark, asked.lake) if asked.lake else _events(spark.read, asked)
            if asked.lake and asked.filter_:
                events = wanted(events, asked.filter_)
            with nullcontext() if asked.out is None else written_whole(asked.out) as new:
                target = Target(url=asked.to, folder=new)
                with task_progress(spark, "deriving"):
                    totals = derive_table(events, partial(how, early=asked.early), target, asked.source)
    _report(totals, what, asked)


def _events(reader: Any, asked: Asked) -> Any:
    """Read what is there; what is dropped after that is a loss, and stops a stream."""
    reading = reader.format("vestnik").option("url", ",".join(asked.journals)).option("startingOffsets", EARLIEST)
    return (reading.option("filter", asked.filter_) if asked.filter_ else reading).load()


def _claim(checkpoint: Path, settings: dict[str, Any]) -> None:
    """Write down what the checkpoint is of, or see that it is of the same."""
    file = checkpoint / DERIVATION
    checkpoint.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        if any(checkpoint.iterdir()):
            raise Refused(f"{checkpoint} is not empty, and no checkpoint of this command; name a new folder")
        file.write_bytes(json.encode(settings))
        return
    try:
        known = json.decode(file.read_bytes(), type=dict[str, Any])
    except ValueError as error:
        raise Refused(f"{file} is damaged ({error}); name a new folder for the checkpoint") from None
    for name in known.keys() | settings.keys():
        if known.get(name) != settings.get(name):
            was, now = (json.encode(one.get(name)).decode() for one in (known, settings))
            raise Refused(
                f"{checkpoint} is the checkpoint of another run: {name} was {was} and is {now}; name a new folder"
            )


@contextmanager
def _until_stopped() -> Iterator[Event]:
    """Set by SIGTERM and Ctrl-C."""
    stopping = Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(one, lambda *_: stopping.set()) for one in signals]
    try:
        yield stopping
    finally:
        for one, handler in zip(signals, before, strict=True):
            signal.signal(one, handler)


def _report(totals: Counter[str], what: str, asked: Asked) -> None:
    if asked.as_json:
        names = (READ, DERIVED, *([NEW] if NEW in totals else []), *([LATE] if asked.checkpoint else []))
        echo_json({**{name: totals[name] for name in names}, "skipped": {name: totals[name] for name in REASONS}})
        return
    there = f", {totals[DERIVED] - totals[NEW]:,} of them published before" if totals[NEW] < totals[DERIVED] else ""
    known = there if asked.to is not None and asked.checkpoint is None else ""
    click.echo(f"{_number(totals[DERIVED], what)} from {_number(totals[READ], 'reading')}{known}")
    if skipped := [f"{totals[name]:,} {LACKING[name]}" for name in REASONS if totals[name]]:
        click.echo(f"vestnik: events were passed over: {', '.join(skipped)}", err=True)
    if totals[LATE]:
        click.echo(f"vestnik: {totals[LATE]:,} rows came later than the watermark allows, and were dropped", err=True)


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
