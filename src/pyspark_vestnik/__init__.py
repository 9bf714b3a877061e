"""Where Spark looks for `format("vestnik")`: it needs no registration."""

from vestnik.spark.source.source import VestnikSource as DefaultSource

__all__ = ["DefaultSource"]
