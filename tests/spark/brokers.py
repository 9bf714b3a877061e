"""Brokers for Spark to read from and to publish to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import vestnik
from network.test_durable import process
from vestnik import Event
from vestnik.journal import Journal, Settings
from vestnik.journal.identity import identify
from vestnik.lake.journals import open_journal
from vestnik.wire.packing import TAKEN, pack_taken


def events(count: int, start: int = 1, broker: str = "b", **envelope: Any) -> list[Event]:
    return [
        Event("t.even" if n % 2 == 0 else "t.odd", {"n": n}, source="s", id=str(n), **envelope).stamped(broker, n)
        for n in range(start, start + count)
    ]


def write(folder: Path, stored: list[Event]) -> None:
    """A journal as a broker leaves it, or what it adds to it."""
    with Journal.open(folder / "journal", Settings()) as journal:
        identify(folder / "journal")
        journal.append([(TAKEN, 1_000 + (event.seq or 0), pack_taken("c", event)) for event in stored])


@contextmanager
def running(folder: Path, listen: str = "127.0.0.1:0") -> Iterator[str]:
    """A broker with a data folder, in a process of its own."""
    with process("--listen", listen, "--data", str(folder)) as (_, address):
        assert address, f"no broker listens on {listen}"
        yield f"vestnik://{address.removeprefix('vestnik://')}"


def publish(url: str, some: list[Event]) -> None:
    with vestnik.connect_sync(url) as bus:
        bus.publish_many([event.replace(stream=None, seq=None) for event in some])


def published(at: str | Path, filter: str | None = None) -> Counter[tuple[str, str, int]]:
    """The multiset of what is in a journal."""
    with open_journal(at) as journal:
        return Counter([(one.event.source, one.event.type, one.event.data["n"]) for one in journal.read(filter=filter)])
