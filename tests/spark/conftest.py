"""One Spark session for the run: with several workers, all tests here go to the same one (tests/conftest.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from vestnik.spark import session

    started = session("local[2, 2]", "tests")
    yield started
    started.stop()
