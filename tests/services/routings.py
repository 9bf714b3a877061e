"""The ways of routing that brokers can have, for tests."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from vestnik.errors import InvalidSetting
from vestnik.routing.registry import known_strategies
from vestnik.server.settings import WITH_ADVERTISEMENTS, Settings


def _live() -> list[str]:
    """Return the strategies that a broker process accepts."""
    found: list[str] = []
    for name in known_strategies():
        with suppress(InvalidSetting):
            found.append(Settings(name="b", routing=name).routing)
    return found


ROUTINGS = [f"{name}{suffix}" for name in _live() for suffix in ("", WITH_ADVERTISEMENTS)]


def terms(routing: str) -> dict[str, Any]:
    """Return the settings of a broker that routes so."""
    name = routing.removesuffix(WITH_ADVERTISEMENTS)
    return {"routing": name, "advertisements": routing != name}


def flags(routing: str) -> list[str]:
    """Return the options of `vestnik serve` for a broker that routes so."""
    name = routing.removesuffix(WITH_ADVERTISEMENTS)
    return ["--routing", name, *(["--advertisements"] if routing != name else [])]
