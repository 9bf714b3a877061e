"""The heads that are scanned together: all that are filed under one value, or under none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vestnik.matching.single.store import HEAD, RECORD, ROW, Block, Store

LARGEST = 1024
"""Heads in a block: what it may take to find one among them."""


class Bucket:
    """Heads in blocks, `size` of them. `key` is the value that they are filed under, at `path`.

    `rows` are theirs, once somebody has asked for them.
    """

    __slots__ = ("blocks", "key", "path", "rows", "size")

    def __init__(self, path: tuple[Any, ...] = (), key: Any = None) -> None:
        self.path = path
        self.key = key
        self.blocks: list[Block] = []
        self.size = 0
        self.rows: list[int] = []

    def known_rows(self, store: Store) -> list[int]:
        """Read the rows of all heads, and keep them until there are others."""
        heads = [at for block in self.blocks for at in range(HEAD * block.at, HEAD * (block.at + block.size), HEAD)]
        self.rows = [store.records[store.heads[at + RECORD]] >> ROW for at in heads]
        return self.rows

    def put(self, store: Store, head: Sequence[int]) -> Block:
        """Add a head; the block that took it."""
        for block in reversed(self.blocks):
            if block.size < LARGEST:
                break
        else:
            block = Block()
            self.blocks.append(block)
        store.add_head(block, head)
        self.rows = []
        self.size += 1
        return block

    def take(self, store: Store, block: Block, record: int) -> None:
        """Remove the head of a record from the block that took it."""
        store.remove_head(block, record)
        self.rows = []
        self.size -= 1
        if not block.size:
            self.blocks.remove(block)
