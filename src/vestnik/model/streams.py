"""A bounded memory of what came last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

WINDOW = 1024
"""How far back in a stream, and in the ids of a source, a duplicate is recognised."""
STREAMS = 10_000
"""Streams that are remembered, those of the latest events; a subscriber and a broker keep up to twice as many."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """What was put down, for at least the `size` keys that were put last."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: Key) -> Value | None:
        value = self._young.get(key)
        return self._old.get(key) if value is None else value

    def items(self) -> Iterator[tuple[Key, Value]]:
        for key, value in self._old.items():
            if key not in self._young:
                yield key, value
        yield from self._young.items()

    def put(self, key: Key, value: Value) -> None:
        if len(self._young) >= self._size and key not in self._young:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def discard(self, key: Key) -> None:
        self._young.pop(key, None)
        self._old.pop(key, None)
