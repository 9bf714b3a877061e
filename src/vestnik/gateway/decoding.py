"""Reading what clients send without holding up the event loop.

A megabyte of JSON, or a filter of a kilobyte, can take a second to read. What may take long is read on the thread for
such work; what is short is read at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from vestnik.model.filters import Filter
from vestnik.transport import heavy

AT_ONCE: Final = 8 * 1024
"""Bytes of JSON that are read without the thread."""

Result = TypeVar("Result")


async def decoded(size: int, read: Callable[[], Result]) -> Result:
    """Return what `read` returns for an input of `size` bytes; raise what it raises."""
    return read() if size <= AT_ONCE else await heavy.begin(read)


async def parsed(text: str) -> Filter:
    """Return the filter that `text` describes. A short text can be as costly as a long one."""
    return await heavy.begin(lambda: Filter.parse(text))
