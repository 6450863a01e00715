"""Plain text: one string column, one line per row.

A value that would come back as something else is refused: null, which a line cannot say, and a line end. Lines of
others end in a line feed, a carriage return or both, as for Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, RowFilter
from holdfast.formats.columns.conversion import finish, needed_schema
from holdfast.formats.columns.types import check_types
from holdfast.formats.lines.blocks import (
    BYTE_ORDER_MARK,
    CODEC_EXTENSIONS,
    TEXT_PARSERS,
    LineWriter,
    behind_last_line,
    read_blocks,
)
from holdfast.formats.lines.render import scalar_text, text_bytes

__all__ = ["TEXT", "TextOptions"]


@dataclass(frozen=True, kw_only=True)
class TextOptions(FormatOptions):
    """How text is written and read.

    Attributes:
        codec: pyarrow codec of the whole file, empty for none (Spark's default).
    """

    codec: str = ""


def _check_schema(schema: pa.Schema) -> None:
    if len(schema) != 1:
        raise InvalidRequestError(
            "a text file holds one string column: select one, or use csv or json", columns=schema.names
        )
    check_types("text", schema)


def _open_writer(sink: ByteSink, schema: pa.Schema, options: TextOptions) -> LineWriter:
    def render(batch: pa.RecordBatch) -> Any:
        lines = scalar_text(batch.column(0))
        _refuse_lost(lines, schema.names[0])
        return text_bytes(pc.binary_join_element_wise(lines, "\n", ""))

    return LineWriter(sink, schema, options.codec, render)


def _refuse_lost(lines: Any, name: str) -> None:
    if lines.null_count:
        raise InvalidRequestError(
            "text cannot hold null: fill it, with coalesce for example, or use csv or json", column=name
        )
    if pc.any(pc.match_substring_regex(lines, r"[\r\n]|^\x{FEFF}")).as_py():
        raise InvalidRequestError(
            "a line of text cannot hold a line end or begin with a byte order mark: replace it, or use csv or json",
            column=name,
        )


def _read_schema(source: BinaryIO, options: TextOptions) -> pa.Schema:
    return pa.schema([("value", pa.string())])


def _read_batches(
    source: BinaryIO,
    schema: pa.Schema,
    columns: Sequence[str],
    row_filter: RowFilter | None,
    options: TextOptions,
    row_groups: Sequence[int] | None,
) -> Iterator[pa.RecordBatch]:
    needed = needed_schema(schema, columns, row_filter)
    first = True
    for block in read_blocks(source, options.codec, behind_last_line):
        if first:
            block = block.removeprefix(BYTE_ORDER_MARK)
            first = False
        if block:
            column = pa.array(_lines(block), pa.string())
            yield finish(pa.record_batch([column], names=schema.names[:1]), needed, columns, row_filter)


def _lines(block: bytes) -> list[str]:
    """str.splitlines would also split at U+2028 and friends."""
    try:
        text = block.decode()
    except UnicodeDecodeError as error:
        raise CorruptDataError("a text file is not UTF-8: convert it") from error
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n").split("\n")


TEXT = FileFormat(
    name="text",
    aliases=("txt",),
    default_options=TextOptions(),
    parsers=TEXT_PARSERS,
    extension=lambda options: f".txt{CODEC_EXTENSIONS[options.codec]}",
    check_schema=_check_schema,
    open_writer=_open_writer,
    read_schema=_read_schema,
    read_batches=_read_batches,
)
