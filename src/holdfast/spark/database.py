"""Read a table of a database as Arrow batches, divided among Spark's tasks by the names of its rows.

Values are read exactly, or the read is an error:

| a cell holds | Spark's column may be |
|---|---|
| an integer | an integer type or decimal that holds it; double if it holds it exactly; string |
| a float | double; string |
| a text | string |
| bytes | binary |
| JSON | string, with the JSON text; an array for a list; boolean |
| a numpy array | an array, nested as deep as the array has dimensions |

Spark builds the source and the reader in separate processes, each of which opens the database.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.options.database import DatabaseReadOptions
from holdfast.records import Row, open_database
from holdfast.records.batches import iter_records
from holdfast.records.cells import decode_known_cell_value, group_rows
from holdfast.records.database import DatabaseSnapshot
from holdfast.records.keys import cells_range
from holdfast.records.row_keys import prefix_range
from holdfast.records.splits import split_cell_range
from holdfast.records.tables import Table
from holdfast.spark.failures import errors_without_traceback
from holdfast.spark.types import make_arrow_schema
from holdfast.transactions.base import Record

_BATCH_ROWS = 10_000
_BATCH_BYTES = 8 * 1024 * 1024
_MOST_TASKS = 32
_JSON: Mapping[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}

_HOLDS: Mapping[type[DataType], tuple[type, ...]] = {
    **dict.fromkeys((ByteType, ShortType, IntegerType, LongType, DecimalType), (int,)),
    DoubleType: (int, float),
    StringType: (str,),
    BinaryType: (bytes,),
    BooleanType: (bool,),
}
"""The Python values that Arrow converts to each type of Spark, exactly or with an error."""

_ROW_KINDS = (ByteType, ShortType, IntegerType, LongType, StringType, BinaryType)
_ROW_TYPES: Mapping[type, DataType] = {str: StringType(), int: LongType(), bytes: BinaryType()}
_SCALARS: Mapping[type, DataType] = {
    **_ROW_TYPES,
    float: DoubleType(),
    bool: BooleanType(),
    list: StringType(),
    dict: StringType(),
}
_ELEMENTS: Mapping[str, DataType] = {
    "b": BooleanType(),
    "i": LongType(),
    "u": LongType(),
    "f": DoubleType(),
    "U": StringType(),
    "S": BinaryType(),
}
"""Spark's type for each kind of numpy array."""


@dataclass(frozen=True)
class CellRange(InputPartition):
    """The input of one Spark task: the rows of one table whose keys are in a range."""

    table_id: int
    first: bytes
    last: bytes


class DatabaseReader(DataSourceReader):
    """Reads one table of a database in Spark: divides it among tasks, and yields its rows as Arrow batches.

    Guarantee: each row of the table is in exactly one partition. Each partition reads a snapshot of its own, so only a
    read with a single partition shows the whole table at one instant. A value that a column's type cannot hold exactly
    is an error.

    Args:
        options: the options of the read.
        schema: the columns that Spark requests, in its order.

    Raises:
        InvalidRequestError: a column has a type that no value can have, or a condition does not select a range of rows.
    """

    def __init__(self, options: DatabaseReadOptions, schema: StructType) -> None:
        self._options = options
        self._fields = schema.fields
        self._schema = make_arrow_schema(schema)
        self._row_parts = _map_columns_to_row_name_parts(options, schema.names)
        find_cell_key_range(options, 0)
        for field in schema.fields:
            is_row = field.name in self._row_parts
            if type(_innermost_type(field.dataType)) not in _HOLDS or (
                is_row and type(field.dataType) not in _ROW_KINDS
            ):
                raise InvalidRequestError(
                    "a database has no values of this type: read strings, integers, doubles, binary, booleans or "
                    "arrays of them (the name of a row is no double or boolean), and convert the column",
                    column=field.name,
                    type=field.dataType.simpleString(),
                )
        if not schema.fields:
            raise InvalidRequestError("the schema has no columns: name at least the row's")

    def partitions(self) -> Sequence[InputPartition]:
        """Divide the table's rows into partitions, with a few hundred small reads."""
        with errors_without_traceback():
            options = self._options
            with open_database(options.url) as database, database.snapshot() as snapshot:
                table = snapshot.table(options.table)
                first, last = find_cell_key_range(options, table.id)
                if first >= last:
                    return []
                points: tuple[bytes, ...] = ()
                if options.partitions != 1:
                    # Spark does not tell a data source how many cores it has.
                    wanted = options.partitions or min(_MOST_TASKS, max(2, os.cpu_count() or 2))
                    division = split_cell_range(snapshot.reader, table, first, last, wanted)
                    # Without a wish of the user, a table that the probes could count is not worth several tasks.
                    points = () if options.partitions is None and division.cells is not None else division.points
            return [CellRange(table.id, low, high) for low, high in pairwise([first, *points, last])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition from one snapshot, in batches of at most 10,000 rows and about 8 MiB."""
        if not isinstance(partition, CellRange):
            return  # PySpark's placeholder if there is nothing to read
        with errors_without_traceback():
            with open_database(self._options.url) as database, database.snapshot() as snapshot:
                table = snapshot.table(self._options.table)
                if table.id != partition.table_id:
                    raise ConflictError("the table was replaced after the read began: read it again", table=table.name)
                cells = iter_records(snapshot.reader, partition.first, partition.last)
                yield from self._build_batches(group_rows(table, cells))

    def _build_batches(self, rows: Iterable[tuple[Row, dict[str, Record]]]) -> Iterator[pa.RecordBatch]:
        names: list[Row] = []
        columns: list[list[Any]] = [[] for _ in self._fields]
        size_bytes = 0
        for row, contents in rows:
            names.append(row)
            for values, field in zip(columns, self._fields, strict=True):
                values.append(self._convert_value(field, row, contents))
            size_bytes += sum(len(record.value) for record in contents.values())
            if len(names) == _BATCH_ROWS or size_bytes >= _BATCH_BYTES:
                yield self._build_arrow_batch(names, columns)
                names, columns, size_bytes = [], [[] for _ in self._fields], 0
        if names:
            yield self._build_arrow_batch(names, columns)

    def _convert_value(self, field: StructField, row: Row, contents: Mapping[str, Record]) -> Any:
        """Return a value as Arrow takes it for its column.

        Raises:
            InvalidRequestError: the column's type does not hold it.
        """
        if field.name in self._row_parts:
            parts = row if isinstance(row, tuple) else (row,)
            part = self._row_parts[field.name]
            if len(parts) != len(self._options.row_columns) or not _is_value_of_type(parts[part], field.dataType):
                raise _value_type_mismatch_error(row, field.name, field.dataType)
            return parts[part]
        content = contents.get(field.name)
        if content is None:
            return None
        value: Any = decode_known_cell_value(content, row, field.name)
        if hasattr(value, "dtype"):
            value = value.tolist() if value.ndim and value.dtype.kind in _ELEMENTS else None
        elif isinstance(field.dataType, StringType) and type(value) not in (str, bytes):
            with suppress(ValueError):  # of an integer with more digits than Python converts
                value = str(value) if type(value) in (int, float) else json.dumps(value, **_JSON)
        if not _is_value_of_type(value, field.dataType):
            raise _value_type_mismatch_error(row, field.name, field.dataType)
        return value

    def _build_arrow_batch(self, names: Sequence[Row], columns: Sequence[Sequence[Any]]) -> pa.RecordBatch:
        arrays = [self._build_array(at, names, values) for at, values in enumerate(columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _build_array(self, at: int, names: Sequence[Row], values: Sequence[Any]) -> pa.Array:
        field = self._schema.field(at)
        try:
            array = pa.array(values, field.type)
            if not _has_wrong_nulls(array, field):
                return array
        except (pa.ArrowException, OverflowError):
            pass
        if len(values) == 1:
            raise _value_type_mismatch_error(names[0], field.name, self._fields[at].dataType)
        for name, value in zip(names, values, strict=True):
            self._build_array(at, [name], [value])
        raise AssertionError("one of the values does not fit")


def _value_type_mismatch_error(row: Row, column: str, kind: DataType) -> InvalidRequestError:
    return InvalidRequestError(
        "the type of a column does not hold what a row has, or the row has nothing and the column is not nullable: "
        "pass a schema with another type for it, or leave the row out with filters",
        row=row,
        column=column,
        type=kind.simpleString(),
    )


def _innermost_type(kind: DataType) -> DataType:
    return _innermost_type(kind.elementType) if isinstance(kind, ArrayType) else kind


def _is_value_of_type(value: Any, kind: DataType) -> bool:
    """Check the types of a value; whether numbers are in range is left to Arrow."""
    if isinstance(kind, ArrayType):
        return isinstance(value, list) and all(one is None or _is_value_of_type(one, kind.elementType) for one in value)
    return type(value) in _HOLDS[type(kind)]


def _has_wrong_nulls(array: pa.Array, field: pa.Field) -> bool:
    if array.null_count and not field.nullable:
        return True
    return pa.types.is_list(array.type) and _has_wrong_nulls(array.flatten(), array.type.value_field)


def _map_columns_to_row_name_parts(options: DatabaseReadOptions, names: Sequence[str]) -> dict[str, int]:
    """Return those of a schema's columns that hold names of rows, each with its part of the name."""
    wanted = {name.lower(): at for at, name in enumerate(options.row_columns)}
    return {name: wanted[name.lower()] for name in names if name.lower() in wanted}


def find_cell_key_range(options: DatabaseReadOptions, table_id: int) -> tuple[bytes, bytes]:
    """Return the range of keys of the cells of all rows that meet the conditions of a read: its start and its end.

    Raises:
        InvalidRequestError: a condition does not select a range of row names.
    """
    first, end = cells_range(table_id)
    start, name = first, options.row_columns[0]
    for one in options.conditions:
        value = one.value
        is_name = isinstance(value, str | int) and not isinstance(value, bool)
        if one.column.lower() != name.lower() or one.operator in ("in", "!=") or not is_name:
            raise InvalidRequestError(
                "a read takes conditions that compare the names of rows with a text or an integer, by = < <= > >=: "
                f"filter the DataFrame instead, or use the column {name}",
                column=one.column,
                operator=one.operator,
                value=value,
            )
        assert isinstance(value, str | int), "checked"
        low, high = (first + encoded for encoded in prefix_range((value,)))
        if one.operator in ("=", ">", ">="):
            start = max(start, high if one.operator == ">" else low)
        if one.operator in ("=", "<", "<="):
            end = min(end, low if one.operator == "<" else high)
    return start, end


# --- the schema, from a bounded sample of cells -----------------------------------------------------------------------
_PLACES = 24
_CELLS = 40
"""How many places of the table are looked at, and how many cells at each."""

_PASS = "pass a schema: spark.read.schema(…)"


def infer_schema(options: DatabaseReadOptions) -> StructType:
    """Infer a table's schema from a sample: the columns of the row's name, then the others in alphabetical order.

    Raises:
        InvalidRequestError: the sample is empty, or a column or the row's name has several types, or one that Spark
            lacks.
        NotFoundError: the database or the table does not exist.
    """
    kinds: dict[str, DataType] = {}
    shapes: set[tuple[type, ...]] = set()
    with open_database(options.url) as database, database.snapshot() as snapshot:
        table = snapshot.table(options.table)
        for row, contents in _sample_rows(snapshot, table, *find_cell_key_range(options, table.id)):
            shapes.add(tuple(map(type, row)) if isinstance(row, tuple) else (type(row),))
            for column, content in contents.items():
                kinds[column] = _merge_value_type(
                    kinds.get(column), decode_known_cell_value(content, row, column), column
                )
    if len(shapes) != 1:
        raise InvalidRequestError(
            f"there are no rows, or rows whose names have different types: {_PASS}, or read some rows with filters",
            table=table.name,
            types=sorted("(" + ", ".join(kind.__name__ for kind in shape) + ")" for shape in shapes),
        )
    shape = shapes.pop()
    if len(shape) != len(options.row_columns):
        raise InvalidRequestError(
            "the names of the rows have another number of parts: name a column for each of them in rowColumn",
            parts=len(shape),
            columns=options.row_columns,
        )
    fields = [
        *(
            StructField(name, _ROW_TYPES[kind], nullable=False)
            for name, kind in zip(options.row_columns, shape, strict=True)
        ),
        *(StructField(name, kinds[name]) for name in sorted(kinds)),
    ]
    names = [field.name.lower() for field in fields]
    if twice := [field.name for field in fields if names.count(field.name.lower()) > 1]:
        raise InvalidRequestError(
            f"two columns have the same name for Spark: rename the row's with rowColumn, or {_PASS}", columns=twice
        )
    return StructType(fields)


def _sample_rows(
    snapshot: DatabaseSnapshot, table: Table, first: bytes, last: bytes
) -> list[tuple[Row, dict[str, Record]]]:
    """Return parts of rows from all over a range of the table."""
    if first >= last:
        return []
    cells: dict[bytes, Record] = {}
    for start in (first, *split_cell_range(snapshot.reader, table, first, last, _PLACES).points):
        cells.update(snapshot.reader.scan(start, last, _CELLS).records)
    return list(group_rows(table, sorted(cells.items(), key=lambda cell: cell[0])))


def _merge_value_type(known: DataType | None, value: Any, column: str) -> DataType:
    """Return Spark's type for a column that holds a value, and others of a type that is known.

    Raises:
        InvalidRequestError: there is none.
    """
    is_array = hasattr(value, "dtype") and value.ndim
    kind = _ELEMENTS.get(value.dtype.kind) if is_array else _SCALARS.get(type(value))
    for _ in range(value.ndim if is_array and kind is not None else 0):
        kind = ArrayType(kind)  # type: ignore[arg-type]  # not None here
    if kind is None or (type(value) is int and not -(2**63) <= value < 2**63):
        described = f"array {value.dtype.str}" if hasattr(value, "dtype") else type(value).__name__
        raise InvalidRequestError(
            f"a column holds a value for which there is no obvious type: {_PASS}", column=column, type=described
        )
    if known is None or known == kind:
        return kind
    if {type(known), type(kind)} == {BooleanType, StringType}:  # a boolean is JSON, too
        return StringType()
    raise InvalidRequestError(
        f"a column holds values of different types: {_PASS}",
        column=column,
        types=sorted((known.simpleString(), kind.simpleString())),
    )
