"""The whole pipeline in one go, as a `Plan` says: a `Performance` does it, `render` makes a page of what came of it."""

from __future__ import annotations

from vestnik.spark.whole.page import render
from vestnik.spark.whole.performing import Performance, Whole
from vestnik.spark.whole.plan import Plan, read_plan

__all__ = ["Performance", "Plan", "Whole", "read_plan", "render"]
