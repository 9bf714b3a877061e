"""Work over stored or very many events, on Spark. `session()` starts it; the stages are functions of DataFrames."""

from __future__ import annotations

from vestnik.spark.session import session as session

__all__ = ["session"]
