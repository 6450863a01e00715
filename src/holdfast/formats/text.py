"""Plain text: one string column, one line per row. A null is an empty line, as in Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import InvalidRequestError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, RowFilter
from holdfast.formats.columns import finish, needed_schema
from holdfast.formats.lines import CODEC_EXTENSIONS, TEXT_PARSERS, LineWriter, read_blocks
from holdfast.formats.render import scalar_text, text_bytes
from holdfast.formats.types import check_types

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
        lines = pc.fill_null(scalar_text(batch.column(0)), "")
        return text_bytes(pc.binary_join_element_wise(lines, "\n", ""))

    return LineWriter(sink, schema, options.codec, render)


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
    for block in read_blocks(source, options.codec, lambda data: data.rfind(b"\n") + 1):
        # Split by line feed only: str.splitlines would also split at U+2028 and friends.
        lines = block.removesuffix(b"\n").split(b"\n")
        column = pa.array([line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines], pa.string())
        yield finish(pa.record_batch([column], names=schema.names[:1]), needed, columns, row_filter)


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
