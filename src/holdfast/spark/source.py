"""What PySpark looks for: the data source ``holdfast``."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from holdfast.spark.failures import one_sentence
from holdfast.spark.options import parse_read_options, parse_stream_options, parse_write_options
from holdfast.spark.pushdown import PushingReader
from holdfast.spark.reader import HoldfastReader, infer_schema
from holdfast.spark.stream_writer import HoldfastStreamWriter
from holdfast.spark.writer import HoldfastWriter

__all__ = ["HoldfastDataSource"]


class HoldfastDataSource(DataSource):
    """``df.write.format("holdfast")``, ``df.writeStream.format("holdfast")`` and ``spark.read.format("holdfast")``.

    Options are in docs/spark.md; they are parsed and checked before any task runs.
    """

    @classmethod
    def name(cls) -> str:
        return "holdfast"

    def schema(self) -> StructType:
        """Asked for only if the user gave no schema."""
        with one_sentence():
            return infer_schema(parse_read_options(self.options))

    def reader(self, schema: StructType) -> HoldfastReader:
        """A scan of the columns in `schema`."""
        with one_sentence():
            options = parse_read_options(self.options)
            return PushingReader(options, schema) if options.push_filters else HoldfastReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> HoldfastWriter:
        """A job that is checked and announced."""
        with one_sentence():
            return HoldfastWriter(parse_write_options(self.options, overwrite), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> HoldfastStreamWriter:
        """A batch that is checked; its tasks announce it."""
        with one_sentence():
            return HoldfastStreamWriter(parse_stream_options(self.options, overwrite), schema)
