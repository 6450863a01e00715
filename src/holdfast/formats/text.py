"""Read and write plain text: one string column, one row per line.

Values that would not survive a round trip are rejected: null, which a line cannot express, and line ends. The reader
accepts lines that end in a line feed, a carriage return or both, as Spark does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import InvalidRequestError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, ReadRequest
from holdfast.formats.columns.types import BEYOND, KINDS, check_types_supported
from holdfast.formats.lines import (
    CODEC_EXTENSIONS,
    CODEC_PARSERS,
    LineWriter,
    concatenate_bytes,
    decode_lines,
    read_blocks,
    whole_lines_length,
)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True)
class TextOptions(FormatOptions):
    """Options of text files.

    Attributes:
        codec: the pyarrow codec of the whole file; empty for none (Spark's default).
    """

    codec: str = ""


def _check_schema(schema: pa.Schema) -> None:
    if len(schema) != 1:
        raise InvalidRequestError(
            "a text file has exactly one string column: select one, or use csv or json", columns=schema.names
        )
    check_types_supported(TEXT, schema)


def _open_writer(sink: ByteSink, schema: pa.Schema, options: TextOptions) -> LineWriter:
    def format_batch(batch: pa.RecordBatch) -> Any:
        lines = batch.column(0).cast(pa.string())
        _refuse_lossy_values(lines, schema.names[0])
        return concatenate_bytes(pc.binary_join_element_wise(lines, "\n", ""))

    return LineWriter(sink, schema, options.codec, format_batch)


def _refuse_lossy_values(lines: Any, name: str) -> None:
    if lines.null_count:
        raise InvalidRequestError(
            "text files cannot store null: replace it, for example with coalesce, or use csv or json", column=name
        )
    if pc.any(pc.match_substring_regex(lines, r"[\r\n]|^\x{FEFF}")).as_py():
        raise InvalidRequestError(
            "a line of text cannot contain a line end or begin with a byte order mark: replace it, or use csv or json",
            column=name,
        )


def _read_schema(source: BinaryIO, options: TextOptions) -> pa.Schema:
    return pa.schema([("value", pa.string())])


def _read_batches(
    source: BinaryIO, wanted: ReadRequest, options: TextOptions, groups: Sequence[int] | None
) -> Iterator[Any]:
    first = True
    for block in read_blocks(source, options.codec, whole_lines_length):
        if first:
            block = block.removeprefix(_BYTE_ORDER_MARK)
            first = False
        if block:
            column = pa.array(decode_lines(block, "text"), pa.string())
            yield pa.record_batch([column], names=wanted.schema.names[:1])


TEXT: FileFormat[TextOptions] = FileFormat(
    name="text",
    default_options=TextOptions(),
    parsers=CODEC_PARSERS,
    holds=frozenset({"string", "collated string"}),
    reasons=dict.fromkeys(
        {*KINDS, *BEYOND, "time of nanoseconds"} - {"string", "collated string", "geometry", "geography"},
        "a line of text is a string: cast the column to a string",
    ),
    is_text=True,
    extension=lambda options: f".txt{CODEC_EXTENSIONS[options.codec]}",
    check_schema=_check_schema,
    open_writer=_open_writer,
    read_schema=_read_schema,
    read=_read_batches,
)
