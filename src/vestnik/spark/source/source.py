"""The data source `vestnik`. What it does is in the modules beside it, which are loaded when it is used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class VestnikSource(DataSource):
    """Reads the journals of brokers, and publishes rows as events; docs/guide/pipeline.md has the options."""

    @classmethod
    def name(cls) -> str:
        return "vestnik"

    def schema(self) -> StructType:
        from vestnik.spark.source.options import Reading
        from vestnik.spark.source.reading import schema_of

        return schema_of(Reading.of(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        from vestnik.spark.launch import PUSHES
        from vestnik.spark.source.options import Reading
        from vestnik.spark.source.reading import BatchReader, PushedReader, check_schema

        options = Reading.of(self.options)
        check_schema(schema, options)
        return (PushedReader if os.environ.get(PUSHES) else BatchReader)(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from vestnik.spark.source.options import Reading
        from vestnik.spark.source.reading import check_schema
        from vestnik.spark.source.streaming import StreamReader

        options = Reading.of(self.options)
        check_schema(schema, options)
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from vestnik.spark.source.options import Writing
        from vestnik.spark.source.writing import BatchWriter, check_columns

        check_columns(schema.names, overwrite)
        return BatchWriter(Writing.of(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from vestnik.spark.source.options import Writing
        from vestnik.spark.source.writing import StreamWriter, check_columns

        check_columns(schema.names, overwrite)
        return StreamWriter(Writing.of(self.options))
