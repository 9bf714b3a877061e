"""Waits until all brokers say in their traces that nothing happens, and that they have read the same."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

LOOK_EVERY = 0.5


async def until_quiet(traces: list[Path], seconds: float) -> bool:
    """Return whether the brokers were quiet at the same time, and had read all logs, within some seconds."""
    until = time.monotonic() + seconds
    began = time.time()
    while time.monotonic() < until:
        said = [_last(trace) for trace in traces]
        found = [one for one in said if one is not None and one["at"] > began]
        if len(found) == len(traces) and _agree(found):
            return True
        await asyncio.sleep(LOOK_EVERY)
    return False


def _last(trace: Path) -> dict[str, Any] | None:
    """Return the last time that a broker said that nothing happens."""
    lines = [line for line in trace.read_bytes().splitlines() if line.startswith(b'{"op":"Quiet"')]
    return json.loads(lines[-1]) if lines else None


def _agree(said: list[dict[str, Any]]) -> bool:
    logs = [dict(one["logs"]) for one in said]
    at_once = max(one["since"] for one in said) <= min(one["at"] for one in said)
    return at_once and all(one == logs[0] for one in logs) and len(logs[0]) == len(said)
