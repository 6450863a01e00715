"""Read and write Arrow IPC files ("Feather 2"), which store every Arrow type and need no decoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from holdfast.errors import CorruptDataError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, ReadRequest
from holdfast.formats.columns.conversion import BatchBuffer, plain_schema, to_plain_batch
from holdfast.formats.columns.types import BEYOND, KINDS, NANOSECONDS, check_types_supported
from holdfast.formats.streams import input_file, output_stream
from holdfast.stores.provider import make_choice_parser

_WRITE_ROWS = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class ArrowOptions(FormatOptions):
    """Options of Arrow files.

    Attributes:
        compression: the codec with which each buffer is compressed; empty for none. lz4 costs next to nothing.
    """

    compression: str = "lz4"


_CODECS = {"none": "", "uncompressed": "", "lz4": "lz4", "zstd": "zstd"}


class _ArrowWriter:
    def __init__(self, sink: ByteSink, schema: pa.Schema, options: ArrowOptions) -> None:
        self._plain = plain_schema(schema)
        self._buffer = BatchBuffer(self._plain)
        self._writer = pa.ipc.new_file(
            output_stream(sink),
            self._plain,
            options=pa.ipc.IpcWriteOptions(compression=options.compression or None, use_threads=False),
        )

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.bytes

    def write(self, batch: pa.RecordBatch) -> None:
        self._buffer.add(to_plain_batch(batch, self._plain))
        if self._buffer.rows >= _WRITE_ROWS:
            self._flush()

    def close(self) -> None:
        if self._buffer.rows:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write_table(self._buffer.take().combine_chunks())


def _open_arrow_file(source: BinaryIO) -> Any:
    try:
        return pa.ipc.open_file(input_file(source), options=pa.ipc.IpcReadOptions(use_threads=False))
    except pa.ArrowInvalid as error:
        raise CorruptDataError("not an Arrow file: check what wrote it") from error


def _read_schema(source: BinaryIO, options: ArrowOptions) -> pa.Schema:
    return _open_arrow_file(source).schema.remove_metadata()


def _read_batches(
    source: BinaryIO, wanted: ReadRequest, options: ArrowOptions, groups: Sequence[int] | None
) -> Iterator[Any]:
    file = _open_arrow_file(source)
    for index in range(file.num_record_batches):
        yield file.get_batch(index)


ARROW: FileFormat[ArrowOptions] = FileFormat(
    name="arrow",
    default_options=ArrowOptions(),
    parsers=dict.fromkeys(("compression", "codec"), ("compression", make_choice_parser(_CODECS))),
    holds=frozenset(KINDS) - {"geometry", "geography"} | BEYOND,
    reasons={"time of nanoseconds": NANOSECONDS},
    magic=b"ARROW1",
    check_schema=lambda schema: check_types_supported(ARROW, schema),
    extension=lambda options: f".{options.compression}.arrow" if options.compression else ".arrow",
    open_writer=_ArrowWriter,
    read_schema=_read_schema,
    read=_read_batches,
)
