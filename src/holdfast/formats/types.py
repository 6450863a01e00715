"""Which Arrow types a format can hold, and the plain form in which columns are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.base import RowFilter

__all__ = [
    "HOLDS",
    "batch_of",
    "check_types",
    "children",
    "finish",
    "is_string",
    "leaves",
    "map_children",
    "needed_schema",
    "plain_batch",
    "plain_schema",
]


def is_string(kind: pa.DataType) -> bool:
    """Any of Arrow's string types."""
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind) or pat.is_binary_view(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def children(kind: pa.DataType) -> list[pa.Field]:
    """The fields right below a nested type."""
    return [kind.field(i) for i in range(kind.num_fields)] if pat.is_nested(kind) else []


# --- kinds: words for groups of types ---------------------------------------------------------------------------------
_KINDS: Mapping[str, Callable[[pa.DataType], bool]] = {
    "null": pat.is_null,
    "boolean": pat.is_boolean,
    "integer": pat.is_signed_integer,
    "float": lambda kind: pat.is_float32(kind) or pat.is_float64(kind),
    "decimal": lambda kind: pat.is_decimal128(kind),
    "string": is_string,
    "binary": _is_binary,
    "date": pat.is_date32,
    "timestamp": lambda kind: pat.is_timestamp(kind) and kind.tz is not None,
    "timestamp_ntz": lambda kind: pat.is_timestamp(kind) and kind.tz is None,
    "time": pat.is_time,
    "duration": pat.is_duration,
    "list": _is_list,
    "map": pat.is_map,
    "struct": pat.is_struct,
}
_BASE = frozenset({"boolean", "integer", "float", "decimal", "string", "date", "timestamp", "timestamp_ntz"})
_NESTED = frozenset({"list", "map", "struct"})


def _kind_of(kind: pa.DataType) -> str | None:
    return next((name for name, matches in _KINDS.items() if matches(kind)), None)


# --- what each format holds -------------------------------------------------------------------------------------------
HOLDS: Mapping[str, frozenset[str]] = {
    "parquet": _BASE | _NESTED | {"null", "binary", "duration", "time"},
    "orc": _BASE | _NESTED | {"binary", "duration"},
    "avro": _BASE | _NESTED | {"null", "binary"},
    "arrow": frozenset(_KINDS),
    "json": _BASE | _NESTED | {"null", "binary"},
    "csv": _BASE | {"null"},
    "text": frozenset({"string"}),
}


@dataclass(frozen=True, slots=True)
class _Unheld:
    path: str
    type: pa.DataType
    needs: frozenset[str]


def check_types(format_name: str, schema: pa.Schema) -> None:
    """See `FileFormat.check_schema`.

    Raises:
        InvalidRequestError: the format cannot hold a column; the message names the formats that can.
    """
    holds = HOLDS[format_name]
    seen: dict[str, str] = {}
    for column in schema:
        folded = column.name.lower()
        if folded in seen:
            raise InvalidRequestError(
                "two columns are the same or differ only by case: rename one", first=seen[folded], second=column.name
            )
        seen[folded] = column.name
        for unheld in _unheld(column.name, column.type, holds):
            formats = sorted(name for name, kinds in HOLDS.items() if unheld.needs <= kinds)
            advice = f"use {' or '.join(formats)}, or cast the column" if formats else "cast the column"
            raise InvalidRequestError(
                f"{format_name} cannot hold this type: {advice}", column=unheld.path, type=str(unheld.type)
            )
        _check_struct_names(column.name, column.type)


def _unheld(path: str, kind: pa.DataType, holds: frozenset[str]) -> Iterator[_Unheld]:
    if pat.is_dictionary(kind):
        kind = kind.value_type
    word = _kind_of(kind)
    if word is None:
        yield _Unheld(path, kind, frozenset({"unknown"}))
    elif word not in holds:
        yield _Unheld(path, kind, frozenset({word}))
    for child in children(kind):
        yield from _unheld(f"{path}.{child.name}", child.type, holds)


def _check_struct_names(path: str, kind: pa.DataType) -> None:
    if pat.is_struct(kind):
        if kind.num_fields == 0:
            raise InvalidRequestError("no format can hold a struct without fields: add one", column=path)
        names = [field.name.lower() for field in children(kind)]
        if len(set(names)) < len(names):
            raise InvalidRequestError("two fields of a struct differ only by case: rename one", column=path)
    for child in children(kind):
        _check_struct_names(f"{path}.{child.name}", child.type)


def leaves(path: str, array: Any) -> Iterator[tuple[str, Any]]:
    """The leaf columns below a column, named as in Parquet, with their values."""
    kind = array.type
    if pat.is_map(kind):
        yield from leaves(f"{path}.key_value.{kind.key_field.name}", array.keys)
        yield from leaves(f"{path}.key_value.{kind.item_field.name}", array.items)
    elif pat.is_list(kind) or pat.is_large_list(kind):
        yield from leaves(f"{path}.list.element", array.flatten())
    elif pat.is_struct(kind):
        for field, child in zip(kind, array.flatten(), strict=True):
            yield from leaves(f"{path}.{field.name}", child)
    else:
        yield path, array


# --- plain form -------------------------------------------------------------------------------------------------------
def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without dictionary encoding; times, timestamps and durations in microseconds, as Spark keeps them."""
    if pat.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pat.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pat.is_time(kind):
        return pa.time64("us")
    if pat.is_duration(kind):
        return pa.duration("us")
    return map_children(kind, _plain_field)


def map_children(kind: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """A nested type with each field right below it changed; lists of fixed size become plain lists."""
    if pat.is_map(kind):
        return pa.map_(change(kind.key_field), change(kind.item_field))
    if pat.is_large_list(kind):
        return pa.large_list(change(kind.value_field))
    if pat.is_fixed_size_list(kind) or pat.is_list(kind):
        return pa.list_(change(kind.value_field))
    if pat.is_struct(kind):
        return pa.struct([change(field) for field in children(kind)])
    return kind


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, plain_type(field.type), field.nullable)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of the plain form, without metadata."""
    return pa.schema([_plain_field(field) for field in schema])


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in the plain form `schema`; columns that have it already are not touched.

    Raises:
        InvalidRequestError: a value would lose digits (nanoseconds that are not whole microseconds), or the columns
            are not those of the schema.
    """
    if batch.schema.equals(schema):
        return batch
    if batch.schema.names != schema.names:
        raise InvalidRequestError(
            "a batch has other columns than its file: pass batches of one schema", columns=batch.schema.names
        )
    columns = [
        column if column.type.equals(field.type) else cast(column, field)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return batch_of(columns, schema, batch.num_rows)


def cast(column: Any, field: pa.Field) -> Any:
    """The column in the field's type; a value that does not fit is an error, never a null or a rounded value."""
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequestError(
            "a value does not fit the column's type: cast or round the column first",
            column=field.name,
            type=str(field.type),
        ) from error


def needed_schema(schema: pa.Schema, columns: Sequence[str], row_filter: RowFilter | None) -> pa.Schema:
    """The part of a file's schema that has to be read: the wanted columns, then those only the filter looks at."""
    names = list(columns)
    if row_filter is not None:
        names += sorted(row_filter.columns - set(names))
    return pa.schema([schema.field(name) for name in names])


def finish(
    batch: pa.RecordBatch, needed: pa.Schema, columns: Sequence[str], row_filter: RowFilter | None
) -> pa.RecordBatch:
    """What `FileFormat.read_batches` yields of a batch as the file has it.

    The batch becomes `needed`: reordered, cast, null where it lacks a column; names match exactly, else without regard
    to case as in Spark. Then the filter is applied and what only it looked at is dropped.
    """
    batch = _conform(batch, needed)
    if row_filter is not None:
        batch = batch.filter(row_filter.expression)
    return batch if len(needed) == len(columns) else batch.select(list(columns))


def _conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    exact = {name: index for index, name in enumerate(batch.schema.names)}
    folded = {name.lower(): index for name, index in exact.items()}
    columns = []
    for field in schema:
        index = exact.get(field.name, folded.get(field.name.lower()))
        if index is None:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            column = batch.column(index)
            columns.append(column if column.type.equals(field.type) else cast(column, field))
    return batch_of(columns, schema, batch.num_rows)


def batch_of(columns: list[Any], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    # A batch without columns still has rows (a count over a file).
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
