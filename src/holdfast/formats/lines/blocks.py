"""What CSV, JSON lines and text share: whole-stream codecs, a text writer, and reading in blocks that end in a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from holdfast.errors import CorruptDataError
from holdfast.formats.base import ByteSink
from holdfast.formats.columns.conversion import plain_batch, plain_schema
from holdfast.formats.options import OptionParser, choice, only
from holdfast.formats.streams import input_file, output_stream

__all__ = [
    "BLOCK_BYTES",
    "BYTE_ORDER_MARK",
    "CODEC_EXTENSIONS",
    "TEXT_PARSERS",
    "LineWriter",
    "behind_last_line",
    "codec_of_name",
    "read_blocks",
    "read_chunks",
]

BLOCK_BYTES = 8 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Spark's snappy and lz4 for text are Hadoop's own framings, which nothing else reads: they are not offered.
_CODECS = {"none": "", "uncompressed": "", "gzip": "gzip", "bzip2": "bz2", "zstd": "zstd"}
CODEC_EXTENSIONS = {"": "", "gzip": ".gz", "bz2": ".bz2", "zstd": ".zst"}


def codec_of_name(path: str) -> str:
    """The codec that a file's name tells, as Spark goes by it; empty for none."""
    ending = path[path.rfind(".") :].lower() if "." in path else ""
    return next((codec for codec, known in CODEC_EXTENSIONS.items() if known and known == ending), "")


_UTF8 = only(("utf-8", "utf8"), "files are UTF-8; leave it out")
_LINE_FEED = only(("\n", "\\n"), "lines end in \\n; leave it out")

TEXT_PARSERS: dict[str, OptionParser] = {
    "compression": choice("codec", _CODECS),
    "codec": choice("codec", _CODECS),
    "encoding": _UTF8,
    "charset": _UTF8,
    "linesep": _LINE_FEED,
}


class LineWriter:
    """A `BatchWriter` of text lines: each batch goes to the sink at once, through the codec if there is one.

    Args:
        sink: where the text goes.
        schema: of the batches.
        codec: a pyarrow codec, empty for none.
        render: the bytes of a batch.
        header: what opens the file.
    """

    def __init__(
        self,
        sink: ByteSink,
        schema: pa.Schema,
        codec: str,
        render: Callable[[pa.RecordBatch], Any],
        header: bytes = b"",
    ) -> None:
        self._plain = plain_schema(schema)
        self._stream = output_stream(sink, codec or None)
        self._render = render
        if header:
            self._stream.write(header)

    @property
    def buffered_bytes(self) -> int:
        return 0

    def write(self, batch: pa.RecordBatch) -> None:
        data = self._render(plain_batch(batch, self._plain))
        if len(data):
            self._stream.write(data)

    def close(self) -> None:
        self._stream.close()


def read_chunks(source: BinaryIO, codec: str) -> Iterator[bytes]:
    """The file in pieces of `BLOCK_BYTES`, decompressed.

    Args:
        source: the file, read from its current position.
        codec: a pyarrow codec, empty for none.

    Raises:
        CorruptDataError: the file is not what its codec says.
    """
    stream = input_file(source, codec or None)
    try:
        while block := stream.read(BLOCK_BYTES):
            yield block
    except OSError as error:
        raise CorruptDataError("a file does not decompress: check its compression option", codec=codec) from error


def read_blocks(source: BinaryIO, codec: str, find_end: Callable[[bytes], int]) -> Iterator[bytes]:
    """The file in blocks of whole records.

    Args:
        source: the file, read from its current position.
        codec: a pyarrow codec, empty for none.
        find_end: how many leading bytes of a block are whole records, 0 if not one is.

    Raises:
        CorruptDataError: the file is not what its codec says.
    """
    pending = b""
    for block in read_chunks(source, codec):
        pending += block
        end = find_end(pending)
        if end:
            yield pending[:end]
            pending = pending[end:]
    if pending:
        yield pending


def behind_last_line(data: bytes) -> int:
    """How many leading bytes are whole lines, each ended by a line feed, a carriage return, or both.

    A carriage return at the very end may be the first half of a line end: it waits.
    """
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, max(len(data) - 1, 0))) + 1
