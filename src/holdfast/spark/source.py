"""What PySpark looks for: the data source ``holdfast``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from holdfast.errors import InvalidRequestError
from holdfast.options.parsing import parse_read_options, parse_stream_options, parse_write_options
from holdfast.options.said import rooted
from holdfast.options.values import Saying
from holdfast.spark.catalog import refuse_table_properties, require_path
from holdfast.spark.failures import one_sentence

# Each of the many short-lived processes of a job makes one of these, and loads no other.
if TYPE_CHECKING:
    from holdfast.spark.reader import HoldfastReader
    from holdfast.spark.stream_reader import NoStreamReader
    from holdfast.spark.stream_writer import HoldfastStreamWriter
    from holdfast.spark.writer import HoldfastWriter

__all__ = ["HoldfastDataSource"]


class HoldfastDataSource(DataSource):
    """``df.write.format("holdfast")``, ``df.writeStream.format("holdfast")`` and ``spark.read.format("holdfast")``.

    Options are in docs/reference/options.md; they are parsed and checked before any task runs.
    """

    @classmethod
    def name(cls) -> str:
        return "holdfast"

    def schema(self) -> StructType:
        """Asked for only if the user gave no schema."""
        from holdfast.spark.reader import infer_schema

        with one_sentence():
            refuse_table_properties(self.options)
            return infer_schema(parse_read_options(self._said()))

    def reader(self, schema: StructType) -> HoldfastReader:
        """A scan of the columns in `schema`."""
        from holdfast.spark.pushdown import PushingReader
        from holdfast.spark.reader import HoldfastReader

        with one_sentence():
            require_path(self.options)
            options = parse_read_options(self._said())
            _require_same_columns(options.columns, schema)
            return PushingReader(options, schema) if options.push_filters else HoldfastReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> HoldfastWriter:
        """A job that is checked and announced."""
        from holdfast.spark.writer import HoldfastWriter

        with one_sentence():
            require_path(self.options)
            return HoldfastWriter(parse_write_options(self._said(), overwrite), schema)

    def streamReader(self, schema: StructType) -> NoStreamReader:
        """Not there; says so when a query starts."""
        from holdfast.spark.stream_reader import NoStreamReader

        return NoStreamReader()

    def streamWriter(self, schema: StructType, overwrite: bool) -> HoldfastStreamWriter:
        """A batch that is checked; its tasks announce it."""
        from holdfast.spark.stream_writer import HoldfastStreamWriter

        with one_sentence():
            require_path(self.options)
            return HoldfastStreamWriter(parse_stream_options(self._said(), overwrite), schema)

    def _said(self) -> list[Saying]:
        """The options; paths mean what they mean here, on the driver's machine, also in the tasks."""
        return rooted(Saying.of(name, text, name) for name, text in self.options.items())


def _require_same_columns(columns: Sequence[str] | None, schema: StructType) -> None:
    """A schema that the user gives chooses columns, too, and Spark then does not ask us for one.

    Raises:
        InvalidRequestError: the two differ.
    """
    if columns is not None and [name.lower() for name in columns] != [name.lower() for name in schema.names]:
        raise InvalidRequestError(
            "the schema and the option columns choose different columns: leave one of them out",
            schema=", ".join(schema.names),
            columns=", ".join(columns),
        )
