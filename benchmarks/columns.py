"""Events as plain columns, and as the Arrow batches that matchers read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Words:
    """A column of strings: `vocabulary[code]` where present."""

    vocabulary: list[str]
    codes: NDArray[np.int32]
    present: Mask

    def arrow(self) -> Any:
        coded = pa.DictionaryArray.from_arrays(pa.array(self.codes, mask=~self.present), self.vocabulary)
        return coded.cast(pa.string())


@dataclass(frozen=True)
class Numbers:
    """A column of integers or doubles, valid where present."""

    values: NDArray[np.int64] | NDArray[np.float64]
    present: Mask

    def arrow(self) -> Any:
        return pa.array(self.values, mask=~self.present)


Columns: TypeAlias = dict[str, Words | Numbers]


def head(columns: Columns, count: int) -> Columns:
    """The first `count` events."""
    return {
        path: Words(column.vocabulary, column.codes[:count], column.present[:count])
        if isinstance(column, Words)
        else Numbers(column.values[:count], column.present[:count])
        for path, column in columns.items()
    }


def batch(columns: Columns) -> Any:
    """A flat `pyarrow.RecordBatch`; what is missing is null."""
    return pa.RecordBatch.from_arrays([column.arrow() for column in columns.values()], names=list(columns))


def records(columns: Columns) -> list[dict[str, object]]:
    """The events one by one, as the `data` of an `Event`; what is missing is not there."""
    rows = batch(columns).to_pylist()
    return [{path: value for path, value in row.items() if value is not None} for row in rows]
