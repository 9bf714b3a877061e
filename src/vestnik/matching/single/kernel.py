"""The scan, compiled by numba."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numba import njit

from vestnik.matching.single.paths import Reading
from vestnik.matching.single.spans import CONTAINS, SURE, UNSURE
from vestnik.matching.single.store import COARSE, COLUMN, COUNT, HEAD, RECORD, ROW, TEXT_AT, Store

_ROW_BITS, _COLUMN_BITS, _TEXT_BITS = (1 << ROW) - 1, (1 << COLUMN) - 1, (1 << TEXT_AT) - 1
_DOUBT_BITS = (1 << COUNT) - 1


def scan(store: Store, event: Reading) -> list[int]:
    """As `plain_scan`."""
    if store.views is None:
        heads = np.frombuffer(store.heads, np.int32)
        store.views = heads.reshape(-1, HEAD), np.frombuffer(store.records, np.int64)
    heads, records = store.views
    most = 0
    asked = event.codes.copy()
    for block in event.blocks:
        asked += (block.at, block.size)
        most += block.size
    found = np.empty(most, np.int64)
    text = np.frombuffer(event.text or b"\0", np.uint8)
    count = _scan(heads, records, np.frombuffer(array("q", asked), np.int64), len(event.codes), text, found)
    rows: list[int] = found[:count].tolist()
    return rows


@njit(cache=True, nogil=True)
def _scan(heads: Any, records: Any, asked: Any, columns: int, text: Any, found: Any) -> int:
    """`asked` has the code of each column, then where each block is and its size."""
    coarse = np.empty(columns, np.int32)
    for column in range(columns):
        coarse[column] = asked[column] >> COARSE
    candidates = np.uint64(0)  # numbers that have no sign: so no index is looked at for counting from the end
    for b in range(columns, len(asked), 2):
        for at in range(np.uint64(asked[b]), np.uint64(asked[b] + asked[b + 1])):
            head = heads[at]
            one, two = coarse[np.uint32(head[0])], coarse[np.uint32(head[3])]
            found[candidates] = head[RECORD]  # stays where it passes: to branch here would cost more
            passes = (one >= head[1]) & (one <= head[2]) & (two >= head[4]) & (two <= head[5])
            candidates += np.uint64(passes)
    count = 0
    for i in range(candidates):
        at = found[i]
        row, left, doubtful = records[at] >> ROW, records[at] & _ROW_BITS, False
        at += 1
        while left:
            header = records[at]
            code = asked[header >> COLUMN]
            doubt = header & _DOUBT_BITS
            end = at + 1 + 2 * ((header & _COLUMN_BITS) >> COUNT)
            at += 1
            if doubt == CONTAINS:
                if code >= 0 and _contains(text, code, records[at], abs(records[at + 1])) != (records[at + 1] > 0):
                    break
            else:
                while at < end and code > records[at + 1]:
                    at += 2
                if at == end or code < records[at]:
                    break
                if doubt != SURE:
                    doubtful |= doubt == UNSURE or (code & 1 and (code == records[at] or code == records[at + 1]))
            at = end
            left -= 1
        if not left:
            found[count] = ~row if doubtful else row
            count += 1
    return count


@njit(cache=True, nogil=True)
def _contains(text: Any, code: int, wanted: int, size: int) -> bool:
    """Whether the text at `code` contains `size` bytes, which are the number `wanted`."""
    last = 0
    start = code >> TEXT_AT
    for i in range(code & _TEXT_BITS):
        last = (last << 8 | text[start + i]) & ((1 << 8 * size) - 1)
        if last == wanted and i + 1 >= size:
            return True
    return False
