"""The reserved names of the filter language."""

from __future__ import annotations

KEYWORDS = frozenset(
    "ALL AND ANY BETWEEN BOOLEAN ESCAPE EXISTS FALSE GLOB IN IS LIKE LIST MAP MATCHES NOT NULL NUMBER OR STRING"
    " TIMESTAMP TRUE".split()
)
