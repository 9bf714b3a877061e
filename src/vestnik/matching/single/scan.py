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


@cache
def fast_scan() -> Scan:
    """The kernel where numba is installed, else the plain scan."""
    try:
        from vestnik.matching.single.kernel import scan
    except ModuleNotFoundError:
        return plain_scan
    return scan
