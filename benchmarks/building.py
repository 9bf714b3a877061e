"""From plain filters to those of the package."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.workloads import PlainFilter
from vestnik import Filter


def build(filters: Iterable[PlainFilter]) -> dict[str, Filter]:
    """The filters by id: `f0`, `f1`, ... Not measured, but at a million of them what a run waits for most."""
    return {f"f{number}": Filter.parse(str(plain)) for number, plain in enumerate(filters)}
