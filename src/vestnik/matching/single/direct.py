"""Candidates one by one: where they are few, to ask each of them is faster than to read the event for a scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vestnik.matching.single.buckets import Bucket
from vestnik.matching.single.store import HEAD, RECORD, ROW, Store
from vestnik.model.boxes import Box
from vestnik.model.events import Event
from vestnik.model.spaces import EVENT

FEW = 8
"""Heads that are asked one by one."""


def asked(store: Store, buckets: Iterable[Bucket], boxes: Sequence[Box], event: Event) -> list[int]:
    """The rows in `buckets` that hold of `event`, which has led to them."""
    heads, records, read = store.heads, store.records, EVENT.read
    found: list[int] = []
    for bucket in buckets:
        settled = bucket.path
        for block in bucket.blocks:
            for at in range(HEAD * block.at + RECORD, HEAD * (block.at + block.size), HEAD):
                row = records[heads[at]] >> ROW
                box = boxes[row]
                for path, values in box.sets:
                    if path != settled and not values.contains(read(event, path)):
                        break
                else:
                    if not box.literals or _agrees(box, event):
                        found.append(row)
    return found


def _agrees(box: Box, event: Event) -> bool:
    return all(atom.matches(EVENT.read(event, path)) is holds for path, atom, holds in box.literals)
