"""One Spark session for the run: with several workers, all tests here go to the same one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.is_relative_to(HERE):
        item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from vestnik.spark import session

    started = session("local[2]", "tests")
    yield started
    started.stop()
