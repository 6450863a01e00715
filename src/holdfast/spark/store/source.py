"""Define the data source ``holdfast-store`` that PySpark looks up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from holdfast.spark.catalog import refuse_table_properties
from holdfast.spark.failures import one_sentence

# Each process of a job needs only one of these modules, and does not import the others.
if TYPE_CHECKING:
    from holdfast.spark.store.reader import StoreReader
    from holdfast.spark.store.writer import StoreWriter


class HoldfastStoreDataSource(DataSource):
    """``spark.read.format("holdfast-store")`` and ``df.write.format("holdfast-store")``.

    Options are listed in docs/reference/options.md.
    """

    @classmethod
    def name(cls) -> str:
        return "holdfast-store"

    def schema(self) -> StructType:
        """Infer the schema from a sample. Spark calls this only if the user gave none."""
        from holdfast.options.store import parse_store_read
        from holdfast.spark.store.inference import infer_schema

        with one_sentence():
            refuse_table_properties(self.options)
            return infer_schema(parse_store_read(self.options))

    def reader(self, schema: StructType) -> StoreReader:
        """Build a scan of the columns in `schema`."""
        from holdfast.options.store import parse_store_read
        from holdfast.spark.store.pushdown import PushingStoreReader
        from holdfast.spark.store.reader import StoreReader

        with one_sentence():
            options = parse_store_read(self.options)
            return PushingStoreReader(options, schema) if options.push_filters else StoreReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> StoreWriter:
        """Check a write, and announce its load in the store."""
        from holdfast.options.store import parse_store_write
        from holdfast.spark.store.writer import StoreWriter

        with one_sentence():
            return StoreWriter(parse_store_write(self.options), schema, overwrite)
