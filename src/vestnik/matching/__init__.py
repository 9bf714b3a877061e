"""Who wants it: finding, among many filters, those that an event or a batch of events satisfies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vestnik.errors import MissingExtra
from vestnik.matching.single.index import Matcher

if TYPE_CHECKING:
    from vestnik.matching.batch.compiled import CompiledFilters as CompiledFilters
    from vestnik.matching.batch.compiled import compile_filters as compile_filters

__all__ = ["Matcher"]  # what every installation has


def __getattr__(name: str) -> Any:
    if name not in ("CompiledFilters", "compile_filters"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from vestnik.matching.batch import compiled
    except ModuleNotFoundError as error:
        raise MissingExtra("compiling filters for batches", "fast") from error
    return getattr(compiled, name)
