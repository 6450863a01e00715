"""Convert columns to the plain form in which all formats write them, and to the schema that a reader requests.

Columns in the plain form have no dictionary encoding, and all times are in microseconds, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.arrow_types import child_fields, is_binary, is_list, is_string
from holdfast.formats.filters import RowFilter


def leaf_columns(path: str, array: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, values) of the leaf columns of a nested column, with paths as in Parquet."""
    kind = array.type
    if pat.is_map(kind):
        entries = array.cast(pa.list_(kind.field(0))).flatten()  # `keys` ignores the slice of a sliced array
        yield from leaf_columns(f"{path}.key_value.{kind.key_field.name}", entries.field(0))
        yield from leaf_columns(f"{path}.key_value.{kind.item_field.name}", entries.field(1))
    elif pat.is_list(kind) or pat.is_large_list(kind):
        yield from leaf_columns(f"{path}.list.element", array.flatten())
    elif pat.is_struct(kind):
        for field, child in zip(kind, array.flatten(), strict=True):
            yield from leaf_columns(f"{path}.{field.name}", child)
    else:
        yield path, array


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in the plain form."""
    if pat.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pat.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pat.is_time(kind):
        return pa.time64("us")
    if pat.is_duration(kind):
        return pa.duration("us")
    return transform_child_fields(kind, _plain_field)


def transform_child_fields(kind: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """Return a nested type with each direct child field changed; fixed-size lists become plain lists."""
    if pat.is_map(kind):  # keys are never null
        return pa.map_(change(kind.key_field).with_nullable(False), change(kind.item_field))
    if pat.is_large_list(kind):
        return pa.large_list(change(kind.value_field))
    if pat.is_fixed_size_list(kind) or pat.is_list(kind):
        return pa.list_(change(kind.value_field))
    if pat.is_struct(kind):
        return pa.struct([change(field) for field in child_fields(kind)])
    return kind


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _plain_type(field.type), field.nullable)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema in which all formats write these columns: no dictionaries, times in microseconds."""
    return pa.schema([_plain_field(field) for field in schema])


def to_plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to `schema`, which `plain_schema` returned; columns with the right type are not touched.

    Raises:
        InvalidRequestError: a value would lose digits (nanoseconds that are not whole microseconds), or the batch has
            other columns than the schema.
    """
    if batch.schema.equals(schema):
        return batch
    if batch.schema.names != schema.names:
        raise InvalidRequestError(
            "a batch has different columns than its file: pass batches with one schema", columns=batch.schema.names
        )
    columns = [
        column if column.type.equals(field.type) else cast_column(column, field)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return build_record_batch(columns, schema, batch.num_rows)


def cast_column(column: Any, field: pa.Field) -> Any:
    """Cast a column to the field's type without changing any value.

    Raises:
        InvalidRequestError: a value does not fit. It is never replaced by null or rounded.
    """
    try:
        _refuse_lossy_cast(column.type, field.type)
        if not pat.is_nested(field.type):
            return column.cast(field.type)
        if column.offset:  # pyarrow 26 gives a null column below a sliced struct the wrong length
            column = pa.concat_arrays([column])
        # Arrow refuses to cast a nullable field to a non-nullable one, even if it contains no null.
        return _relabel_array(column.cast(transform_child_fields(field.type, _make_nullable)), field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequestError(
            "a value does not fit the column's type: cast or round the column first",
            column=field.name,
            type=str(field.type),
        ) from error


def reinterpret_bits(column: Any, kind: pa.DataType) -> Any:
    """Reinterpret the column's bits as another type: dates, times or durations as integers, or vice versa."""
    if column.offset and pat.is_nested(column.type):
        column = pa.concat_arrays([column])
    return _relabel_array(column, kind) if pat.is_nested(kind) else column.view(kind)


def _refuse_lossy_cast(kind: pa.DataType, wanted: pa.DataType) -> None:
    """Raise `pa.ArrowInvalid` if a cast between these types could round, truncate or reinterpret values."""
    if pat.is_nested(kind) and pat.is_nested(wanted):
        if pat.is_struct(wanted) and pat.is_struct(kind):
            fields = {field.name: field for field in child_fields(kind)}
            pairs = [(fields[field.name], field) for field in child_fields(wanted) if field.name in fields]
        else:
            pairs = list(zip(child_fields(kind), child_fields(wanted), strict=False))
        for one, other in pairs:
            _refuse_lossy_cast(one.type, other.type)
        return
    if pat.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if not (kind.equals(wanted) or pat.is_null(kind) or _is_cast_lossless(kind, wanted)):
        raise pa.ArrowInvalid(f"no cast from {kind} to {wanted} preserves every value")


def _is_cast_lossless(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Check whether Arrow's cast between two types either preserves every value or fails."""
    if pat.is_integer(kind):
        return bool(pat.is_integer(wanted) or pat.is_floating(wanted) or pat.is_decimal(wanted))
    if pat.is_floating(kind):
        return bool(pat.is_integer(wanted) or (pat.is_floating(wanted) and wanted.bit_width >= kind.bit_width))
    if pat.is_decimal(kind):
        return bool(pat.is_decimal(wanted) or pat.is_integer(wanted))
    if pat.is_date(kind):
        return bool(pat.is_date(wanted) or (pat.is_timestamp(wanted) and wanted.tz is None))
    sorts = (pat.is_timestamp, pat.is_time, pat.is_duration, pat.is_boolean, _is_bytes_type)
    return any(is_one(kind) and is_one(wanted) for is_one in sorts)


def _is_bytes_type(kind: pa.DataType) -> bool:
    return is_string(kind) or is_binary(kind)


def _make_nullable(field: pa.Field) -> pa.Field:
    return pa.field(field.name, transform_child_fields(field.type, _make_nullable))


def _relabel_array(array: Any, kind: pa.DataType) -> Any:
    """Return the array as `kind`, which differs from its type only in names and nullability of nested fields."""
    if array.type.equals(kind):
        return array
    if array.offset:
        array = pa.concat_arrays([array])
    pairs = zip(child_arrays(array), child_fields(kind), strict=True)
    return with_child_arrays(array, kind, [_relabel_array(child, field.type) for child, field in pairs])


def child_arrays(array: Any) -> list[Any]:
    """Return the direct child arrays of a nested array; a map has one child, the array of its entries."""
    if pat.is_struct(array.type):
        return [array.field(index) for index in range(array.type.num_fields)]
    return [array.values] if pat.is_nested(array.type) else []


def with_child_arrays(array: Any, kind: pa.DataType, below: list[Any]) -> Any:
    """Return a nested array with other child arrays, and with the type `kind`; the array must not have an offset."""
    own = 1 if pat.is_struct(kind) or pat.is_fixed_size_list(kind) else 2  # validity, and offsets or values
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:own], children=below)


def select_needed_schema(schema: pa.Schema, columns: Sequence[str], row_filter: RowFilter | None) -> pa.Schema:
    """Return the part of a file's schema that must be read: the requested columns, then those of the filter only."""
    names = list(columns)
    if row_filter is not None:
        names += sorted(row_filter.columns - set(names))
    return pa.schema([schema.field(name) for name in names])


def convert_to_requested(
    batch: pa.RecordBatch, needed: pa.Schema, columns: Sequence[str], row_filter: RowFilter | None
) -> pa.RecordBatch:
    """Convert a batch of a file to the requested schema, apply the filter, and drop columns of the filter only.

    The batch is converted to `needed`: columns are reordered and cast, and missing ones are filled with nulls. An exact
    match of a name takes precedence; if there is none, case is ignored, as in Spark.

    Args:
        columns: the columns to return, in this order.
    """
    batch = convert_batch(batch, needed)
    if row_filter is not None:
        batch = filter_rows(batch, row_filter)
    return batch if len(needed) == len(columns) else batch.select(list(columns))


def filter_rows(batch: pa.RecordBatch, row_filter: RowFilter) -> pa.RecordBatch:
    """Return the rows of a batch that pass a filter.

    `RecordBatch.filter` would do, but in pyarrow before 21 it raises an IndexError if no row passes.
    """
    found = pa.Table.from_batches([batch]).filter(row_filter.expression).combine_chunks().to_batches()
    return found[0] if found else batch.slice(0, 0)


def convert_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to `schema`: reorder and cast columns, add missing ones as nulls, ignore the case of names.

    Raises:
        InvalidRequestError: a value does not fit its column's type.
    """
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
            if not column.type.equals(field.type):
                column = cast_column(_rename_fields_like(column, field.type), field)
            columns.append(column)
    return build_record_batch(columns, schema, batch.num_rows)


def _rename_fields_like(array: Any, like: pa.DataType) -> Any:
    """Spell the fields of structs as `like` does, because a cast fills fields without an exact match with nulls."""
    kind = _type_with_names_like(array.type, like)
    return _relabel_array(array, kind)


def _type_with_names_like(kind: pa.DataType, like: pa.DataType) -> pa.DataType:
    if pat.is_struct(kind) and pat.is_struct(like):
        exact = {field.name for field in child_fields(like)}
        folded = {field.name.lower(): field for field in child_fields(like)}
        fields = []
        for field in child_fields(kind):
            other = like.field(field.name) if field.name in exact else folded.get(field.name.lower())
            if other is not None:
                field = pa.field(
                    other.name, _type_with_names_like(field.type, other.type), field.nullable, field.metadata
                )
            fields.append(field)
        return pa.struct(fields)
    if pat.is_map(kind) and pat.is_map(like):
        key, item = kind.key_field, kind.item_field
        return pa.map_(
            key.with_type(_type_with_names_like(key.type, like.key_type)),
            item.with_type(_type_with_names_like(item.type, like.item_type)),
            kind.keys_sorted,
        )
    if is_list(kind) and pat.is_nested(like) and like.num_fields == 1:
        element = kind.value_field.with_type(_type_with_names_like(kind.value_type, like.field(0).type))
        if pat.is_fixed_size_list(kind):
            return pa.list_(element, kind.list_size)
        return pa.large_list(element) if pat.is_large_list(kind) else pa.list_(element)
    return kind


def build_record_batch(columns: list[Any], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Build a record batch of `rows` rows from arrays; `columns` may be empty, if only the rows are counted."""
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


# A partitioned task delivers slivers of a few rows. Encoders have a cost per chunk, so slivers are joined from time
# to time: each row is copied at most once, and most chunks have at least this many rows.
_SLIVER_ROWS = 4096
_SLIVERS = 64


class BatchBuffer:
    """Collects record batches with their total size; only the rows of tiny batches are copied."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._slivers: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Append a batch that has the buffer's schema."""
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        if batch.num_rows >= _SLIVER_ROWS:
            self._join_slivers()
            self._batches.append(batch)
            return
        self._slivers.append(batch)
        if len(self._slivers) >= _SLIVERS:
            self._join_slivers()

    def _join_slivers(self) -> None:
        if len(self._slivers) > 1:
            self._batches.extend(pa.Table.from_batches(self._slivers).combine_chunks().to_batches())
        else:
            self._batches.extend(self._slivers)
        self._slivers.clear()

    def take(self) -> pa.Table:
        """Return all rows as one table and empty the buffer."""
        self._join_slivers()
        table = pa.Table.from_batches(self._batches, self._schema)
        self._batches.clear()
        self.rows = self.bytes = 0
        return table
