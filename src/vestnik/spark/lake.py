"""The tables of a lake as DataFrames."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vestnik.lake.declared import schema_of
from vestnik.lake.layout import EVENTS, Lake
from vestnik.lake.schema import QUARANTINE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def events(spark: SparkSession, lake: str | PathLike[str], type: str | None = None) -> DataFrame:
    """The event table as of now, with the columns `type_` and `date` that it is partitioned by.

    Of one type, with the columns that are declared for it.
    """
    found = Lake(lake)
    declared = found.latest().declared.get(type, {}) if type is not None else {}
    partitions = [pa.field("type_", pa.string()), pa.field("date", pa.date32())]
    schema = _schema(pa.schema([*schema_of(declared), *partitions]))
    if not (paths := found.paths(type)):
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).option("basePath", str(found.folder / EVENTS)).parquet(*paths)


def quarantine(spark: SparkSession, lake: str | PathLike[str]) -> DataFrame:
    """What was in the journals and is no event."""
    found = Lake(lake)
    paths = [str(found.folder / file.path) for file in found.latest().quarantine]
    schema = _schema(QUARANTINE)
    return spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)


def _schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(pa.schema([field.with_nullable(True) for field in schema]))
