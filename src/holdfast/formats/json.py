"""Read and write JSON lines as Spark does: one object per line.

Writing: null fields are omitted by default, binary is base64, timestamps use ISO 8601, NaN, the infinities and map keys
are strings. Reading: each line contains one object or an array of objects, and is parsed as in Spark. JSON is for
exchange, not for speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from holdfast.errors import InvalidRequestError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, Inference, Wanted
from holdfast.formats.columns.conversion import batch_of, plain_schema
from holdfast.formats.columns.nesting import children
from holdfast.formats.columns.types import BASE, INTERVALS, NESTED, TIMES, check_map_keys, check_types, special_struct
from holdfast.formats.json_inference import merge_types, schema_of, type_of_rows
from holdfast.formats.json_values import (
    build_column,
    decoder,
    field_decoder,
    has_map,
    json_rows,
    read_lines,
    repeated_keys,
    speller,
)
from holdfast.formats.lines.blocks import CODEC_EXTENSIONS, TEXT_PARSERS, TIME_PARSERS, LineWriter, only
from holdfast.formats.lines.render import join_object, json_field, text_bytes
from holdfast.stores.option_values import as_boolean

_READ_ROWS = 16 * 1024


@dataclass(frozen=True, kw_only=True)
class JsonOptions(FormatOptions):
    """Options of JSON lines files.

    Attributes:
        ignore_null_fields: whether to omit null fields (Spark's default) instead of writing ``null``.
        time_zone: the zone of timestamps that do not contain one; empty if unknown.
        codec: the pyarrow codec of the whole file; empty for none.
    """

    ignore_null_fields: bool = True
    time_zone: str = ""
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


def _check_schema(schema: pa.Schema) -> None:
    check_types(JSON, schema)
    check_map_keys("JSON", plain_schema(schema))


# --- reading ----------------------------------------------------------------------------------------------------------
def _inspect(source: BinaryIO, options: JsonOptions) -> pa.DataType:
    parse = decoder()
    return type_of_rows(
        row for lines in read_lines(source, options.codec) for line in lines for row in json_rows(line, parse)
    )


def _refuse_variant(path: str, kind: pa.DataType) -> None:
    """Reject VARIANT columns: their two binary parts are not fields of the JSON objects."""
    if special_struct(kind):
        raise InvalidRequestError(
            "VARIANT columns cannot be read from JSON here: read a string and use parse_json",
            column=path,
        )
    for child in children(kind):
        _refuse_variant(f"{path}.{child.name}", child.type)


def _read(source: BinaryIO, wanted: Wanted, options: JsonOptions, groups: Sequence[int] | None) -> Iterator[Any]:
    check_map_keys("JSON", wanted.needed)  # Spark writes a date key as its number of days
    for field in wanted.needed:
        _refuse_variant(field.name, field.type)
    decoders = [field_decoder(field.type, options.time_zone) for field in wanted.needed]
    spelled = speller(wanted.schema.names)  # all names, because a key may belong to another column
    parse = repeated_keys() if any(has_map(field.type) for field in wanted.needed) else decoder()

    def build(found: list[dict[str, Any]]) -> pa.RecordBatch:
        rows = _spelled(found, spelled)
        arrays = [
            build_column([row.get(field.name) for row in rows], field, decode, options.time_zone)
            for field, decode in zip(wanted.needed, decoders, strict=True)
        ]
        return batch_of(arrays, wanted.needed, len(rows))

    for block in read_lines(source, options.codec):
        for start in range(0, len(block), _READ_ROWS):
            lines = block[start : start + _READ_ROWS]
            batch = build([row for line in lines for row in json_rows(line, parse)])
            yield batch


def _spelled(rows: list[dict[str, Any]], spelled: Callable[[dict[str, Any]], dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        return [spelled(row) for row in rows]
    except ValueError as error:
        raise InvalidRequestError(f"{error}: spell the column like one of them") from error


JSON: FileFormat[JsonOptions] = FileFormat(
    name="json",
    default_options=JsonOptions(),
    parsers={
        **TEXT_PARSERS,
        "ignorenullfields": ("ignore_null_fields", as_boolean),
        **TIME_PARSERS,
        "multiline": only(("false",), "files have one object per line"),
        "timezone": ("time_zone", str),
    },
    holds=BASE | NESTED | {"null", "binary", "collated string", "user-defined"},
    reasons={
        **dict.fromkeys(INTERVALS, "JSON has no interval type: cast the column to a string"),
        **dict.fromkeys(TIMES, "JSON has no time type: cast the column to a string"),
        "variant": "JSON does not store types, so 1 and 1.0 would be the same value: store to_json(column)",
    },
    is_text=True,
    extension=lambda options: f".json{CODEC_EXTENSIONS[options.codec]}",
    check_schema=_check_schema,
    open_writer=_open_writer,
    read_schema=lambda source, options: schema_of(_inspect(source, options)),
    read=_read,
    inference=Inference(inspect=_inspect, merge=merge_types, schema=schema_of),
)
