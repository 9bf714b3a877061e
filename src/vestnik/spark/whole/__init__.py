"""The whole pipeline in one go, as a `Plan` says: a `Performance` does it, `render` makes a page of what came of it."""

from __future__ import annotations

from vestnik.spark.whole.page import render
from vestnik.spark.whole.performing import Performance, Stage, Whole
from vestnik.spark.whole.plan import Plan, read_plan

__all__ = ["Performance", "Plan", "Stage", "Whole", "read_plan", "render"]
