"""Infer the schema of a table from a bounded sample of its cells."""

from __future__ import annotations

from typing import Any

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

from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.options.database import DatabaseReadOptions
from holdfast.records import Row, open_database
from holdfast.records.cells import Content
from holdfast.records.rows import contents_of, read_value
from holdfast.records.snapshot import DatabaseSnapshot
from holdfast.records.splits import divide
from holdfast.records.tables import Table
from holdfast.spark.database.row_columns import RowBounds, bounds_of, default_names, find_row_columns
from holdfast.wording import nearest

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
        sample = _sample(snapshot, table, bounds_of(options.conditions, source))
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


def _sample(snapshot: DatabaseSnapshot, table: Table, bounds: RowBounds) -> list[tuple[Row, dict[str, Content]]]:
    """Return parts of rows from all over the table."""
    first, last = bounds.in_table(table)
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
