"""Write and read line-based files (CSV, JSON lines, text): codecs, blocks of whole lines, and values as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import CorruptDataError
from holdfast.formats.base import ByteSink, OptionParser
from holdfast.formats.columns.conversion import plain_schema, to_plain_batch
from holdfast.formats.columns.dates import check_years
from holdfast.formats.streams import input_file, output_stream
from holdfast.stores.provider import make_choice_parser

BLOCK_BYTES = 8 * 1024 * 1024

# For text, Spark's snappy and lz4 use Hadoop's own framing, which no other software reads, so they are not supported.
_CODECS = {"none": "", "uncompressed": "", "gzip": "gzip", "bzip2": "bz2", "zstd": "zstd"}
CODEC_EXTENSIONS = {"": "", "gzip": ".gz", "bz2": ".bz2", "zstd": ".zst"}
CODEC_PARSERS: dict[str, OptionParser] = dict.fromkeys(("compression", "codec"), ("codec", make_choice_parser(_CODECS)))


def codec_of_name(path: str) -> str:
    """Return the compression codec that a file name's suffix indicates, as in Spark; empty if none."""
    ending = path[path.rfind(".") :].lower() if "." in path else ""
    return next((codec for codec, known in CODEC_EXTENSIONS.items() if known and known == ending), "")


# --- lines ------------------------------------------------------------------------------------------------------------
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
        batch = to_plain_batch(batch, self._plain)
        check_years("a reader of text files", batch)
        data = self._render(batch)
        if len(data):
            self._stream.write(data)

    def close(self) -> None:
        self._stream.close()


def read_blocks(source: BinaryIO, codec: str, find_end: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield the decompressed file in blocks of about `BLOCK_BYTES`, each of which consists of whole records.

    Args:
        source: the file, read from its current position.
        codec: a pyarrow codec; empty for none.
        find_end: takes a block and returns how many of its leading bytes form whole records; 0 if no record is whole.

    Raises:
        CorruptDataError: the file is not compressed with the codec.
    """
    stream = input_file(source, codec or None)
    pending = b""
    try:
        while block := stream.read(BLOCK_BYTES):
            pending += block
            if end := find_end(pending):
                yield pending[:end]
                pending = pending[end:]
    except OSError as error:
        raise CorruptDataError("a file cannot be decompressed: check the compression option", codec=codec) from error
    if pending:
        yield pending


def whole_lines_length(data: bytes) -> int:
    """Return how many leading bytes of a block are whole lines, each ended by a line feed, a carriage return, or both.

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


# --- values -----------------------------------------------------------------------------------------------------------
def format_scalars(values: Any) -> Any:
    """Return a string array with the unquoted text of each value, which Spark's readers parse; null stays null.

    Dates and timestamps use ISO 8601; timestamps with a zone are in UTC and end in ``Z``. Floats have the fewest digits
    that identify them; ``NaN`` and ``Infinity`` are spelled as in Java.
    """
    kind = values.type
    if pat.is_timestamp(kind):
        text = values.cast(pa.timestamp("us")).cast(pa.string())
        text = pc.replace_substring(text, " ", "T", max_replacements=1)
        return text if kind.tz is None else pc.binary_join_element_wise(text, "Z", "")
    text = values.cast(pa.string())
    if not pat.is_floating(kind):
        return text
    text = pc.if_else(pc.equal(text, "-0"), "-0.0", text)  # a JSON parser reads -0 as an integer and drops the sign
    if pc.all(pc.is_finite(values)).as_py() in (True, None):
        return text
    text = pc.if_else(pc.is_nan(values), "NaN", text)
    return pc.if_else(pc.is_inf(values), pc.if_else(pc.less(values, 0), "-Infinity", "Infinity"), text)


def parse_text_values(texts: Any, field: pa.Field) -> Any:
    """Parse strings that `format_scalars` returned; null stays null.

    Raises:
        CorruptDataError: a text is not a value of the column's type.
    """
    if pat.is_null(field.type):
        return pa.nulls(len(texts))
    try:
        return texts.cast(field.type)
    except pa.ArrowInvalid as error:
        raise CorruptDataError(
            "a file holds a text that is not a value of its column's type: find out what changed the file",
            column=field.name,
            type=str(field.type),
        ) from error


def concatenate_bytes(lines: Any) -> Any:
    """Return the concatenated bytes of a string array without nulls, without copying them."""
    if len(lines) == 0:
        return b""
    _, offsets, data = lines.buffers()
    bounds = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset)
    start, end = bounds[0].as_py(), bounds[-1].as_py()
    return b"" if data is None or start == end else data.slice(start, end - start)
