"""Define the data source ``holdfast-database`` that PySpark looks up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from holdfast.spark.catalog import refuse_table_properties
from holdfast.spark.failures import one_sentence

# Each process of a job needs only one of these modules, and does not import the others.
if TYPE_CHECKING:
    from holdfast.spark.database.reader import DatabaseReader
    from holdfast.spark.database.writer import DatabaseWriter


class HoldfastDatabaseDataSource(DataSource):
    """``spark.read.format("holdfast-database")`` and ``df.write.format("holdfast-database")``.

    Options are listed in docs/reference/options.md.
    """

    @classmethod
    def name(cls) -> str:
        return "holdfast-database"

    def schema(self) -> StructType:
        """Infer the schema from a sample. Spark calls this only if the user gave none."""
        from holdfast.options.database import parse_database_read
        from holdfast.spark.database.inference import infer_schema

        with one_sentence():
            refuse_table_properties(self.options)
            return infer_schema(parse_database_read(self.options))

    def reader(self, schema: StructType) -> DatabaseReader:
        """Build a scan of the columns in `schema`."""
        from holdfast.options.database import parse_database_read
        from holdfast.spark.database.pushdown import PushingDatabaseReader
        from holdfast.spark.database.reader import DatabaseReader

        with one_sentence():
            options = parse_database_read(self.options)
            return PushingDatabaseReader(options, schema) if options.push_filters else DatabaseReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DatabaseWriter:
        """Check a write, and announce its load in the database."""
        from holdfast.options.database import parse_database_write
        from holdfast.spark.database.writer import DatabaseWriter

        with one_sentence():
            return DatabaseWriter(parse_database_write(self.options), schema, overwrite)
