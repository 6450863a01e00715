"""The first rows of a destination, through the table layer: no Spark, only as many files as it takes.

Without a log and a schema, those of CSV and JSON are all read once for their types, as `holdfast.read` does.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.cli.columns import SPLIT_BYTES, find_columns
from holdfast.cli.source import Source, find_source
from holdfast.commit import CommitContext, Snapshot
from holdfast.errors import InvalidRequestError
from holdfast.formats import RowFilter, nearest
from holdfast.formats.columns.spark_fields import beyond_arrow
from holdfast.options.parsing import parse_read_options
from holdfast.spark.file_format import FormatChoice
from holdfast.table import DataFile, TableSchema, plan_splits, read_split
from holdfast.table.contract import TableRecord, decode_table
from holdfast.table.inferred import opener

__all__ = ["FoundRows", "as_text", "as_value", "cells", "first_rows"]

_CONDITION = re.compile(r"\s*(.+?)\s*(!=|<=|>=|==|=|<|>)\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True)
class FoundRows:
    """Rows as one Arrow table.

    Attributes:
        count: of the rows: Arrow forgets it where there is no column.
        more: whether there are rows behind these.
        files: data files of the destination at that instant.
    """

    rows: pa.Table
    count: int
    more: bool
    files: int


def first_rows(
    ctx: CommitContext,
    limit: int,
    *,
    columns: Sequence[str] | None = None,
    conditions: Sequence[str] = (),
    file_format: str | None = None,
    options: Mapping[str, str] | None = None,
    ddl: str | None = None,
) -> FoundRows:
    """The first `limit` rows that meet all conditions.

    Guarantee: the columns and types are those that `holdfast.read` shows.

    Args:
        options: of the format, as in docs/reference/options.md.
        ddl: the schema, as Spark's SQL spells it; None: as the log kept it, else that of the files.

    Raises:
        NotFoundError: there is nothing at the url.
        InvalidRequestError: no such column, or a condition that cannot be understood; offers the nearest.
    """
    source = find_source(ctx)
    kept = _kept(source.snapshot)
    choice = _choice(source, kept, file_format, options or {})
    files = [DataFile(file.path, file.size_bytes, file.etag) for file in source.snapshot.files]
    table, shown = find_columns(source, files, choice, kept, ddl)
    names = shown.names if columns is None else [_column(name, shown) for name in columns]
    filters = [_condition(text, shown) for text in conditions]
    batches = []
    rows = 0
    for batch in _batches(source.ctx, files, choice, table, names, filters) if choice else ():
        batches.append(batch.slice(0, limit + 1 - rows))
        rows += batches[-1].num_rows
        if rows > limit:
            break
    schema = pa.schema([shown.field(name) for name in names])
    found = pa.Table.from_batches(batches, schema if not batches else batches[0].schema)
    return FoundRows(found.slice(0, limit), min(rows, limit), rows > limit, len(files))


# --- what is known of the table ---------------------------------------------------------------------------------------
def _kept(snapshot: Snapshot) -> TableRecord | None:
    """What the log says of the table; None if nothing."""
    return None if snapshot.table is None else decode_table(snapshot.table)


def _choice(
    source: Source, kept: TableRecord | None, file_format: str | None, options: Mapping[str, str]
) -> FormatChoice | None:
    """How the files are read; None if there is none and nobody says how others were."""
    given = {
        "path": source.ctx.url,
        "timeZone": (kept.time_zone if kept is not None else "") or "UTC",
        **({"fileFormat": file_format} if file_format else {}),
        **options,
    }
    parsed = parse_read_options(given)
    if not source.snapshot.files and not file_format and kept is None:
        return None
    return FormatChoice.of(parsed, source.snapshot)


def _batches(
    ctx: CommitContext,
    files: Sequence[DataFile],
    choice: FormatChoice,
    table: TableSchema,
    names: Sequence[str],
    filters: Sequence[RowFilter],
) -> Iterator[pa.RecordBatch]:
    for file in files:  # one by one: most of them are never opened
        settings = choice.settings(file.path, SPLIT_BYTES)
        for split in plan_splits([file], opener(ctx), table, settings, filters):
            yield from read_split(split, opener(ctx), table, settings, names, filters)


def _column(name: str, schema: pa.Schema) -> str:
    folded: dict[str, str] = {known.lower(): known for known in schema.names}
    if name.lower() not in folded:
        raise InvalidRequestError(f"no such column: {nearest(name, schema.names)}", column=name)
    return folded[name.lower()]


def _refuse_collated(field: pa.Field) -> None:
    """Here texts are compared byte by byte."""
    if "collated string" in beyond_arrow(field):
        raise InvalidRequestError(
            "the column has a collation, which conditions of a read do not heed: read with Spark and filter there",
            column=field.name,
        )


def _condition(text: str, schema: pa.Schema) -> RowFilter:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise InvalidRequestError("not a condition: write column=value, or !=, <, <=, >, >= instead of =", where=text)
    name = _column(found[1], schema)
    _refuse_collated(schema.field(name))
    field, operator, word = pc.field(name), found[2], _unquoted(found[3])
    try:
        value = _typed(word, schema.field(name).type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequestError(
            "the value does not fit the column's type: write another", where=text, type=str(schema.field(name).type)
        ) from error
    compare = {
        "=": field == value,
        "==": field == value,
        "!=": field != value,
        "<": field < value,
        "<=": field <= value,
        ">": field > value,
        ">=": field >= value,
    }
    return RowFilter(compare[operator], frozenset({name}))


def _unquoted(word: str) -> str:
    """Quotes around all of a value are not its own; any other is."""
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word


def _typed(word: str, kind: pa.DataType) -> Any:
    """The word as a value of a column's type; a time of day without a zone is UTC, as all times are shown."""
    if pat.is_nested(kind) or pat.is_null(kind):
        raise pa.ArrowNotImplementedError(f"not comparable: {kind}")
    if pat.is_timestamp(kind) and kind.tz is not None:
        try:
            return pa.scalar(word).cast(pa.timestamp(kind.unit)).cast(kind)
        except pa.ArrowInvalid:  # it names a zone
            pass
    return pa.scalar(word).cast(kind)


# --- cells ------------------------------------------------------------------------------------------------------------
def cells(found: FoundRows) -> list[tuple[object, ...]]:
    """The rows as Python values; what Python cannot hold, such as the year 10000, as Arrow's text."""
    columns = [_values(column) for column in found.rows.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * found.count


def _values(column: Any) -> list[object]:
    try:
        found: list[object] = column.to_pylist()
    except (OverflowError, ValueError):
        found = [_value(cell) for cell in column]
    return found


def _value(cell: Any) -> object:
    try:
        value: object = cell.as_py()
        return value
    except (OverflowError, ValueError):
        pass
    try:
        return str(cell.cast(pa.string()).as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return str(cell)


def as_text(value: object) -> str:
    """A cell for a person; null is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict | list | tuple):
        return json.dumps(as_value(value), ensure_ascii=False)
    return str(value)


def as_value(value: object) -> object:
    """A cell for a program: JSON types as they are, times in ISO 8601, decimals as text, bytes in base64."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)  # JSON has neither NaN nor inf
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {str(key): as_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_value(inner) for inner in value]
    return str(value)
