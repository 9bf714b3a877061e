"""Which rows hold of an event.

A scan takes the store and an event as it was read. It gives the rows that hold, and as `~row` those that hold as far as
codes can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

from vestnik.matching.single.paths import Reading
from vestnik.matching.single.spans import CONTAINS, SURE, UNSURE
from vestnik.matching.single.store import COARSE, HEAD, ROW, TEXT_AT, Store, opened

Scan: TypeAlias = Callable[[Store, Reading], list[int]]


def plain_scan(store: Store, event: Reading) -> list[int]:
    """The scan as it is meant: slow, and what the kernel must agree with."""
    coarse = [code >> COARSE for code in event.codes]
    found: list[int] = []
    for block in event.blocks:
        numbers = iter(store.heads[HEAD * block.at : HEAD * (block.at + block.size)])
        for a, low_a, high_a, b, low_b, high_b, record, _ in zip(*[numbers] * HEAD, strict=True):
            if low_a <= coarse[a] <= high_a and low_b <= coarse[b] <= high_b:
                found += _settled(store.records, record, event)
    return found


def _settled(records: Sequence[int], at: int, event: Reading) -> tuple[int, ...]:
    """The row of a record where it holds, as a scan gives it, or nothing."""
    row, count = records[at] >> ROW, records[at] & (1 << ROW) - 1
    doubtful = False
    at += 1
    for _ in range(count):
        column, spans, doubt = opened(records[at])
        code = event.codes[column]
        end = at + 1 + 2 * spans
        if doubt == CONTAINS:
            if not _contains(event.text, code, records[at + 1], records[at + 2]):
                return ()
        else:
            fitting = next((i for i in range(at + 1, end, 2) if code <= records[i + 1]), end)
            if fitting == end or code < records[fitting]:
                return ()
            at_end = bool(code & 1) and code in (records[fitting], records[fitting + 1])
            doubtful = doubtful or doubt == UNSURE or (doubt != SURE and at_end)
        at = end
    return (~row if doubtful else row,)


def _contains(text: bytes | bytearray, code: int, wanted: int, size: int) -> bool:
    if code < 0:
        return True
    at, length = code >> TEXT_AT, code & (1 << TEXT_AT) - 1
    return (wanted.to_bytes(abs(size), "big") in text[at : at + length]) is (size > 0)


_begin: Callable[[Callable[[], object]], object] | None = None


def load_by(begin: Callable[[Callable[[], object]], object] | None) -> None:
    """Have the kernel loaded by `begin`, on another thread for example: that takes seconds. None: when it is needed."""
    global _begin
    _begin = begin


def fast_scan() -> Scan:
    """The kernel where numba is installed and the kernel is there already, else the plain scan."""
    if _begin is None or _kernel.cache_info().currsize:
        return _kernel()
    if not _loading:
        _loading.append(True)
        _begin(_kernel)
    return plain_scan


_loading: list[bool] = []  # whether somebody has begun to


@cache
def _kernel() -> Scan:
    """The kernel, compiled, where numba is installed."""
    try:
        from vestnik.matching.single.kernel import scan
    except ModuleNotFoundError:
        return plain_scan
    for text in (bytearray(), bytearray(1)):  # which are of two types for the compiler
        scan(Store(), Reading([], [], text, []))
    return scan
