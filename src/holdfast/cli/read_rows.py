"""Read the first rows of a destination through the table layer: without Spark, from as few files as possible."""

from __future__ import annotations

import base64
import datetime
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.cli.inspection import require_nonempty
from holdfast.commit import CommitContext, Snapshot, VisibleFile, read_snapshot
from holdfast.commit.context import Place
from holdfast.commit.nested_destinations import refuse_read_inside_destination
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.formats import RowFilter
from holdfast.formats.columns.types import kinds_beyond_arrow
from holdfast.formats.schema_json import arrow_schema_from_json
from holdfast.options.read import ReadOptions
from holdfast.spark.file_format import DestinationFormat
from holdfast.table.contract import TableRecord, decode_table
from holdfast.table.files import file_opener
from holdfast.table.foreign import refuse_foreign_read
from holdfast.table.reader import TableSchema, find_first_nonempty_or_first, plan_splits, read_schema, read_split
from holdfast.wording import suggest_nearest

_SPLIT_BYTES = 128 * 1024 * 1024
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"!=": ne, "<=": le, ">=": ge, "==": eq, "=": eq, "<": lt, ">": gt}
_CONDITION = re.compile(r"\s*(.+?)\s*(!=|<=|>=|==|=|<|>)\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True)
class FoundRows:
    """The rows that `read_first_rows` read from a destination, as one Arrow table.

    Attributes:
        count: number of rows; an Arrow table without columns does not store it.
        more: whether the destination has more rows.
        files: number of data files in the snapshot that was read.
    """

    rows: pa.Table
    count: int
    more: bool
    files: int


def read_first_rows(
    ctx: CommitContext,
    options: ReadOptions,
    limit: int,
    *,
    columns: Sequence[str] | None = None,
    conditions: Sequence[str] = (),
) -> FoundRows:
    """Read the first `limit` rows of a destination that meet all conditions.

    Guarantee: the columns and types are the same as in `holdfast.read`.

    Args:
        options: those of the user, as in docs/reference/options.md.

    Raises:
        NotFoundError: the destination contains no data.
        InvalidRequestError: a column does not exist (the message suggests the nearest name), or a condition cannot be
            parsed.
    """
    ctx, snapshot = _find_files(ctx)
    kept = None if snapshot.table is None else decode_table(snapshot.table)
    files = snapshot.files
    is_known = files or options.file_format or kept is not None
    choice = DestinationFormat.of(options, snapshot) if is_known else None
    table = _read_table_schema(ctx, files, choice, kept)
    shown = table.schema
    names = shown.names if columns is None else [_find_column(name, shown) for name in columns]
    filters = [_parse_condition(text, shown) for text in conditions]
    batches = []
    rows = 0
    for batch in _read_batches(ctx, files, choice, table, names, filters) if choice else ():
        batches.append(batch.slice(0, limit + 1 - rows))
        rows += batches[-1].num_rows
        if rows > limit:
            break
    schema = pa.schema([shown.field(name) for name in names])
    found = pa.Table.from_batches(batches, schema if not batches else batches[0].schema)
    return FoundRows(found.slice(0, limit), min(rows, limit), rows > limit, len(files))


def _find_files(ctx: CommitContext) -> tuple[CommitContext, Snapshot]:
    """Find the files at the url of `ctx`; return the context to whose directory their paths are relative, too.

    Guarantee: they are those of committed jobs only, according to the log of this directory.

    Raises:
        NotFoundError: nothing exists at the url.
        InvalidRequestError: the url is a directory inside a destination.
    """
    refuse_foreign_read(ctx)
    snapshot = read_snapshot(ctx)
    if snapshot.files and not snapshot.head:
        refuse_read_inside_destination(ctx)
    if snapshot.files or snapshot.head:
        return ctx, snapshot
    own = ctx.prefix.rstrip("/")
    if own:
        with suppress(NotFoundError):
            info = ctx.store.head(own)
            parent, _, name = own.rpartition("/")
            root = "file://" if ctx.url.startswith("file://") else ctx.url.removesuffix(own).rstrip("/")
            place = Place(store=ctx.store, prefix=f"{parent}/" if parent else "", url=f"{root}/{parent}")
            return ctx.at(place), replace(snapshot, files=(VisibleFile(name, info.size_bytes, info.etag),))
    if any(sign in own for sign in "*?[{"):
        raise NotFoundError(
            "there is nothing of this name, and patterns are not supported: name a directory or a file", url=ctx.url
        )
    require_nonempty(ctx)
    return ctx, snapshot


def _read_table_schema(
    ctx: CommitContext, files: Sequence[VisibleFile], choice: DestinationFormat | None, kept: TableRecord | None
) -> TableSchema:
    """Return the columns: those of the log, else those of the first file."""
    if kept is not None:
        return TableSchema(arrow_schema_from_json(kept.schema_json), kept.partition_by)
    if not files or choice is None:
        return TableSchema(pa.schema([]))
    first = find_first_nonempty_or_first(files)
    return read_schema(files, file_opener(ctx), choice.settings(first.path if first else "", _SPLIT_BYTES))


def _read_batches(
    ctx: CommitContext,
    files: Sequence[VisibleFile],
    choice: DestinationFormat,
    table: TableSchema,
    names: Sequence[str],
    filters: Sequence[RowFilter],
) -> Iterator[pa.RecordBatch]:
    for file in files:  # lazily, one by one: most files are never opened
        settings = choice.settings(file.path, _SPLIT_BYTES)
        for split in plan_splits([file], file_opener(ctx), table, settings, filters):
            yield from read_split(split, file_opener(ctx), table, settings, names, filters)


def _find_column(name: str, schema: pa.Schema) -> str:
    folded: dict[str, str] = {known.lower(): known for known in schema.names}
    if name.lower() not in folded:
        raise InvalidRequestError(f"no such column: {suggest_nearest(name, schema.names)}", column=name)
    return folded[name.lower()]


def _parse_condition(text: str, schema: pa.Schema) -> RowFilter:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise InvalidRequestError("not a condition: write column=value, with =, !=, <, <=, > or >=", where=text)
    name = _find_column(found[1], schema)
    if "collated string" in kinds_beyond_arrow(schema.field(name)):  # strings are compared byte by byte here
        raise InvalidRequestError(
            "the column has a collation, which --where does not support: read with Spark and filter there", column=name
        )
    try:
        value = _convert_condition_value(_strip_quotes(found[3]), schema.field(name).type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequestError(
            "the value does not fit the column's type: change it", where=text, type=str(schema.field(name).type)
        ) from error
    return RowFilter(_OPERATORS[found[2]](pc.field(name), value), frozenset({name}))


def _strip_quotes(word: str) -> str:
    """Strip one pair of quotes around the whole value; keep any other quotes."""
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word


def _convert_condition_value(word: str, kind: pa.DataType) -> Any:
    """Convert a word of a condition to the column's type; a timestamp without a zone is in UTC, like all output."""
    if pat.is_nested(kind) or pat.is_null(kind):
        raise pa.ArrowNotImplementedError(f"not comparable: {kind}")
    if pat.is_timestamp(kind) and kind.tz is not None:
        with suppress(pa.ArrowInvalid):  # the word names a zone
            return pa.scalar(word).cast(pa.timestamp(kind.unit)).cast(kind)
    return pa.scalar(word).cast(kind)


# --- cells ------------------------------------------------------------------------------------------------------------
def python_rows(found: FoundRows) -> list[tuple[object, ...]]:
    """Convert rows to tuples of Python values, or of Arrow's text where Python has no value (the year 10000)."""
    columns = [_column_to_python(column) for column in found.rows.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * found.count


def _column_to_python(column: Any) -> list[object]:
    with suppress(OverflowError, ValueError):
        found: list[object] = column.to_pylist()
        return found
    return [_scalar_to_python(cell) for cell in column]


def _scalar_to_python(cell: Any) -> object:
    with suppress(OverflowError, ValueError):
        value: object = cell.as_py()
        return value
    try:
        return str(cell.cast(pa.string()).as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return str(cell)


def cell_text(value: object) -> str:
    """Format a value of a row for a person; null is an empty string."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict | list | tuple):
        return json.dumps(cell_json(value), ensure_ascii=False)
    return str(value)


def cell_json(value: object) -> object:
    """Convert a value of a row to JSON: JSON types unchanged, times in ISO 8601, decimals as text, bytes in base64."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)  # JSON has neither NaN nor inf
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {str(key): cell_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [cell_json(inner) for inner in value]
    return str(value)
