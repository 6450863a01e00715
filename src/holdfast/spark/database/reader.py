"""Read a table of a database as Arrow batches, divided among Spark's tasks by the names of its rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from holdfast.errors import ConflictError, InvalidRequestError, NotFoundError
from holdfast.options.database import DatabaseReadOptions
from holdfast.records import Row, open_database
from holdfast.records.cells import Content, contents_of, read_cells, read_value
from holdfast.records.database import DatabaseSnapshot
from holdfast.records.splits import divide
from holdfast.records.tables import Table
from holdfast.spark.database.values import (
    Misfit,
    default_names,
    find_row_columns,
    key_range,
    part_from_row,
    to_spark,
)
from holdfast.spark.failures import one_sentence
from holdfast.spark.types import arrow_schema
from holdfast.wording import nearest

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
        key_range(options.conditions, options.source, 0)  # refuse conditions that cannot be met by a range of rows
        columns = [name for name in schema.names if name not in self._row_columns]
        if options.columns is not None and sorted(columns) != sorted(options.columns):
            raise InvalidRequestError(
                "the schema and the option columns select different columns: leave one of them out",
                schema=", ".join(columns),
                columns=", ".join(options.columns),
            )
        self._converters()  # refuse types that no value has before any task runs

    def partitions(self) -> Sequence[InputPartition]:
        """Divide the table: a few hundred small reads."""
        with one_sentence():
            source, parts = self._options.source, self._options.partitions
            with open_database(source.url) as database, database.snapshot() as snapshot:
                table = snapshot.table(source.table)
                first, last = key_range(self._options.conditions, source, table.id)
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


_PLACES = 24
_CELLS = 40
"""How many places of the table are looked at, and how many cells at each."""

_PASS = "pass a schema: spark.read.schema(…)"
_ARRAYS: dict[str, DataType] = {
    "b": BooleanType(),
    "i": LongType(),
    "u": LongType(),
    "f": DoubleType(),
    "U": StringType(),
    "S": BinaryType(),
}
_NAMES: dict[type, tuple[str, DataType]] = {
    str: ("text", StringType()),
    bytes: ("bytes", BinaryType()),
    float: ("float", DoubleType()),
    bool: ("boolean", BooleanType()),
    list: ("JSON", StringType()),
    dict: ("JSON", StringType()),
}


# --- the schema, from a bounded sample of cells -----------------------------------------------------------------------
def infer_schema(options: DatabaseReadOptions) -> StructType:
    """Return the schema of a table: the columns of the row's name, then the table's columns in alphabetical order.

    Raises:
        InvalidRequestError: the sample holds no values, values of several types in one column, or of a type that Spark
            does not have.
        NotFoundError: the database or the table does not exist, or the table has no such column.
    """
    source = options.source
    with open_database(source.url) as database, database.snapshot() as snapshot:
        table = snapshot.table(source.table)
        sample = _sample(snapshot, table, *key_range(options.conditions, source, table.id))
        kinds: dict[str, tuple[str, DataType]] = {}
        rows: list[Row] = []
        for row, contents in sample:
            rows.append(row)
            for column, content in contents.items():
                if options.columns is not None and column not in options.columns:
                    continue
                kind = _kind(read_value(content, row, column), column)
                if {kind, kinds.get(column, kind)} == {_NAMES[bool], _NAMES[list]}:
                    kinds[column] = kind = _NAMES[list]  # a boolean is JSON, too
                if kinds.setdefault(column, kind) != kind:
                    raise InvalidRequestError(
                        f"a column holds values of different types: {_PASS}",
                        table=table.name,
                        column=column,
                        types=sorted((kind[0], kinds[column][0])),
                    )
    if not rows:
        raise InvalidRequestError(f"there are no rows that would show a schema: {_PASS}", table=table.name)
    row_fields = _row_fields(rows, options)
    for column in options.columns or ():
        if column not in kinds:
            if column in {field.name for field in row_fields}:
                raise InvalidRequestError("the row's name is always read: leave it out of columns", column=column)
            known = {name for _row, contents in sample for name in contents}
            raise NotFoundError(f"no such column in a sample of the table: {nearest(column, known)}", column=column)
    names = options.columns if options.columns is not None else sorted(kinds)
    fields = [*row_fields, *(StructField(name, kinds[name][1]) for name in names)]
    _refuse_equal_names(fields)
    taken = find_row_columns(source, [field.name for field in fields])  # as the reader will find them
    for name in names:
        if name in taken:
            raise InvalidRequestError(
                "a column has the name of a row column: rename the row's with rowColumn, or choose with columns",
                column=name,
            )
    return StructType(fields)


def _sample(
    snapshot: DatabaseSnapshot, table: Table, first: bytes, last: bytes
) -> list[tuple[Row, dict[str, Content]]]:
    """Return parts of rows from all over a range of the table."""
    if first >= last:
        return []
    starts = [first, *divide(snapshot.reader, table, first, last, _PLACES).points]
    cells: dict[bytes, Content] = {}
    for start in starts:
        for key, record in snapshot.reader.scan(start, last, _CELLS).records:
            cells[key] = Content(record.value, record.number)
    return list(contents_of(table, sorted(cells.items(), key=lambda cell: cell[0])))


def _kind(value: Any, column: str) -> tuple[str, DataType]:
    """Return the name and Spark's type of a value."""
    if type(value) is int and -(2**63) <= value < 2**63:
        return "integer", LongType()
    if (named := _NAMES.get(type(value))) is not None:
        return named
    if hasattr(value, "dtype") and value.ndim and value.dtype.kind in _ARRAYS:
        element = _ARRAYS[value.dtype.kind]
        kind: DataType = element
        for _ in range(value.ndim):
            kind = ArrayType(kind)
        return f"array of {value.ndim} dimensions, {element.simpleString()}", kind
    described = f"array {value.dtype.str}" if hasattr(value, "dtype") else type(value).__name__
    raise InvalidRequestError(
        f"a column holds a value for which there is no obvious type: {_PASS}", column=column, type=described
    )


def _row_fields(rows: list[Row], options: DatabaseReadOptions) -> list[StructField]:
    shapes = {tuple(map(type, row)) if isinstance(row, tuple) else (type(row),) for row in rows}
    if len(shapes) > 1:
        shown = sorted("(" + ", ".join(kind.__name__ for kind in shape) + ")" for shape in shapes)
        raise InvalidRequestError(
            "the rows have names of different types, which one DataFrame cannot hold: read some of them with filters",
            table=options.source.table,
            types=shown,
        )
    shape = shapes.pop()
    names = options.source.row_columns or default_names(len(shape))
    if len(names) != len(shape):
        raise InvalidRequestError(
            "the names of the rows have another number of parts: name a column for each of them in rowColumn",
            parts=len(shape),
            columns=names,
        )
    kinds: dict[type, DataType] = {str: StringType(), int: LongType(), bytes: BinaryType()}
    return [StructField(name, kinds[kind], nullable=False) for name, kind in zip(names, shape, strict=True)]


def _refuse_equal_names(fields: list[StructField]) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        if (other := seen.get(field.name.lower())) is not None:
            raise InvalidRequestError(
                "two columns have the same name for Spark: rename the row's with rowColumn, or choose with columns",
                first=other,
                second=field.name,
            )
        seen[field.name.lower()] = field.name
