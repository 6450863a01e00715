"""CSV as Spark writes and reads it.

Written: null as nothing, the empty string as ``""``; a value is quoted if it holds the separator, a quote, the escape
character, a line end, a leading or trailing blank, or looks like a null. Inside quotes the escape character stands
before a quote and before itself: this is what both Spark's parser and pyarrow's take back exactly. A value with a line
end needs ``multiLine`` in Spark's reader.

Read: blocks of whole records, so memory is bounded by `lines.BLOCK_BYTES` and the longest record. The escape character
works outside quotes too, where Spark's reader takes it literally.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, RowFilter
from holdfast.formats.columns import finish, needed_schema, plain_schema
from holdfast.formats.lines import CODEC_EXTENSIONS, TEXT_PARSERS, LineWriter, read_blocks
from holdfast.formats.options import boolean, only, single_character, text
from holdfast.formats.render import scalar_text, text_bytes
from holdfast.formats.types import check_types, is_string

__all__ = ["CSV", "CsvOptions"]


@dataclass(frozen=True, kw_only=True)
class CsvOptions(FormatOptions):
    """How CSV is written and read; names and defaults are Spark's.

    Attributes:
        header: the first line names the columns.
        separator, quote, escape: one ASCII character each.
        null_value: text of a null.
        quote_all: quote every value that is not null.
        codec: pyarrow codec of the whole file, empty for none.
    """

    header: bool = False
    separator: str = ","
    quote: str = '"'
    escape: str = "\\"
    null_value: str = ""
    quote_all: bool = False
    codec: str = ""


# --- writing ----------------------------------------------------------------------------------------------------------
def _must_quote(options: CsvOptions) -> str:
    """A pattern of the texts that need quotes."""
    special = re.escape(options.separator + options.quote + options.escape)
    return rf"[{special}\r\n]|^[\s#]|\s$|^$"


def _quoted(texts: Any, options: CsvOptions) -> Any:
    escaped = pc.replace_substring(texts, options.escape, options.escape * 2)
    if options.quote != options.escape:
        escaped = pc.replace_substring(escaped, options.quote, options.escape + options.quote)
    return pc.binary_join_element_wise(options.quote, escaped, options.quote, "")


def _string_cells(texts: Any, options: CsvOptions) -> Any:
    if options.quote_all:
        return _quoted(texts, options)
    special = pc.or_(pc.match_substring_regex(texts, _must_quote(options)), pc.equal(texts, options.null_value))
    if not pc.any(special).as_py():
        return texts
    return pc.if_else(special, _quoted(texts, options), texts)


def _cells(column: Any, options: CsvOptions) -> Any:
    texts = scalar_text(column)
    if is_string(column.type) or options.quote_all or options.separator not in ",;\t|":
        texts = _string_cells(texts, options)
    return pc.fill_null(texts, options.null_value)


def _open_writer(sink: ByteSink, schema: pa.Schema, options: CsvOptions) -> LineWriter:
    def render(batch: pa.RecordBatch) -> Any:
        cells = [_cells(column, options) for column in batch.columns]
        return text_bytes(_lines(cells, options))

    header = b""
    if options.header:
        names = [_string_cells(pa.array([name], pa.string()), options) for name in schema.names]
        header = bytes(text_bytes(_lines(names, options)))
    return LineWriter(sink, schema, options.codec, render, header)


def _lines(cells: Sequence[Any], options: CsvOptions) -> Any:
    joined = pc.binary_join_element_wise(*cells, options.separator)
    return pc.binary_join_element_wise(joined, "\n", "")


def _check_schema(schema: pa.Schema) -> None:
    if not schema.names:
        raise InvalidRequestError("a file needs a column: select at least one")
    check_types("csv", schema)


# --- reading ----------------------------------------------------------------------------------------------------------
def _record_end(options: CsvOptions) -> Any:
    quote, escape = options.quote.encode(), options.escape.encode()

    def find_end(data: bytes) -> int:
        end = data.rfind(b"\n") + 1
        while end:
            head = data[:end].replace(escape * 2, b"")
            if escape != quote:
                head = head.replace(escape + quote, b"")
            if head.count(quote) % 2 == 0:  # not inside quotes
                return end
            end = data.rfind(b"\n", 0, end - 1) + 1
        return 0

    return find_end


def _first_record(block: bytes, options: CsvOptions) -> bytes:
    find_end = _record_end(options)
    end = block.find(b"\n") + 1
    while end and find_end(block[:end]) != end:
        end = block.find(b"\n", end) + 1
    return block[:end] if end else block


def _header_names(line: bytes, options: CsvOptions) -> list[str]:
    doubled = options.quote == options.escape
    rows = csv.reader(
        [line.decode("utf-8-sig").rstrip("\r\n")],
        delimiter=options.separator,
        quotechar=options.quote,
        escapechar=None if doubled else options.escape,
        doublequote=doubled,
    )
    return next(rows, [])


def _blocks(source: BinaryIO, options: CsvOptions) -> Iterator[tuple[list[str] | None, bytes]]:
    """Blocks of records with the names from the header, None without one."""
    names: list[str] | None = None
    first = True
    for block in read_blocks(source, options.codec, _record_end(options)):
        rest = block
        if first and options.header:
            line = _first_record(block, options)
            names = _header_names(line, options)
            rest = block[len(line) :]
        first = False
        yield names, rest


def _parse(block: bytes, names: list[str] | None, types: Mapping[str, pa.DataType] | None, options: CsvOptions) -> Any:
    doubled = options.quote == options.escape
    try:
        return pa_csv.read_csv(
            pa.BufferReader(block),  # all in memory: pyarrow would read ahead in a thread of its own
            read_options=pa_csv.ReadOptions(
                use_threads=False,
                block_size=min(len(block) + 1, 2**31 - 1),
                column_names=names,
                autogenerate_column_names=names is None,
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=options.separator,
                quote_char=options.quote,
                double_quote=doubled,
                escape_char=False if doubled else options.escape,
                newlines_in_values=True,
                ignore_empty_lines=names is not None and len(names) > 1,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=types,
                null_values=[options.null_value],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise CorruptDataError("a CSV file does not parse: check header, sep, quote, escape and the schema") from error


def _read_schema(source: BinaryIO, options: CsvOptions) -> pa.Schema:
    for names, block in _blocks(source, options):
        if not block:
            return pa.schema([(name, pa.string()) for name in names or []])
        inferred = plain_schema(_parse(block, names, None, options).schema)
        if names is None:  # Spark's names for columns without a header
            inferred = pa.schema([(f"_c{index}", field.type) for index, field in enumerate(inferred)])
        return pa.schema([pa.field(f.name, pa.string() if f.type == pa.null() else f.type) for f in inferred])
    return pa.schema([])


def _read_batches(
    source: BinaryIO,
    schema: pa.Schema,
    columns: Sequence[str],
    row_filter: RowFilter | None,
    options: CsvOptions,
    row_groups: Sequence[int] | None,
) -> Iterator[pa.RecordBatch]:
    needed = needed_schema(schema, columns, row_filter)
    for header, block in _blocks(source, options):
        names = schema.names if header is None else header
        if block:
            texts = _parse(block, names, dict.fromkeys(names, pa.string()), options)
            for batch in texts.to_batches():
                yield finish(batch, needed, columns, row_filter)


def _reader_options(options: CsvOptions) -> Mapping[str, str]:
    return {
        "header": str(options.header).lower(),
        "sep": options.separator,
        "quote": options.quote,
        "escape": options.escape,
        "nullValue": options.null_value,
    }


_SPARK_TIMES = "cast the column to a string in the pattern you want, with date_format"

CSV = FileFormat(
    name="csv",
    default_options=CsvOptions(),
    parsers={
        **TEXT_PARSERS,
        "header": boolean("header"),
        "sep": single_character("separator"),
        "delimiter": single_character("separator"),
        "quote": single_character("quote"),
        "escape": single_character("escape"),
        "nullvalue": text("null_value"),
        "quoteall": boolean("quote_all"),
        "emptyvalue": only(('""',), 'the empty string is written as ""'),
        "dateformat": only(("yyyy-MM-dd",), _SPARK_TIMES),
        "timestampformat": only((), _SPARK_TIMES),
        "timestampntzformat": only((), _SPARK_TIMES),
        "multiline": only(("true",), "line ends inside quotes are always read"),
    },
    extension=lambda options: f".csv{CODEC_EXTENSIONS[options.codec]}",
    check_schema=_check_schema,
    open_writer=_open_writer,
    read_schema=_read_schema,
    read_batches=_read_batches,
    by_position=True,
    reader_options=_reader_options,
)
