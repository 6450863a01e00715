"""Turn rows of cells, whose values may have any types, into Arrow batches with one type for each column."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from holdfast.cli.database.forms import json_row, json_text, json_value, type_name
from holdfast.errors import InvalidRequestError
from holdfast.records import Row, Value

ROW = "row"
"""The name of the column with the rows themselves."""

_MOST_COLUMNS = 1000
_MOST_ROWS = 4096
_BATCH_BYTES = 4 * 1024 * 1024
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class TableColumns:
    """What is in the columns of a table.

    Attributes:
        schema: first the column of the rows, then the others by name.
        converted: for each column, what makes of a value that of the file.
        rows: number of rows.
    """

    schema: pa.Schema
    converted: dict[str, Callable[[Any], Any]]
    rows: int


def find_columns(rows: Iterable[tuple[Row, dict[str, Value]]], *, has_bytes: bool) -> TableColumns:
    """Read rows, and choose a type for each column: the common type of its values, otherwise texts in JSON.

    Args:
        has_bytes: whether the file can hold bytes; if not, they are texts in base64.

    Raises:
        InvalidRequestError: there are too many columns, or one has the name of the column of the rows.
    """
    kinds: dict[str, set[str]] = {}
    row_kinds: set[str] = set()
    number = 0
    for row, columns in rows:
        number += 1
        row_kinds.add("tuple" if isinstance(row, tuple) else _kind(row))
        for name, value in columns.items():
            kinds.setdefault(name, set()).add(_kind(value))
        if len(kinds) > _MOST_COLUMNS:
            raise InvalidRequestError(f"the table has more than {_MOST_COLUMNS:,} columns: export it to a .jsonl file")
    if ROW in kinds:
        raise InvalidRequestError("a column of the table is called row, as that of the rows: export to a .jsonl file")
    fields, converted = [], {}
    for name, found in [(ROW, row_kinds), *sorted(kinds.items())]:
        arrow_type, converted[name] = _column(found, has_bytes, _row_in_json if name == ROW else _in_json)
        fields.append(pa.field(name, arrow_type))
    return TableColumns(pa.schema(fields), converted, number)


def iter_batches(columns: TableColumns, rows: Iterable[tuple[Row, dict[str, Value]]]) -> Iterator[pa.RecordBatch]:
    """Yield batches of rows, each of a few MiB."""
    waiting: list[tuple[Row, dict[str, Value]]] = []
    size_bytes = 0
    for row, values in rows:
        waiting.append((row, values))
        size_bytes += sum(map(_size, values.values()))
        if size_bytes > _BATCH_BYTES or len(waiting) >= _MOST_ROWS:
            yield _batch(columns, waiting)
            waiting, size_bytes = [], 0
    if waiting:
        yield _batch(columns, waiting)


def _batch(columns: TableColumns, rows: list[tuple[Row, dict[str, Value]]]) -> pa.RecordBatch:
    arrays = []
    for field in columns.schema:
        convert = columns.converted[field.name]
        values: Iterable[Any] = (
            (row for row, _values in rows) if field.name == ROW else (values.get(field.name) for _row, values in rows)
        )
        arrays.append(pa.array([None if value is None else convert(value) for value in values], field.type))
    return pa.record_batch(arrays, schema=columns.schema)


def _kind(value: Value) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int) and value not in _INT64:
        return "large int"
    return type_name(value)


_ARROW_TYPES = {
    "text": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "bytes": pa.binary(),
}


def _column(
    kinds: set[str], has_bytes: bool, in_json: Callable[[Any], Any]
) -> tuple[pa.DataType, Callable[[Any], Any]]:
    kind = next(iter(kinds)) if len(kinds) == 1 else ""
    if kind == "bytes" and not has_bytes:
        return pa.string(), _in_base64
    if kind in _ARROW_TYPES:
        return _ARROW_TYPES[kind], _as_it_is
    return pa.string(), in_json


def _as_it_is(value: Any) -> Any:
    return value


def _in_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _in_json(value: Value) -> str:
    return json_text(json_value(value))


def _row_in_json(row: Row) -> str:
    return json_text(json_row(row))


def _size(value: Value) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    return int(getattr(value, "nbytes", 64))
