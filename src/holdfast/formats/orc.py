"""ORC through pyarrow.

Memory: rows are collected into batches of about 64 Ki before they go to the encoder, which holds one stripe (64 MiB).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.orc as pa_orc

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, RowFilter
from holdfast.formats.buffer import BatchBuffer
from holdfast.formats.files import input_file, output_stream
from holdfast.formats.options import choice
from holdfast.formats.types import check_types, finish, needed_schema, plain_batch, plain_schema

__all__ = ["ORC", "OrcOptions"]

_STRIPE_BYTES = 64 * 1024 * 1024
_WRITE_ROWS = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class OrcOptions(FormatOptions):
    """How ORC is written.

    Attributes:
        compression: codec as pyarrow names it; zstd is Spark 4's default.
    """

    compression: str = "zstd"


_CODECS = {
    "none": "uncompressed",
    "uncompressed": "uncompressed",
    "snappy": "snappy",
    "zlib": "zlib",
    "zstd": "zstd",
    "lz4": "lz4",
}


class _OrcWriter:
    def __init__(self, sink: ByteSink, schema: pa.Schema, options: OrcOptions) -> None:
        self._plain = plain_schema(schema)
        self._buffer = BatchBuffer(self._plain)
        self._stripe_bytes = 0  # decoded bytes given to the encoder since it can last have ended a stripe
        self._writer = pa_orc.ORCWriter(
            output_stream(sink), compression=options.compression, stripe_size=_STRIPE_BYTES, file_version="0.12"
        )
        self._empty = True

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.bytes + self._stripe_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        self._buffer.add(plain_batch(batch, self._plain))
        if self._buffer.rows >= _WRITE_ROWS:
            self._flush()

    def close(self) -> None:
        if self._buffer.rows or self._empty:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._stripe_bytes = (self._stripe_bytes + self._buffer.bytes) % _STRIPE_BYTES
        self._writer.write(self._buffer.take())
        self._empty = False


def _open_file(source: BinaryIO) -> Any:
    try:
        return pa_orc.ORCFile(input_file(source))
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptDataError("not an ORC file: check what was put there and when") from error


def _read_schema(source: BinaryIO, options: OrcOptions) -> pa.Schema:
    return plain_schema(_open_file(source).schema)


def _read_batches(
    source: BinaryIO,
    schema: pa.Schema,
    columns: Sequence[str],
    row_filter: RowFilter | None,
    options: OrcOptions,
    row_groups: Sequence[int] | None,
) -> Iterator[pa.RecordBatch]:
    file = _open_file(source)
    needed = needed_schema(schema, columns, row_filter)
    wanted = {name.lower() for name in needed.names}
    found = [name for name in file.schema.names if name.lower() in wanted] or file.schema.names[:1]
    for stripe in range(file.nstripes):
        yield finish(file.read_stripe(stripe, columns=found), needed, columns, row_filter)


def _check_schema(schema: pa.Schema) -> None:
    if not schema.names:
        raise InvalidRequestError("a file needs a column: select at least one")
    check_types("orc", schema)


ORC = FileFormat(
    name="orc",
    default_options=OrcOptions(),
    parsers={
        "compression": choice("compression", _CODECS),
        "codec": choice("compression", _CODECS),
        "orc.compress": choice("compression", _CODECS),
    },
    extension=lambda options: ".orc" if options.compression == "uncompressed" else f".{options.compression}.orc",
    check_schema=_check_schema,
    open_writer=_OrcWriter,
    read_schema=_read_schema,
    read_batches=_read_batches,
)
