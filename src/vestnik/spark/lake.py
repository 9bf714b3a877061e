"""The tables of a lake as DataFrames."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from vestnik.lake.declared import schema_of
from vestnik.lake.layout import Lake, is_digest
from vestnik.lake.manifest import DataFile, PlainFile
from vestnik.lake.schema import QUARANTINE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PATTERNS: Final = re.compile(r"[{}\[\]*?\\]")
"""What a path has that Spark takes for a pattern."""
NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""What is null to Spark as the name of a folder."""


def events(
    spark: SparkSession, lake: str | PathLike[str], type: str | None = None, *, without: Container[Path] = ()
) -> DataFrame:
    """The event table as of now, with the columns `type_` and `date` that it is partitioned by.

    Of one type, with the columns that are declared for it; `without` some of the files.
    """
    folder, version = Lake(lake).folder, Lake(lake).latest()
    declared = version.declared.get(type, {}) if type is not None else {}
    partitions = [pa.field("type_", pa.string()), pa.field("date", pa.date32())]
    schema = _schema(pa.schema([*schema_of(declared), *partitions]))
    files = [file for file in version.events if type in (None, file.type) and folder / file.path not in without]
    if not files:
        return spark.createDataFrame([], schema)
    base = (folder / files[0].path).parents[2]  # type_= and date= are the two folders between
    frame = spark.read.schema(schema).option("basePath", str(base)).parquet(*_paths(folder, files))
    if all(_is_folder_name(file.type) for file in files):
        return frame
    return frame.withColumn("type_", frame["type"])


def _is_folder_name(type: str) -> bool:
    """Whether Spark reads the type from the name of its folder: it knows escaped bytes, but no UTF-8 of them."""
    return type.isascii() and type != NULL and not is_digest(type)


def quarantine(spark: SparkSession, lake: str | PathLike[str]) -> DataFrame:
    """What was in the journals and is no event."""
    folder, files = Lake(lake).folder, Lake(lake).latest().quarantine
    schema = _schema(QUARANTINE)
    return spark.read.schema(schema).parquet(*_paths(folder, files)) if files else spark.createDataFrame([], schema)


def _paths(folder: Path, files: Sequence[DataFile | PlainFile]) -> list[str]:
    return literal([folder / file.path for file in files])


def literal(paths: Iterable[Path]) -> list[str]:
    """Paths as Spark has to be told them, so that it takes none for a pattern."""
    return [PATTERNS.sub(r"\\\g<0>", str(path)) for path in paths]


def _schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(pa.schema([field.with_nullable(True) for field in schema]))
