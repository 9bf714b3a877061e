"""What brokers took, as tables: Arrow and Parquet, without a JVM."""

from __future__ import annotations

from importlib.util import find_spec

from vestnik.errors import MissingExtra

if find_spec("pyarrow") is None or find_spec("numpy") is None:
    raise MissingExtra("reading and writing tables of events", "lake")
