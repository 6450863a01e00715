"""The first rows of a destination, through the table layer: no Spark, only as many files as it takes."""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.cli.presence import require_anything
from holdfast.commit import CommitContext, read_snapshot
from holdfast.errors import InvalidRequestError
from holdfast.formats import RowFilter, nearest
from holdfast.spark.file_format import FormatChoice
from holdfast.spark.options import parse_read_options
from holdfast.table import DataFile, StoreFile, TableSchema, first_with_rows, plan_splits, read_schema, read_split

__all__ = ["FoundRows", "as_text", "as_value", "first_rows"]

_CONDITION = re.compile(r"\s*(.+?)\s*(!=|<=|>=|==|=|<|>)\s*(.*?)\s*", re.DOTALL)
_SPLIT_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True)
class FoundRows:
    """Rows as one Arrow table.

    Attributes:
        more: whether there are rows behind these.
        files: data files of the destination at that instant.
    """

    rows: pa.Table
    more: bool
    files: int


def first_rows(
    ctx: CommitContext,
    limit: int,
    *,
    columns: Sequence[str] | None = None,
    conditions: Sequence[str] = (),
    file_format: str | None = None,
) -> FoundRows:
    """The first `limit` rows that meet all conditions.

    Raises:
        NotFoundError: there is nothing at the url.
        InvalidRequestError: no such column, or a condition that cannot be understood; offers the nearest.
    """
    snapshot = read_snapshot(ctx)
    if not snapshot.files:
        if not snapshot.head:
            require_anything(ctx)
        return FoundRows(pa.table({}), False, 0)
    given = {"path": ctx.url, "timeZone": "UTC", **({"fileFormat": file_format} if file_format else {})}
    choice = FormatChoice.of(parse_read_options(given), snapshot)
    files = [DataFile(file.path, file.size_bytes) for file in snapshot.files]
    first = first_with_rows(files)
    table = read_schema(files, _opener(ctx), choice.settings(first.path if first else "", _SPLIT_BYTES))
    names = table.schema.names if columns is None else [_column(name, table.schema) for name in columns]
    filters = [_condition(text, table.schema) for text in conditions]
    batches = []
    rows = 0
    for batch in _batches(ctx, files, choice, table, names, filters):
        batches.append(batch.slice(0, limit + 1 - rows))
        rows += batches[-1].num_rows
        if rows > limit:
            break
    schema = pa.schema([table.schema.field(name) for name in names])
    found = pa.Table.from_batches(batches, schema if not batches else batches[0].schema)
    return FoundRows(found.slice(0, limit), rows > limit, len(snapshot.files))


def _opener(ctx: CommitContext) -> Any:
    return lambda path, size_bytes: StoreFile(ctx.store, ctx.key(path), size_bytes)


def _batches(
    ctx: CommitContext,
    files: Sequence[DataFile],
    choice: FormatChoice,
    table: TableSchema,
    names: Sequence[str],
    filters: Sequence[RowFilter],
) -> Iterator[pa.RecordBatch]:
    for file in files:  # one by one: most of them are never opened
        settings = choice.settings(file.path, _SPLIT_BYTES)
        for split in plan_splits([file], _opener(ctx), table, settings, filters):
            yield from read_split(split, _opener(ctx), table, settings, names, filters)


def _column(name: str, schema: pa.Schema) -> str:
    folded: dict[str, str] = {known.lower(): known for known in schema.names}
    if name.lower() not in folded:
        raise InvalidRequestError(f"no such column: {nearest(name, schema.names)}", column=name)
    return folded[name.lower()]


def _condition(text: str, schema: pa.Schema) -> RowFilter:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise InvalidRequestError("not a condition: write column=value, or !=, <, <=, >, >= instead of =", where=text)
    name = _column(found[1], schema)
    field, operator, word = pc.field(name), found[2], found[3].strip("'\"")
    try:
        value = pa.scalar(word).cast(schema.field(name).type)
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
