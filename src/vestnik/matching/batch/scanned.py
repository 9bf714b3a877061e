"""JSON documents as columns without decoding them: the values at the paths in use are found in the text, and ranked.

It gives what a decoder gives (`documents` is the slow twin), or nothing: a text that is not plainly JSON is left to the
decoder, which says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vestnik.matching.batch.columns import UNREADABLE, Columns, Place, Strings, ranked, value_elements
from vestnik.matching.batch.kernels import LIST_RANK, MISSING_RANK
from vestnik.matching.batch.lines import Line, Ranks
from vestnik.matching.batch.scanning import FLOAT, INT, LONG, ODD, TEXT, distinct, gathered, names_of, scan
from vestnik.model.spaces import DATA, Path
from vestnik.model.values import MISSING

LONGEST = 2**31 - 1
"""Bytes of a text whose places are 32 bits."""


class Scanner:
    """Finds values at the given paths, which are below `data`, in columns of text that are the data of events."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._names, self._nodes = names_of([path[1:] for path in paths if path[0] == DATA])

    def read(self, data: pa.Array, place: Place) -> ScannedColumns | None:
        """The columns of a text column without nulls; None where a decoder has to look at it."""
        try:
            column = data.cast(pa.large_string())
            column.validate(full=True)
        except pa.ArrowInvalid:
            return None
        _, offsets, content = column.buffers()
        if content is None or content.size > LONGEST:
            return None
        text = np.frombuffer(content, np.uint8)
        at = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        found = Places.empty(len(column), len(self._names.parent))
        if scan(text, at, self._names, *found) < len(column):
            return None
        try:
            return ScannedColumns(self._nodes, text, found, place)
        except UNREADABLE:
            return None


class Places(NamedTuple):
    """Row x node: the kind of value that is there, where in the text it begins and ends, and the number that it is."""

    kinds: NDArray[np.uint8]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    ints: NDArray[np.int64]
    floats: NDArray[np.float64]  # in the same place

    @staticmethod
    def empty(rows: int, nodes: int) -> Places:
        shape = rows, nodes
        ints = np.empty(shape, np.int64)
        starts, ends = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        return Places(np.zeros(shape, np.uint8), starts, ends, ints, ints.view(np.float64))


class ScannedColumns:
    """The values that were found. What is odd is decoded at once: DecodeError where it cannot be."""

    def __init__(self, nodes: dict[Path, int], text: NDArray[np.uint8], found: Places, place: Place) -> None:
        self._nodes, self._text, self._found, self._place = nodes, text, found, place
        self._strings: dict[int, Strings] = {}
        rows, columns = np.nonzero(found.kinds == ODD)
        self._odd = {where: self._decoded(*where) for where in zip(rows.tolist(), columns.tolist(), strict=True)}

    def __len__(self) -> int:
        return len(self._found.kinds)

    def ranks(self, path: Path, line: Line, first: int, last: int) -> Ranks:
        node = self._nodes[path[1:]]
        kinds = self._found.kinds[first:last, node]
        ranks: Ranks = kinds.astype(np.int32)
        for kind in (INT, FLOAT, LONG, TEXT, ODD):
            rows = np.flatnonzero(kinds == kind)
            if len(rows):
                ranks[rows] = self._ranks(kind, first + rows, node, path, line)
        return ranks

    def _ranks(self, kind: int, rows: NDArray[np.int64], node: int, path: Path, line: Line) -> Ranks:
        if kind == TEXT:
            strings = self._strings_at(node)
            return line.rank_text(strings.text, strings.offsets)[strings.codes[rows]]
        if kind == ODD:
            values = [self._odd[row, node] for row in rows.tolist()]
            return ranked(values, line, path, lambda number: self._place(int(rows[number])))
        if kind == INT:
            return line.rank_ints(self._found.ints[rows, node])
        return line.rank_floats(self._found.floats[rows, node] if kind == FLOAT else self._long(rows, node))

    def _long(self, rows: NDArray[np.int64], node: int) -> NDArray[np.float64]:
        content, at = gathered(self._text, self._found.starts[rows, node], self._found.ends[rows, node])
        texts = pa.LargeStringArray.from_buffers(len(rows), pa.py_buffer(at), pa.py_buffer(content))
        found: NDArray[np.float64] = texts.cast(pa.float64()).to_numpy()
        return found

    def strings(self, path: Path, first: int, last: int) -> Strings:
        strings = self._strings_at(self._nodes[path[1:]])
        return strings._replace(codes=strings.codes[first:last])

    def elements(self, path: Path, first: int, last: int) -> tuple[NDArray[np.int64], Columns]:
        node = self._nodes[path[1:]]
        is_list = self._found.kinds[first:last, node] == LIST_RANK
        lists = [self._decoded(row, node) if found else () for row, found in enumerate(is_list.tolist(), first)]
        return value_elements(lists, lambda row: self._place(first + row))

    def value(self, path: Path, event: int) -> Any:
        node = self._nodes[path[1:]]
        return self._decoded(event, node) if self._found.kinds[event, node] != MISSING_RANK else MISSING

    def _decoded(self, row: int, node: int) -> Any:
        return msgspec.json.decode(self._text[self._found.starts[row, node] : self._found.ends[row, node]].data)

    def _strings_at(self, node: int) -> Strings:
        """All strings of a node; the empty one where there is none."""
        if node not in self._strings:
            kinds = self._found.kinds[:, node]
            starts = np.where(kinds == TEXT, self._found.starts[:, node] + 1, 0)
            ends = np.where(kinds == TEXT, self._found.ends[:, node] - 1, 0)
            codes, firsts = distinct(self._text, starts, ends)
            content, at = gathered(self._text, starts[firsts], ends[firsts])
            odd = [row for row in np.flatnonzero(kinds == ODD).tolist() if isinstance(self._odd[row, node], str)]
            if odd:
                more = [self._odd[row, node].encode() for row in odd]
                codes[odd] = len(firsts) + np.arange(len(odd))
                content = np.concatenate([content, np.frombuffer(b"".join(more), np.uint8)])
                at = np.concatenate([at, at[-1] + np.cumsum([len(text) for text in more])])
            self._strings[node] = Strings(content, at, codes)
        return self._strings[node]
