"""Numbers for people."""

from __future__ import annotations


def number(value: float) -> str:
    """Four significant digits, whole numbers in full."""
    if value == round(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
