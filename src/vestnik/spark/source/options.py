"""What `option(...)` may say to the data source, checked where it enters."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

from vestnik.errors import InvalidSetting
from vestnik.lake.journals import is_address, located
from vestnik.model.filters import Filter
from vestnik.model.nearest import meant
from vestnik.spark.source.offsets import BEGINNING, LATEST, Wanted, read_offsets

CONNECTION: Final = {"token": "token", "tlsCa": "tls_ca", "tlsCert": "tls_cert", "tlsKey": "tls_key"}
EVENTS_TABLE, UNREAD_TABLE = "events", "unread"
FAIL, QUARANTINE = "fail", "quarantine"
PER_PARTITION: Final = 500_000

_COMMON: Final = ("url", *CONNECTION, "timeout")
READING: Final = (
    *_COMMON,
    *("filter", "content", "startingOffsets", "endingOffsets"),
    *("maxEventsPerTrigger", "maxEventsPerPartition", "failOnDataLoss"),
)
WRITING: Final = (*_COMMON, "source", "job", "stagingLocation", "onBadRow")
_OF_SPARK: Final = frozenset({"path", "checkpointlocation", "queryname"})


@dataclass(frozen=True, kw_only=True)
class Reading:
    """From which brokers to read, what, from where to where, and how much at once."""

    urls: tuple[str, ...]
    connection: dict[str, Any] = field(default_factory=dict)
    timeout: float = 10.0
    filter: Filter = field(default_factory=Filter.all)
    content: str = EVENTS_TABLE
    starting: Wanted = BEGINNING
    ending: Wanted = LATEST
    per_trigger: int | None = None
    per_partition: int = PER_PARTITION
    is_strict: bool = True

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        said = _known(options, READING)
        per_trigger = said.get("maxEventsPerTrigger")
        return cls(
            urls=_urls(said.get("url") or options.get("path")),
            connection=_connection(said),
            timeout=_seconds(said),
            filter=Filter.parse(said["filter"]) if said.get("filter") else Filter.all(),
            content=_one_of("content", said, EVENTS_TABLE, UNREAD_TABLE),
            starting=read_offsets("startingOffsets", said.get("startingOffsets", BEGINNING)),
            ending=read_offsets("endingOffsets", said.get("endingOffsets", LATEST)),
            per_trigger=None if per_trigger is None else _count("maxEventsPerTrigger", per_trigger),
            per_partition=_count("maxEventsPerPartition", said.get("maxEventsPerPartition", str(PER_PARTITION))),
            is_strict=_one_of("failOnDataLoss", said, "true", "false") == "true",
        )


@dataclass(frozen=True, kw_only=True)
class Writing:
    """To which broker to publish, and where rows wait until they are."""

    url: str
    connection: dict[str, Any] = field(default_factory=dict)
    timeout: float = 10.0
    source: str = "spark"
    job: str | None = None
    staging: Path
    is_lenient: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        said = _known(options, WRITING)
        urls = _urls(said.get("url") or options.get("path"))
        if len(urls) != 1 or not is_address(urls[0]):
            raise InvalidSetting(
                "url", f"events are published to one broker, vestnik://HOST:PORT, not {','.join(urls)}"
            )
        job = said.get("job")
        if job is not None and (not job or "/" in job or job.startswith(".")):
            raise InvalidSetting(
                "job", f"it names a folder, and is not empty and without / and leading dots, not {job!r}"
            )
        return cls(
            url=urls[0],
            connection=_connection(said),
            timeout=_seconds(said),
            source=said.get("source") or "spark",
            job=job,
            staging=_staging(said.get("stagingLocation"), options.get("checkpointLocation")),
            is_lenient=_one_of("onBadRow", said, FAIL, QUARANTINE) == QUARANTINE,
        )


def _known(options: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """What is said, by the names as they are written here; Spark does not mind the case."""
    by_lower = {name.lower(): name for name in names}
    for name in options:
        if name.lower() not in by_lower and name.lower() not in _OF_SPARK:
            raise InvalidSetting(name, f"there is no such option of vestnik{meant(name, names)}")
    return {by_lower[name.lower()]: value for name, value in options.items() if name.lower() in by_lower}


def _urls(text: str | None) -> tuple[str, ...]:
    urls = tuple([located(url.strip()) for url in (text or "").split(",") if url.strip()])
    if not urls:
        raise InvalidSetting("url", 'say where: option("url", "vestnik://HOST:PORT") or the data folder of a broker')
    return urls


def _connection(said: Mapping[str, str]) -> dict[str, Any]:
    return {ours: said[name] for name, ours in CONNECTION.items() if name in said}


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InvalidSetting(name, f"it is a number from 1, not {text!r}")
    return int(text)


def _seconds(said: Mapping[str, str]) -> float:
    text = said.get("timeout", "10")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidSetting("timeout", f"it is a number of seconds, not {text!r}")
    return seconds


def _one_of(name: str, said: Mapping[str, str], *values: str) -> str:
    """The first where nothing is said."""
    found = said.get(name, values[0]).lower()
    if found not in values:
        raise InvalidSetting(name, f"it is {' or '.join(values)}, not {said[name]!r}")
    return found


def _staging(given: str | None, checkpoint: str | None) -> Path:
    """Where rows are staged: as said, in the checkpoint, or in a folder of this machine for passing things."""
    if given is None and checkpoint is None:
        return Path(tempfile.gettempdir()) / f"vestnik-staging-{os.getuid()}"
    parts = urlsplit(given or checkpoint or "")
    if parts.scheme not in ("", "file"):
        raise InvalidSetting(
            "stagingLocation",
            f"rows are staged in a folder that the driver and all executors have, not at {given or checkpoint}; "
            "give one on a file system that they share",
        )
    folder = Path(unquote(parts.path) if parts.scheme else (given or checkpoint or ""))
    return folder.absolute() if given else folder.absolute() / "vestnik-staging"
