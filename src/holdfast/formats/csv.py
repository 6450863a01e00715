"""Write CSV as Spark does, and read what was written.

Null becomes an absent value, and the empty string becomes ``""``. A value is quoted if it is empty or contains the
separator, a quote, the escape character, a line end, or a leading or trailing blank. Within quotes, the escape
character precedes quotes and itself. To read a value with a line end, Spark needs ``multiLine``.

Columns are identified by the names in the header, or by position if there is no header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, ReadRequest
from holdfast.formats.columns.arrow_types import is_string
from holdfast.formats.columns.conversion import build_record_batch
from holdfast.formats.columns.types import BASE, INTERVALS, NESTED, TIMES, check_columns_supported
from holdfast.formats.lines import (
    CODEC_EXTENSIONS,
    CODEC_PARSERS,
    LineWriter,
    concatenate_bytes,
    format_scalars,
    parse_text_values,
    read_blocks,
)
from holdfast.stores.provider import as_boolean

_NO_VALUE = "\ufdd0"  # Spark's nullValue: with it, an absent value is null, but the empty string is not


@dataclass(frozen=True, kw_only=True)
class CsvOptions(FormatOptions):
    """Options of CSV files. Names and defaults are Spark's.

    Attributes:
        header: whether the first line contains the column names.
        separator, quote, escape: one ASCII character each.
        null_value: a string that means null, like an absent value.
        quote_all: whether to quote every value that is not null.
        codec: the pyarrow codec of the whole file; empty for none.
    """

    header: bool = False
    separator: str = ","
    quote: str = '"'
    escape: str = "\\"
    null_value: str = ""
    quote_all: bool = False
    codec: str = ""


# --- writing ----------------------------------------------------------------------------------------------------------
def _quote_pattern(options: CsvOptions) -> str:
    """Return a pattern that matches the values that need quotes."""
    special = re.escape(options.separator + options.quote + options.escape)
    return rf"[{special}\r\n]|^[\s#\x{{FEFF}}]|\s$|^$"


def _quote_values(texts: Any, options: CsvOptions) -> Any:
    escaped = pc.replace_substring(texts, options.escape, options.escape * 2)
    if options.quote != options.escape:
        escaped = pc.replace_substring(escaped, options.quote, options.escape + options.quote)
    return pc.binary_join_element_wise(options.quote, escaped, options.quote, "")


def _quote_where_needed(texts: Any, options: CsvOptions) -> Any:
    if options.quote_all:
        return _quote_values(texts, options)
    special = pc.match_substring_regex(texts, _quote_pattern(options))
    if not pc.any(special).as_py():
        return texts
    return pc.if_else(special, _quote_values(texts, options), texts)


_IN_NUMBERS = frozenset("0123456789+-.:eETZNaInfitrulsy ")


def _format_cells(column: Any, options: CsvOptions, name: str, alone: bool) -> Any:
    texts = format_scalars(column)
    _refuse_lossy_values(texts, options, name)
    special = {options.separator, options.quote, options.escape}
    if is_string(column.type) or options.quote_all or special & _IN_NUMBERS:
        texts = _quote_where_needed(texts, options)
    null = options.null_value
    if alone and not null and texts.null_count:  # no reader treats a blank line as a record
        raise InvalidRequestError("in one-column CSV null would be a blank line: set the option nullValue", column=name)
    return pc.fill_null(texts, null)


def _refuse_lossy_values(texts: Any, options: CsvOptions, name: str) -> None:
    """Reject values that Spark's reader would change: into null, or by dropping a character."""
    if pc.any(pc.equal(texts, options.null_value or _NO_VALUE)).as_py():
        raise InvalidRequestError(
            "a value equals nullValue and would be read as null: choose another nullValue", column=name
        )
    if options.quote == options.escape and pc.any(pc.match_substring(texts, "\0")).as_py():
        raise InvalidRequestError(
            "a value contains NUL, which Spark drops if quotes are doubled: omit the option escape", column=name
        )


def _open_writer(sink: ByteSink, schema: pa.Schema, options: CsvOptions) -> LineWriter:
    if options.separator in (options.quote, options.escape):
        raise InvalidRequestError(
            "sep equals the quote or the escape character: choose another one", sep=options.separator
        )
    if set(options.null_value) & {options.separator, options.quote, options.escape, "\r", "\n"}:
        raise InvalidRequestError("nullValue contains a character that needs quotes: choose another one")
    alone = len(schema) == 1
    header = b""
    if options.header:
        if {"", options.null_value}.intersection(schema.names):
            raise InvalidRequestError(
                "a header cannot contain an empty name or one that equals nullValue: rename the column",
                columns=schema.names,
                nullValue=options.null_value,
            )
        names = [_quote_where_needed(pa.array([name], pa.string()), options) for name in schema.names]
        header = _prepend_blank_line_if_needed(bytes(concatenate_bytes(_join_lines(names, options))))
    begun = bool(header)

    def format_batch(batch: pa.RecordBatch) -> Any:
        nonlocal begun
        cells = [
            _format_cells(column, options, name, alone)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        data = concatenate_bytes(_join_lines(cells, options))
        if not begun and len(data):
            begun = True
            return _prepend_blank_line_if_needed(bytes(data))
        return data

    return LineWriter(sink, schema, options.codec, format_batch, header)


def _prepend_blank_line_if_needed(data: bytes) -> bytes:
    """Prepend a blank line if readers would take a carriage return in the first line for the line end of the file."""
    end = data.find(b"\n")
    return b"\n" + data if 0 <= data.find(b"\r") < end else data


def _join_lines(cells: Sequence[Any], options: CsvOptions) -> Any:
    joined = pc.binary_join_element_wise(*cells, options.separator)
    return pc.binary_join_element_wise(joined, "\n", "")


# --- reading ----------------------------------------------------------------------------------------------------------
def _read_batches(
    source: BinaryIO, wanted: ReadRequest, options: CsvOptions, groups: Sequence[int] | None
) -> Iterator[Any]:
    names: list[str] = []
    for block in read_blocks(source, options.codec, lambda data: _whole_records_length(data, options)):
        if not names and not (block := block.lstrip(b"\n")):
            continue
        try:
            if not block.endswith(b"\n"):
                raise pa.ArrowInvalid("the last record has no end")
            if not names:
                end = _first_record_length(block, options)
                [values] = _parse_records(block[:end], None, len(wanted.schema), (), options).to_pylist()
                names = list(values.values()) if options.header else wanted.schema.names[: len(values)]
                block = block[end:] if options.header else block
            known = {name.lower(): name for name in names}
            present = [(known[field.name.lower()], field) for field in wanted.needed if field.name.lower() in known]
            if block:
                table = _parse_records(block, names, len(names), [name for name, _ in present] or names[:1], options)
        except pa.ArrowInvalid as error:
            raise CorruptDataError(
                "a CSV file does not hold the records that were written: find out what changed it",
                reason=str(error)[:120],
            ) from error
        if block:
            arrays = [parse_text_values(table[name].combine_chunks(), field) for name, field in present]
            yield build_record_batch(arrays, pa.schema([field for _, field in present]), table.num_rows)


def _mask_escaped_quotes(data: bytes, options: CsvOptions) -> bytes:
    """Return the data, as long as before, with no other quotes than those around values."""
    quote, escape = options.quote.encode(), options.escape.encode()
    if quote == escape:
        return data  # two quotes within a value end it, and begin it again
    return data.replace(escape * 2, b"\0\0").replace(escape + quote, b"\0\0")


def _whole_records_length(data: bytes, options: CsvOptions) -> int:
    """Return how many leading bytes form whole records: those up to the last line feed outside quotes."""
    data, quote = _mask_escaped_quotes(data, options), options.quote.encode()
    end, quotes = len(data), data.count(quote)
    while (feed := data.rfind(b"\n", 0, end)) >= 0:
        quotes -= data.count(quote, feed, end)
        if quotes % 2 == 0:
            break
        end = feed
    return feed + 1


def _first_record_length(data: bytes, options: CsvOptions) -> int:
    """Return how many leading bytes form the first record: those up to the first line feed outside quotes."""
    data, quote = _mask_escaped_quotes(data, options), options.quote.encode()
    feed = data.find(b"\n")
    while feed >= 0 and data.count(quote, 0, feed) % 2:
        feed = data.find(b"\n", feed + 1)
    return feed + 1


def _parse_records(
    block: bytes, names: list[str] | None, width: int, wanted: Sequence[str], options: CsvOptions
) -> Any:
    """Return columns of some records as strings.

    Args:
        names: the names of the file's columns; None for ``f0``, ``f1``, …, of which there are at most `width`.
        wanted: the columns to return; all if empty.
    """
    doubled = options.quote == options.escape
    return pa_csv.read_csv(
        pa.BufferReader(block),  # in memory, because pyarrow would read ahead in its own thread
        read_options=pa_csv.ReadOptions(
            use_threads=False,
            block_size=len(block) + 1,
            column_names=names,
            autogenerate_column_names=names is None,
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=options.separator,
            quote_char=options.quote,
            double_quote=doubled,
            escape_char=False if doubled else options.escape,
            newlines_in_values=True,
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names or [f"f{index}" for index in range(width)], pa.string()),
            include_columns=wanted,
            null_values=["", options.null_value],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


# --- options ----------------------------------------------------------------------------------------------------------
def _parse_single_character(text: str) -> str:
    """Parse one ASCII character; ``\\t`` stands for a tab, as in Spark."""
    character = "\t" if text == "\\t" else text
    if len(character) != 1 or not character.isascii() or character in "\r\n\0":
        raise InvalidRequestError("not a single ASCII character: enter one, or \\t for a tab")
    return character


def _make_spark_reader_options(options: CsvOptions) -> Mapping[str, str]:
    """Return the options for Spark's reader, which by default would read empty strings as null."""
    return {
        "header": str(options.header).lower(),
        "sep": options.separator,
        "quote": options.quote,
        "escape": options.escape,
        "nullValue": options.null_value or _NO_VALUE,
    }


CSV: FileFormat[CsvOptions] = FileFormat(
    name="csv",
    default_options=CsvOptions(),
    parsers={
        **CODEC_PARSERS,
        "header": ("header", as_boolean),
        "sep": ("separator", _parse_single_character),
        "delimiter": ("separator", _parse_single_character),
        "quote": ("quote", _parse_single_character),
        "escape": ("escape", _parse_single_character),
        "nullvalue": ("null_value", str),
        "quoteall": ("quote_all", as_boolean),
    },
    holds=BASE | {"null", "collated string"},
    reasons={
        "binary": "CSV stores text only, and Spark's [00 FF] cannot be read back: store base64(column)",
        **dict.fromkeys(INTERVALS, "CSV has no interval type: cast the column to a string"),
        **dict.fromkeys(TIMES, "CSV has no time type: cast the column to a string"),
        **dict.fromkeys((*NESTED, "variant"), "CSV has no nested values: store to_json(column)"),
        "user-defined": "CSV has no nested values: store its parts",
    },
    is_text=True,
    extension=lambda options: f".csv{CODEC_EXTENSIONS[options.codec]}",
    check_schema=lambda schema: check_columns_supported(CSV, schema),
    open_writer=_open_writer,
    read=_read_batches,
    by_position=True,
    reader_options=_make_spark_reader_options,
)
