"""Write JSON lines as Spark does, one object per line, and read what was written.

Null fields are omitted by default, binary is base64, timestamps use ISO 8601, NaN, the infinities and map keys are
strings. JSON is for exchange, not for speed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, ReadRequest
from holdfast.formats.columns.arrow_types import child_fields, is_binary
from holdfast.formats.columns.conversion import build_record_batch, plain_schema
from holdfast.formats.columns.types import BASE, INTERVALS, NESTED, TIMES, check_map_keys, check_types_supported
from holdfast.formats.lines import (
    CODEC_EXTENSIONS,
    CODEC_PARSERS,
    LineWriter,
    concatenate_bytes,
    decode_lines,
    format_scalars,
    parse_text_values,
    read_blocks,
    whole_lines_length,
)
from holdfast.stores.provider import as_boolean

_READ_ROWS = 16 * 1024


@dataclass(frozen=True, kw_only=True)
class JsonOptions(FormatOptions):
    """Options of JSON lines files.

    Attributes:
        ignore_null_fields: whether to omit null fields (Spark's default) instead of writing ``null``.
        codec: the pyarrow codec of the whole file; empty for none.
    """

    ignore_null_fields: bool = True
    codec: str = ""


# --- writing ----------------------------------------------------------------------------------------------------------
def _open_writer(sink: ByteSink, schema: pa.Schema, options: JsonOptions) -> LineWriter:
    def format_batch(batch: pa.RecordBatch) -> Any:
        fields = [
            _format_field(name, column, options.ignore_null_fields)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return concatenate_bytes(_join_json_fields(fields, batch.num_rows, "}\n"))

    return LineWriter(sink, schema, options.codec, format_batch)


def _check_schema(schema: pa.Schema) -> None:
    check_types_supported(JSON, schema)
    check_map_keys("JSON", plain_schema(schema))


_SPECIAL = r'["\\\x00-\x1f\x7f]'
_SHORT = {"\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r"}


def _quote_strings(text: Any) -> Any:
    """Return the strings in quotes, and escape the characters that JSON does not allow in strings."""
    if pc.any(pc.match_substring_regex(text, _SPECIAL)).as_py():
        text = pc.replace_substring(text, "\\", "\\\\")
        text = pc.replace_substring(text, '"', '\\"')
        for code in (*range(0x20), 0x7F):
            character = chr(code)
            if pc.any(pc.match_substring(text, character)).as_py():
                text = pc.replace_substring(text, character, _SHORT.get(character, f"\\u{code:04x}"))
    return pc.binary_join_element_wise('"', text, '"', "")


def _format_cells(values: Any, ignore_null_fields: bool) -> Any:
    """Return a string array with the JSON of each value; null stays null."""
    kind = values.type
    if pat.is_null(kind):
        return pa.nulls(len(values), pa.string())
    if pat.is_boolean(kind) or pat.is_integer(kind) or pat.is_decimal(kind):
        return values.cast(pa.string())
    if pat.is_floating(kind):
        text = format_scalars(values)
        finite = pc.is_finite(values)
        return text if pc.all(finite).as_py() in (True, None) else pc.if_else(finite, text, _quote_strings(text))
    if pat.is_struct(kind):
        fields = [
            _format_field(field.name, child, ignore_null_fields)
            for field, child in zip(kind, values.flatten(), strict=True)
        ]
        return _restore_nulls(values, _join_json_fields(fields, len(values), "}"))
    if pat.is_map(kind):
        return _format_maps(values, ignore_null_fields)
    if pat.is_nested(kind):
        elements = pc.fill_null(_format_cells(values.flatten(), ignore_null_fields), "null")
        return _join_lists(values, elements, "[", "]")
    if is_binary(kind):
        encoded = [None if value is None else base64.b64encode(value).decode() for value in values.to_pylist()]
        return _quote_strings(pa.array(encoded, pa.string()))
    return _quote_strings(format_scalars(values))


def _format_field(name: str, values: Any, ignore_null_fields: bool) -> Any:
    """Return ``,"name":value`` for each value, or an empty string for null if null fields are omitted."""
    cells = _format_cells(values, ignore_null_fields)
    if not ignore_null_fields:
        cells = pc.fill_null(cells, "null")
    label = _quote_strings(pa.array([name], pa.string()))[0].as_py()
    return pc.fill_null(pc.binary_join_element_wise(f",{label}:", cells, ""), "")


def _join_json_fields(fields: list[Any], rows: int, closing: str) -> Any:
    """Join the results of `_format_field` for all fields into one object per row."""
    if not fields:
        return pa.array(["{" + closing] * rows, pa.string())
    # Do not use the join option that skips nulls: it drops rows in which all values are null (pyarrow 26).
    inner = pc.binary_replace_slice(pc.binary_join_element_wise(*fields, ""), 0, 1, "")
    return pc.binary_join_element_wise("{", inner, closing, "")


def _format_maps(values: Any, ignore_null_fields: bool) -> Any:
    kind = values.type
    entry = pa.struct([pa.field("key", kind.key_type, False), pa.field("value", kind.item_type)])
    entries = values.cast(pa.list_(entry))
    keys, items = entries.flatten().flatten()
    pairs = pa.table(
        {"row": pc.list_parent_indices(_replace_list_elements(entries, keys)), "key": keys.cast(pa.string())}
    )
    if pairs.group_by(["row", "key"]).aggregate([]).num_rows < len(keys):
        raise InvalidRequestError("a map contains a key twice, of which readers of JSON keep one value: use parquet")
    # Null values in maps are written even if null fields are omitted, because the key would be lost with them.
    cells = pc.fill_null(_format_cells(items, ignore_null_fields), "null")
    return _join_lists(entries, pc.binary_join_element_wise(_quote_strings(format_scalars(keys)), cells, ":"), "{", "}")


def _join_lists(values: Any, elements: Any, opening: str, closing: str) -> Any:
    """Return one string per list; `elements` contains the rendered elements of all lists that are not null."""
    joined = pc.binary_join_element_wise(
        opening, pc.binary_join(_replace_list_elements(values, elements), ","), closing, ""
    )
    return _restore_nulls(values, joined)


def _replace_list_elements(values: Any, elements: Any) -> Any:
    """Return the lists with other elements: those of all lists that are not null. Null becomes an empty list."""
    lengths = pc.fill_null(pc.list_value_length(values), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int32()))
    return pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], pa.int32()), ends]), elements)


def _restore_nulls(values: Any, text: Any) -> Any:
    return text if values.null_count == 0 else pc.if_else(pc.is_valid(values), text, pa.scalar(None, pa.string()))


# --- reading ----------------------------------------------------------------------------------------------------------
_DECODER = json.JSONDecoder(parse_float=Decimal)  # which keeps all digits


def _read_batches(
    source: BinaryIO, wanted: ReadRequest, options: JsonOptions, groups: Sequence[int] | None
) -> Iterator[Any]:
    for block in read_blocks(source, options.codec, whole_lines_length):
        lines = decode_lines(block, "JSON")
        for start in range(0, len(lines), _READ_ROWS):
            rows = [_parse_row(line) for line in lines[start : start + _READ_ROWS]]
            arrays = [_build_column([row.get(field.name.lower()) for row in rows], field) for field in wanted.needed]
            yield build_record_batch(arrays, wanted.needed, len(rows))


def _parse_row(line: str) -> dict[str, Any]:
    try:
        return _fold_names(_DECODER.decode(line))
    except (ValueError, AttributeError, RecursionError) as error:
        raise CorruptDataError("a line is not a JSON object: find out what changed the file", line=line[:80]) from error


def _fold_names(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object with its names in lower case: a reader's schema may spell them in another case."""
    return {name.lower(): one for name, one in value.items()}


def _build_column(values: list[Any], field: pa.Field) -> Any:
    try:
        return _build_array(values, field)
    except (pa.ArrowException, ValueError, TypeError, AttributeError, OverflowError) as error:
        if isinstance(error, CorruptDataError):
            raise
        raise CorruptDataError(
            "a file holds a value that is not of its column's type: find out what changed the file",
            column=field.name,
            type=str(field.type),
            reason=str(error)[:120],
        ) from error


def _build_array(values: list[Any], field: pa.Field) -> Any:
    """Convert decoded values to an array; None stands for null and for a missing value."""
    kind = field.type
    if pat.is_struct(kind):
        rows = [{} if value is None else _fold_names(value) for value in values]
        below = [_build_array([row.get(child.name.lower()) for row in rows], child) for child in child_fields(kind)]
        return pa.StructArray.from_arrays(
            below, fields=child_fields(kind), mask=pa.array([value is None for value in values], pa.bool_())
        )
    if pat.is_map(kind):
        pairs = [pair for value in values if value is not None for pair in value.items()]
        keys = _build_array([key for key, _ in pairs], kind.key_field)
        items = _build_array([item for _, item in pairs], kind.item_field)
        return pa.MapArray.from_arrays(_compute_offsets(values), keys, items, type=kind)
    if pat.is_nested(kind):
        elements = [one for value in values if value is not None for one in value]
        return pa.ListArray.from_arrays(_compute_offsets(values), _build_array(elements, kind.value_field), type=kind)
    if pat.is_temporal(kind):
        return parse_text_values(pa.array(values, pa.string()), field)
    if pat.is_floating(kind):
        values = [None if value is None else float(value) for value in values]
    elif is_binary(kind):
        values = [None if value is None else base64.b64decode(value, validate=True) for value in values]
    elif not pat.is_decimal(kind) and any(isinstance(value, Decimal) for value in values):
        raise ValueError("a number with a fraction")
    return pa.array(values, kind)


def _compute_offsets(values: list[Any]) -> Any:
    """Return where each list begins in the array of all elements, and the end; null for a list that is null."""
    offsets: list[int | None] = []
    end = 0
    for value in values:
        offsets.append(None if value is None else end)
        end += len(value or ())
    return pa.array([*offsets, end], pa.int32())


JSON: FileFormat[JsonOptions] = FileFormat(
    name="json",
    default_options=JsonOptions(),
    parsers={**CODEC_PARSERS, "ignorenullfields": ("ignore_null_fields", as_boolean)},
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
    read=_read_batches,
)
