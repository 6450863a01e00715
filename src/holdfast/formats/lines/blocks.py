"""Write and read line-based files (CSV, JSON lines, text): codecs, a line writer, and blocks of whole lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.base import ByteSink, OptionParser
from holdfast.formats.columns.conversion import plain_batch, plain_schema
from holdfast.formats.streams import input_file, output_stream
from holdfast.stores.option_values import choice

BLOCK_BYTES = 8 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# For text, Spark's snappy and lz4 use Hadoop's own framing, which no other software reads, so they are not supported.
_CODECS = {"none": "", "uncompressed": "", "gzip": "gzip", "bzip2": "bz2", "zstd": "zstd"}
CODEC_EXTENSIONS = {"": "", "gzip": ".gz", "bz2": ".bz2", "zstd": ".zst"}


def codec_of_name(path: str) -> str:
    """Return the codec that a file name's suffix indicates, as in Spark; an empty string for none."""
    ending = path[path.rfind(".") :].lower() if "." in path else ""
    return next((codec for codec, known in CODEC_EXTENSIONS.items() if known and known == ending), "")


def only(accepted: tuple[str, ...], instead: str) -> OptionParser:
    """Return the parser of a Spark option that is supported only with some values; `instead` says what else to do."""

    def check(value: str) -> None:
        if value.lower() not in (word.lower() for word in accepted):
            raise InvalidRequestError(f"this value is not supported: {instead}")

    return "", check


_UTF8 = only(("utf-8", "utf8"), "files are UTF-8; omit the option")
_LINE_FEED = only(("\n", "\\n"), "lines end in \\n; omit the option")

TEXT_PARSERS: dict[str, OptionParser] = {
    "compression": ("codec", choice(_CODECS)),
    "codec": ("codec", choice(_CODECS)),
    "encoding": _UTF8,
    "charset": _UTF8,
    "linesep": _LINE_FEED,
}


_TIMES = "cast the column to a string in the pattern you want, with date_format"

TIME_PARSERS: dict[str, OptionParser] = {
    "dateformat": only(("yyyy-MM-dd",), _TIMES),
    "timestampformat": only((), _TIMES),
    "timestampntzformat": only((), _TIMES),
}


class LineWriter:
    """A `BatchWriter` of text lines. Each batch goes straight to the sink, through the codec if there is one.

    Args:
        sink: the destination of the text.
        schema: the schema of the batches.
        codec: a pyarrow codec; empty for none.
        render: returns the bytes of a batch.
        header: bytes at the start of the file.
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
    """Yield the decompressed file in chunks of `BLOCK_BYTES`.

    Args:
        source: the file, read from its current position.
        codec: a pyarrow codec; empty for none.

    Raises:
        CorruptDataError: the file is not compressed with the codec.
    """
    stream = input_file(source, codec or None)
    try:
        while block := stream.read(BLOCK_BYTES):
            yield block
    except OSError as error:
        raise CorruptDataError("a file cannot be decompressed: check the compression option", codec=codec) from error


def read_blocks(source: BinaryIO, codec: str, find_end: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield the decompressed file in blocks, each of which consists of whole records.

    Args:
        source: the file, read from its current position.
        codec: a pyarrow codec; empty for none.
        find_end: takes a block and returns how many of its leading bytes form whole records; 0 if no record is whole.

    Raises:
        CorruptDataError: the file is not compressed with the codec.
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


def after_last_line(data: bytes) -> int:
    """Return how many leading bytes form whole lines, each ended by a line feed, a carriage return, or both.

    A carriage return at the very end may be the first half of a line end, so it does not count yet.
    """
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, max(len(data) - 1, 0))) + 1


def decode_lines(block: bytes, format_name: str) -> list[str]:
    """Return the lines of a block without their line ends. Unlike in `str.splitlines`, U+2028 etc. do not end a line.

    Raises:
        CorruptDataError: the block is not UTF-8.
    """
    try:
        text = block.decode()
    except UnicodeDecodeError as error:
        raise CorruptDataError(f"a {format_name} file is not UTF-8: convert it") from error
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n").split("\n")
