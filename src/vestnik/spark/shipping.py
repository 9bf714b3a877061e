"""This package on the machines of a cluster: they need what it depends on, but not the package itself."""

from __future__ import annotations

import socket
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zipfile import ZIP_DEFLATED, ZipFile

from vestnik.errors import NoMaster
from vestnik.spark.temporary import lasting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES: Final = "vestnik", "pyspark_vestnik"
ANSWER_WITHIN: Final = 5.0
"""Seconds in which a master has to be there."""
STANDALONE: Final = "spark://"


def ship(spark: SparkSession) -> None:
    """Have every machine of the session import this package as it is here, whatever is installed there."""
    spark.sparkContext.addPyFile(str(_packed()))


@lru_cache(maxsize=1)
def _packed() -> Path:
    """The sources as one file, for as long as this process lives. A name with another end is not put on the path."""
    packed = lasting("vestnik-package-") / "vestnik.zip"
    with ZipFile(packed, "w", ZIP_DEFLATED) as file:
        for package in PACKAGES:
            for root in _places(package):
                for path in sorted(root.rglob("*")):
                    if path.is_file() and path.suffix != ".pyc":
                        file.write(path, path.relative_to(root.parent))
    return packed


def _places(package: str) -> list[Path]:
    found = find_spec(package)
    return [] if found is None else [Path(place) for place in found.submodule_search_locations or ()]


def check_master(master: str) -> list[str]:
    """The hosts of a standalone master; NoMaster where nobody listens at any: Spark itself would wait for a minute."""
    hosts: list[str] = []
    reasons: list[str] = []
    for address in master.removeprefix(STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        hosts.append(host.strip("[]"))
        try:
            socket.create_connection((hosts[-1], int(port)), ANSWER_WITHIN).close()
        except (OSError, ValueError) as error:
            reasons.append(str(error) if port.isdecimal() else f"{address} has no port")
    if len(reasons) == len(hosts):
        raise NoMaster(master, "; ".join(reasons))
    return hosts
