"""Define the data sources ``holdfast`` and ``holdfast-database`` that PySpark looks up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.options.keywords import make_option_paths_absolute
from holdfast.spark.failures import errors_without_traceback, refuse_table_properties, require_path_option
from holdfast.stores.provider import GivenOption

# Each of a job's many short-lived processes needs only one of these modules, and does not import the others.
if TYPE_CHECKING:
    from holdfast.spark.database import DatabaseReader
    from holdfast.spark.reader import HoldfastReader
    from holdfast.spark.writer import HoldfastStreamWriter, HoldfastWriter


class HoldfastDataSource(DataSource):
    """The Spark data source ``holdfast``: batch reads, batch writes and streaming writes of a destination.

    Spark builds the data source in separate processes and passes the options as strings. Each of these processes parses
    the options once, before any task runs. Options are listed in docs/reference/options.md.
    """

    @classmethod
    def name(cls) -> str:
        return "holdfast"

    def schema(self) -> StructType:
        """Infer the schema of the destination. Spark calls this only if the user gave none."""
        from holdfast.options.read import parse_read_options
        from holdfast.spark.reader import infer_schema

        with errors_without_traceback():
            refuse_table_properties(self.options)
            return infer_schema(parse_read_options(self._given()))

    def reader(self, schema: StructType) -> HoldfastReader:
        """Return the reader of a scan of the columns in `schema`."""
        from holdfast.options.read import parse_read_options
        from holdfast.spark.reader import HoldfastReader

        with errors_without_traceback():
            require_path_option(self.options)
            options = parse_read_options(self._given())
            _require_same_columns(options.columns, schema)
            return HoldfastReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> HoldfastWriter:
        """Check a batch write, announce its job in the store, and return its writer."""
        from holdfast.options.write import parse_write_options
        from holdfast.spark.writer import HoldfastWriter

        with errors_without_traceback():
            require_path_option(self.options)
            return HoldfastWriter(parse_write_options(self._given(), overwrite), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> HoldfastStreamWriter:
        """Check the write of a stream's batch, and return its writer; the batch's tasks will announce its job."""
        from holdfast.options.write import parse_stream_options
        from holdfast.spark.writer import HoldfastStreamWriter

        with errors_without_traceback():
            require_path_option(self.options)
            return HoldfastStreamWriter(parse_stream_options(self._given(), overwrite), schema)

    def _given(self) -> list[GivenOption]:
        """Return the options. Relative paths are resolved here, on the driver, so that tasks see the same paths."""
        return make_option_paths_absolute(GivenOption.of(name, text, name) for name, text in self.options.items())


def _require_same_columns(columns: Sequence[str] | None, schema: StructType) -> None:
    """Check that a schema given by the user and the option ``columns`` select the same columns.

    Raises:
        InvalidRequestError: they differ.
    """
    if columns is not None and [name.lower() for name in columns] != [name.lower() for name in schema.names]:
        raise InvalidRequestError(
            "the schema and the option columns select different columns: leave one of them out",
            schema=", ".join(schema.names),
            columns=", ".join(columns),
        )


class HoldfastDatabaseDataSource(DataSource):
    """The Spark data source ``holdfast-database``: reads of a table of a database.

    Options are listed in docs/reference/options.md.
    """

    @classmethod
    def name(cls) -> str:
        return "holdfast-database"

    def schema(self) -> StructType:
        """Infer the schema of the table from a sample. Spark calls this only if the user gave none."""
        from holdfast.options.database import parse_database_read
        from holdfast.spark.database import infer_schema

        with errors_without_traceback():
            refuse_table_properties(self.options)
            return infer_schema(parse_database_read(self.options))

    def reader(self, schema: StructType) -> DatabaseReader:
        """Return the reader of a scan of the columns in `schema`."""
        from holdfast.options.database import parse_database_read
        from holdfast.spark.database import DatabaseReader

        with errors_without_traceback():
            options = parse_database_read(self.options)
            return DatabaseReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Refuse to write: the data source only reads."""
        with errors_without_traceback():
            raise UnsupportedError("units write tables of a database: put each row with a holdfast.TransactionalMap")
