"""Write tables to files, from one snapshot, with bounded memory; a file appears when it is complete."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from holdfast.cli.database.forms import json_row, json_text, json_value, row_form, type_name
from holdfast.cli.fs.local_place import LocalPlace
from holdfast.cli.fs.places import Entry, Sink
from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.records import Database, Row, Value
from holdfast.records.database import DatabaseSnapshot
from holdfast.runtime import SystemIds

if TYPE_CHECKING:
    from holdfast.commit import Progress

_BATCH_BYTES = 1024 * 1024
_EVERY_ROWS = 1000


def export_table(database: Database, table: str, path: str, *, overwrite: bool, progress: Progress) -> tuple[int, int]:
    """Write all rows of a table to a local file; return the numbers of rows and of bytes.

    Guarantee: the file has all rows of one snapshot. It appears under its name when it is complete, in one step.

    Raises:
        InvalidRequestError: the name of the file tells no format, or the file cannot be written.
        ConflictError: the file exists, and may not be replaced.
        HoldfastError: see `DatabaseSnapshot.scan`.

    Crash: a hidden file (``.holdfast-…``) is left beside the file.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending not in _WRITERS:
        raise InvalidRequestError("the ending of a file chooses its format: use .jsonl, .csv or .parquet", file=path)
    place = LocalPlace(SystemIds())
    if os.path.isdir(path):
        raise InvalidRequestError("this is a directory: name a file in it", file=path)
    if not overwrite and os.path.lexists(path):
        raise ConflictError("the file exists: replace it with --overwrite, or choose another name", file=path)
    with database.snapshot() as snapshot:
        snapshot.table(table)  # before there is a file
        sink = _Counting(place.create(path, Entry(path, is_directory=False), overwrite=overwrite, preserve=False))
        try:
            rows = _WRITERS[ending](snapshot, table, sink, progress)
            sink.close()
        finally:
            sink.discard()
    return rows, sink.size_bytes


class _Counting:
    """A file that counts what is written to it."""

    def __init__(self, inner: Sink) -> None:
        self._inner = inner
        self.size_bytes = 0

    def write(self, data: bytes | memoryview, /) -> int:
        self.size_bytes += len(data)
        self._inner.write(bytes(data))
        return len(data)

    def close(self) -> None:
        self._inner.close()

    def discard(self) -> None:
        self._inner.discard()


def _write_lines(snapshot: DatabaseSnapshot, table: str, sink: _Counting, progress: Progress) -> int:
    number = waiting_bytes = 0
    lines: list[bytes] = []
    for row, columns in _counted(snapshot.scan(table), "rows", 0, progress):
        number += 1
        lines.append(f"{json_text(row_form(row, columns))}\n".encode())
        waiting_bytes += len(lines[-1])
        if waiting_bytes > _BATCH_BYTES:
            sink.write(b"".join(lines))
            lines, waiting_bytes = [], 0
    sink.write(b"".join(lines))
    return number


def _write_columns(snapshot: DatabaseSnapshot, table: str, sink: _Counting, progress: Progress, name: str) -> int:
    """Read the table twice: what is in its columns, and then the values."""
    from holdfast.formats import get_format

    chosen = get_format(name)
    found = _find_columns(_counted(snapshot.scan(table), "columns", 0, progress), has_bytes=name != "csv")
    options = chosen.parse_options({"header": "true", "escape": '"'} if name == "csv" else {}).options
    writer = chosen.open_writer(sink, found.schema, options)
    for batch in _iter_batches(found, _counted(snapshot.scan(table), "rows", found.rows, progress)):
        try:
            writer.write(batch)
        except InvalidRequestError as error:  # its advice names an option that this command does not have
            what = error.message.partition(":")[0]
            raise InvalidRequestError(f"{what}: export to a .jsonl file", **error.variables) from error
    writer.close()
    return found.rows


def _counted(
    rows: Iterator[tuple[Row, dict[str, Value]]], stage: str, total: int, progress: Progress
) -> Iterator[tuple[Row, dict[str, Value]]]:
    for number, row in enumerate(rows):
        if number % _EVERY_ROWS == 0:
            progress(stage, number, total)
        yield row


_Write: TypeAlias = "Callable[[DatabaseSnapshot, str, _Counting, Progress], int]"
_WRITERS: dict[str, _Write] = {
    ".jsonl": _write_lines,
    ".csv": partial(_write_columns, name="csv"),
    ".parquet": partial(_write_columns, name="parquet"),
}


# --- columns with one type each ---------------------------------------------------------------------------------------
ROW = "row"
"""The name of the column with the rows themselves."""

_MOST_COLUMNS = 1000
_MOST_ROWS = 4096
_COLUMNS_BYTES = 4 * 1024 * 1024
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class _TableColumns:
    """What is in the columns of a table.

    Attributes:
        schema: first the column of the rows, then the others by name.
        converted: for each column, what makes of a value that of the file.
        rows: number of rows.
    """

    schema: pa.Schema
    converted: dict[str, Callable[[Any], Any]]
    rows: int


def _find_columns(rows: Iterable[tuple[Row, dict[str, Value]]], *, has_bytes: bool) -> _TableColumns:
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
        arrow_type, converted[name] = _column(found, has_bytes, json_row if name == ROW else json_value)
        fields.append(pa.field(name, arrow_type))
    return _TableColumns(pa.schema(fields), converted, number)


def _iter_batches(columns: _TableColumns, rows: Iterable[tuple[Row, dict[str, Value]]]) -> Iterator[pa.RecordBatch]:
    """Yield batches of rows, each of a few MiB."""
    waiting: list[tuple[Row, dict[str, Value]]] = []
    size_bytes = 0
    for row, values in rows:
        waiting.append((row, values))
        size_bytes += sum(map(_size, values.values()))
        if size_bytes > _COLUMNS_BYTES or len(waiting) >= _MOST_ROWS:
            yield _batch(columns, waiting)
            waiting, size_bytes = [], 0
    if waiting:
        yield _batch(columns, waiting)


def _batch(columns: _TableColumns, rows: list[tuple[Row, dict[str, Value]]]) -> pa.RecordBatch:
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
    kinds: set[str], has_bytes: bool, form: Callable[[Any], object]
) -> tuple[pa.DataType, Callable[[Any], Any]]:
    kind = next(iter(kinds)) if len(kinds) == 1 else ""
    if kind == "bytes" and not has_bytes:
        return pa.string(), lambda value: base64.b64encode(value).decode("ascii")
    if kind in _ARROW_TYPES:
        return _ARROW_TYPES[kind], lambda value: value
    return pa.string(), lambda value: json_text(form(value))


def _size(value: Value) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    return int(getattr(value, "nbytes", 64))
