"""JSON lines as Spark writes and reads them: one object per line.

Written: null fields left out unless told otherwise, binary as base64, timestamps in ISO 8601, NaN and the infinities
as strings, map keys as strings. Read: one Python object per line; JSON is for exchange, not for speed.
"""

from __future__ import annotations

import base64
import decimal
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, RowFilter
from holdfast.formats.columns import batch_of, finish, needed_schema
from holdfast.formats.lines import CODEC_EXTENSIONS, TEXT_PARSERS, LineWriter, read_blocks
from holdfast.formats.options import boolean, only
from holdfast.formats.render import join_object, json_field, text_bytes
from holdfast.formats.types import check_types, children, is_string

__all__ = ["JSON", "JsonOptions"]

_READ_ROWS = 16 * 1024


@dataclass(frozen=True, kw_only=True)
class JsonOptions(FormatOptions):
    """How JSON lines are written.

    Attributes:
        ignore_null_fields: leave fields out that are null (Spark's default) instead of writing ``null``.
        codec: pyarrow codec of the whole file, empty for none.
    """

    ignore_null_fields: bool = True
    codec: str = ""


# --- writing ----------------------------------------------------------------------------------------------------------
def _open_writer(sink: ByteSink, schema: pa.Schema, options: JsonOptions) -> LineWriter:
    def render(batch: pa.RecordBatch) -> Any:
        fields = [
            json_field(name, column, options.ignore_null_fields)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return text_bytes(join_object(fields, batch.num_rows, "{", "}\n"))

    return LineWriter(sink, schema, options.codec, render)


# --- reading ----------------------------------------------------------------------------------------------------------
def _objects(source: BinaryIO, options: JsonOptions) -> Iterator[dict[str, Any]]:
    for block in read_blocks(source, options.codec, lambda data: data.rfind(b"\n") + 1):
        for line in block.split(b"\n"):
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_float=decimal.Decimal)
            except ValueError as error:
                raise CorruptDataError("a line is not JSON: check the file", line=line[:80]) from error
            if not isinstance(row, dict):
                raise CorruptDataError("a line is not a JSON object: check the file", line=line[:80])
            yield row


def _decoder(kind: pa.DataType) -> Callable[[Any], Any]:
    """A function from a JSON value, not null, to what `pa.array` takes for the type."""
    if pat.is_floating(kind):
        return float
    if pat.is_decimal(kind):
        return decimal.Decimal
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return base64.b64decode
    if is_string(kind):
        return lambda value: value if isinstance(value, str) else json.dumps(value, default=str)
    if pat.is_timestamp(kind):  # as a number: Python's datetime would need zone data
        return lambda value: pa.scalar(value, pa.string()).cast(kind).cast(pa.int64()).as_py()
    if pat.is_date(kind):
        return lambda value: pa.scalar(value, pa.string()).cast(kind).as_py()
    if pat.is_map(kind):
        key, item = _map_key(kind.key_type), _nullable(_decoder(kind.item_type))
        return lambda value: [(key(name), item(element)) for name, element in value.items()]
    if pat.is_struct(kind):
        fields = [(field.name, _nullable(_decoder(field.type))) for field in children(kind)]
        return lambda value: {name: decode(value.get(name)) for name, decode in fields}
    if pat.is_nested(kind):
        element = _nullable(_decoder(kind.value_type))
        return lambda value: [element(one) for one in value]
    return lambda value: value


def _map_key(kind: pa.DataType) -> Callable[[str], Any]:
    """Map keys are strings in JSON, whatever their type."""
    if is_string(kind) or pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_timestamp(kind):
        return _decoder(kind)
    return lambda text: pa.scalar(text, pa.string()).cast(kind).as_py()


def _nullable(decode: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else decode(value)


def _column(rows: list[dict[str, Any]], field: pa.Field, decode: Callable[[Any], Any]) -> Any:
    values = [row.get(field.name) for row in rows]
    kind = field.type
    try:
        if pat.is_timestamp(kind) or pat.is_date(kind):  # the common ones at once, without a call per value
            return pa.array(values, pa.string()).cast(kind)
        return pa.array([decode(value) for value in values], kind)
    except (pa.ArrowException, ValueError, TypeError, AttributeError, decimal.InvalidOperation) as error:
        raise InvalidRequestError(
            "a JSON value is not of the column's type: give the right schema", column=field.name, type=str(kind)
        ) from error


def _read_schema(source: BinaryIO, options: JsonOptions) -> pa.Schema:
    """Inferred from the first rows: names in order of appearance, decimals as doubles as in Spark."""
    rows: list[dict[str, Any]] = []
    for row in _objects(source, options):
        rows.append(_as_floats(row))
        if len(rows) == _READ_ROWS:
            break
    names = dict.fromkeys(name for row in rows for name in row)
    try:
        inferred = {name: pa.array([row.get(name) for row in rows]).type for name in names}
    except (pa.ArrowException, OverflowError) as error:
        raise InvalidRequestError("rows of a JSON file differ in their types: give a schema") from error
    return pa.schema([(name, pa.string() if pat.is_null(kind) else kind) for name, kind in inferred.items()])


def _as_floats(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, dict):
        return {name: _as_floats(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_as_floats(one) for one in value]
    return value


def _read_batches(
    source: BinaryIO,
    schema: pa.Schema,
    columns: Sequence[str],
    row_filter: RowFilter | None,
    options: JsonOptions,
    row_groups: Sequence[int] | None,
) -> Iterator[pa.RecordBatch]:
    needed = needed_schema(schema, columns, row_filter)
    decoders = [_nullable(_decoder(field.type)) for field in needed]
    rows: list[dict[str, Any]] = []

    def flush() -> pa.RecordBatch:
        arrays = [_column(rows, field, decode) for field, decode in zip(needed, decoders, strict=True)]
        batch = batch_of(arrays, needed, len(rows))
        rows.clear()
        return finish(batch, needed, columns, row_filter)

    for row in _objects(source, options):
        rows.append(row)
        if len(rows) == _READ_ROWS:
            yield flush()
    if rows:
        yield flush()


_SPARK_TIMES = "cast the column to a string in the pattern you want, with date_format"

JSON = FileFormat(
    name="json",
    aliases=("jsonl", "ndjson"),
    default_options=JsonOptions(),
    parsers={
        **TEXT_PARSERS,
        "ignorenullfields": boolean("ignore_null_fields"),
        "dateformat": only(("yyyy-MM-dd",), _SPARK_TIMES),
        "timestampformat": only((), _SPARK_TIMES),
        "timestampntzformat": only((), _SPARK_TIMES),
        "multiline": only(("false",), "one object per line"),
    },
    extension=lambda options: f".json{CODEC_EXTENSIONS[options.codec]}",
    check_schema=lambda schema: check_types("json", schema),
    open_writer=_open_writer,
    read_schema=_read_schema,
    read_batches=_read_batches,
)
