"""Read a table of a database as Arrow batches, divided among Spark's tasks by the names of its rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.options.database import DatabaseReadOptions
from holdfast.records import Row, open_database
from holdfast.records.cells import Content
from holdfast.records.rows import contents_of, read_cells, read_value
from holdfast.records.splits import divide
from holdfast.spark.database.row_columns import RowBounds, bounds_of, find_row_columns
from holdfast.spark.database.values import Misfit, part_from_row, to_spark
from holdfast.spark.failures import one_sentence
from holdfast.spark.types import arrow_schema

_BATCH_ROWS = 10_000
_BATCH_BYTES = 8 * 1024 * 1024
_MOST_TASKS = 32


@dataclass(frozen=True)
class CellRange(InputPartition):
    """The input of one task: all rows of one table in a range of keys, whatever is written meanwhile."""

    table_id: int
    first: bytes
    last: bytes


class DatabaseReader(DataSourceReader):
    """One scan of a table by Spark.

    Guarantee: each row of the table is in exactly one partition. A partition shows the table as it was at one instant,
    and different partitions at different instants; so one partition shows the whole table at one instant. A value that
    a column's type cannot hold exactly is an error.

    Args:
        options: the options of the read.
        schema: the columns that Spark requests, in its order.
    """

    def __init__(self, options: DatabaseReadOptions, schema: StructType) -> None:
        self._options = options
        self._spark_schema = schema
        self._schema = arrow_schema(schema)
        self._row_columns = find_row_columns(options.source, schema.names)
        self._bounds = bounds_of(options.conditions, options.source)
        columns = [name for name in schema.names if name not in self._row_columns]
        if options.columns is not None and sorted(columns) != sorted(options.columns):
            raise InvalidRequestError(
                "the schema and the option columns select different columns: leave one of them out",
                schema=", ".join(columns),
                columns=", ".join(options.columns),
            )
        self._converters()  # refuse types that no value has before any task runs

    @property
    def bounds(self) -> RowBounds:
        """The rows that are read."""
        return self._bounds

    def narrow(self, bounds: RowBounds) -> None:
        """Read fewer rows. Call this before `partitions`."""
        self._bounds = bounds

    def partitions(self) -> Sequence[InputPartition]:
        """Divide the table: a few hundred small reads."""
        with one_sentence():
            source, parts = self._options.source, self._options.partitions
            with open_database(source.url) as database, database.snapshot() as snapshot:
                table = snapshot.table(source.table)
                first, last = self._bounds.in_table(table)
                if first >= last:
                    return []
                points: tuple[bytes, ...] = ()
                if parts != 1:
                    division = divide(snapshot.reader, table, first, last, parts or _default_partitions())
                    # Without a wish of the user, a table that the probes could count is not worth several tasks.
                    points = () if parts is None and division.cells is not None else division.points
            edges = [first, *points, last]
            return [CellRange(table.id, low, high) for low, high in pairwise(edges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition from one snapshot, in batches of at most 10,000 rows and about 8 MiB."""
        if not isinstance(partition, CellRange):
            return  # PySpark's placeholder if there is nothing to read
        with one_sentence():
            source = self._options.source
            with open_database(source.url) as database, database.snapshot() as snapshot:
                table = snapshot.table(source.table)
                if table.id != partition.table_id:
                    raise ConflictError(
                        "the table was replaced after the read began: read it again", table=source.table
                    )
                cells = read_cells(snapshot.reader, partition.first, partition.last)
                yield from self._batches(contents_of(table, cells))

    def _batches(self, rows: Iterable[tuple[Row, dict[str, Content]]]) -> Iterator[pa.RecordBatch]:
        converters = self._converters()
        columns: list[list[Any]] = [[] for _ in converters]
        size_bytes = 0
        for row, contents in rows:
            for values, convert in zip(columns, converters, strict=True):
                values.append(convert(row, contents))
            size_bytes += sum(len(content.encoded) for content in contents.values())
            if len(columns[0]) == _BATCH_ROWS or size_bytes >= _BATCH_BYTES:
                yield self._batch(columns)
                columns, size_bytes = [[] for _ in converters], 0
        if columns[0]:
            yield self._batch(columns)

    def _batch(self, columns: Sequence[Sequence[Any]]) -> pa.RecordBatch:
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _converters(self) -> list[Callable[[Row, dict[str, Content]], Any]]:
        """Return a function for each column that takes its value out of a row."""
        fields = self._spark_schema.fields
        if not fields:
            raise InvalidRequestError("the schema has no columns: name at least the row's")
        return [
            _row_part(field.name, self._row_columns[field.name], part_from_row(field.dataType, field.name))
            if field.name in self._row_columns
            else _cell(field.name, field.nullable, field.dataType.simpleString(), to_spark(field.dataType, field.name))
            for field in fields
        ]


def _default_partitions() -> int:
    """Return the number of partitions of a large table: Spark does not tell a data source how many cores it has."""
    return min(_MOST_TASKS, max(2, os.cpu_count() or 2))


def _row_part(column: str, part: int | None, convert: Callable[[Any], Any]) -> Callable[[Row, object], Any]:
    def take(row: Row, contents: object) -> Any:
        try:
            if part is None:
                return convert(row)
            if isinstance(row, tuple) and part < len(row):
                return convert(row[part])
        except Misfit:
            pass
        raise InvalidRequestError(
            "the name of a row does not have the type of its column: change the schema, or leave it out with filters",
            row=row,
            column=column,
        )

    return take


def _cell(
    column: str, nullable: bool, kind: str, convert: Callable[[Any], Any]
) -> Callable[[Row, dict[str, Content]], Any]:
    def take(row: Row, contents: dict[str, Content]) -> Any:
        content = contents.get(column)
        if content is None:
            if nullable:
                return None
            raise InvalidRequestError(
                "a row has no such cell, but the column is not nullable: change the schema", row=row, column=column
            )
        value = read_value(content, row, column)
        try:
            return convert(value)
        except Misfit:
            raise InvalidRequestError(
                "the type of a column does not hold a value exactly: pass a schema with another type for it",
                row=row,
                column=column,
                type=kind,
                value_type=_type_name(value),
            ) from None

    return take


def _type_name(value: object) -> str:
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ if dtype is None else f"array {dtype.str}"
