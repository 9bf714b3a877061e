"""The benchmark of how tables grow runs."""

from __future__ import annotations

from benchmarks.report import Report
from benchmarks.routing_scale import entries


def test_a_quick_run() -> None:
    report = Report("routing_scale", quick=True)
    entries(report, 100)
    assert [row.unit for row in report.rows] == ["s", "MiB", "us a subscription", "us a broker touched"] * 2
    assert all(row.ours > 0 for row in report.rows)
