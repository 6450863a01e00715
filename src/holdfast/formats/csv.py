"""Read and write CSV as Spark does.

Writing: null becomes an absent value, and the empty string becomes ``""``. A value is quoted if it is empty or contains
the separator, a quote, the escape character, a line end, or a leading or trailing blank. Within quotes, the escape
character precedes quotes and itself. To read a value with a line end, Spark needs ``multiLine``.

Reading: the records come from `csv.records`, which follows Spark's parser, and the values from `lines.values`. Columns
are identified by the names in the header, or by position if there is no header. A record with fewer values than columns
is filled with nulls; a record with more values is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.types as pat

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, Inference, Wanted
from holdfast.formats.columns.conversion import batch_of
from holdfast.formats.columns.nesting import is_string
from holdfast.formats.columns.types import BASE, INTERVALS, NESTED, TIMES, check_columns
from holdfast.formats.csv_inference import SeenColumns, column_type, merge_columns, safe_names, schema_of
from holdfast.formats.csv_records import Dialect, Record, Records, read_records
from holdfast.formats.lines.blocks import (
    BYTE_ORDER_MARK,
    CODEC_EXTENSIONS,
    TEXT_PARSERS,
    TIME_PARSERS,
    LineWriter,
    only,
)
from holdfast.formats.lines.render import scalar_text, text_bytes
from holdfast.formats.lines.values import parse_texts
from holdfast.stores.option_values import as_boolean, choice

_NO_VALUE = "\ufdd0"  # Spark's nullValue: with it, an absent value is null, but the empty string is not


@dataclass(frozen=True, kw_only=True)
class CsvOptions(FormatOptions):
    """Options of CSV files. Names and defaults are Spark's.

    Attributes:
        header: whether the first line contains the column names.
        separator, quote, escape: one ASCII character each.
        null_value: a string that means null, like an absent value. As in Spark, it also means null within quotes.
        quote_all: whether to quote every value that is not null.
        line_end: the end of a line when reading; empty to detect it from the first line of each file.
        time_zone: the zone of timestamps that do not contain one; empty if unknown.
        codec: the pyarrow codec of the whole file; empty for none.
    """

    header: bool = False
    separator: str = ","
    quote: str = '"'
    escape: str = "\\"
    null_value: str = ""
    quote_all: bool = False
    line_end: str = ""
    time_zone: str = ""
    codec: str = ""


def _dialect(options: CsvOptions, line_end: str = "\n") -> Dialect:
    """Return the dialect for the options.

    Raises:
        InvalidRequestError: the characters are ambiguous.
    """
    if options.separator in (options.quote, options.escape):
        raise InvalidRequestError(
            "sep equals the quote or the escape character: choose another one", sep=options.separator
        )
    return Dialect(options.separator, options.quote, options.escape, line_end)


# --- writing ----------------------------------------------------------------------------------------------------------
def _must_quote(options: CsvOptions) -> str:
    """Return a pattern that matches the values that need quotes."""
    special = re.escape(options.separator + options.quote + options.escape)
    return rf"[{special}\r\n]|^[\s#\x{{FEFF}}]|\s$|^$"


def _quoted(texts: Any, options: CsvOptions) -> Any:
    escaped = pc.replace_substring(texts, options.escape, options.escape * 2)
    if options.quote != options.escape:
        escaped = pc.replace_substring(escaped, options.quote, options.escape + options.quote)
    return pc.binary_join_element_wise(options.quote, escaped, options.quote, "")


def _quoted_where_needed(texts: Any, options: CsvOptions) -> Any:
    if options.quote_all:
        return _quoted(texts, options)
    special = pc.match_substring_regex(texts, _must_quote(options))
    if not pc.any(special).as_py():
        return texts
    return pc.if_else(special, _quoted(texts, options), texts)


_IN_NUMBERS = frozenset("0123456789+-.:eETZNaInfitrulsy ")


def _cells(column: Any, options: CsvOptions, name: str, alone: bool) -> Any:
    texts = scalar_text(column)
    _refuse_lossy_values(texts, options, name)
    special = {options.separator, options.quote, options.escape}
    if is_string(column.type) or options.quote_all or special & _IN_NUMBERS:
        texts = _quoted_where_needed(texts, options)
    null = options.null_value
    if alone and not null and texts.null_count:  # no reader treats a blank line as a record
        if is_string(column.type) or pat.is_null(column.type):  # null columns may become strings later
            raise InvalidRequestError(
                "in one-column CSV null and the empty string look the same: set the option nullValue", column=name
            )
        null = options.quote * 2
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
    _dialect(options)
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
        names = [_quoted_where_needed(pa.array([name], pa.string()), options) for name in schema.names]
        header = _with_plain_first_line(bytes(text_bytes(_lines(names, options))))
    begun = bool(header)

    def render(batch: pa.RecordBatch) -> Any:
        nonlocal begun
        cells = [
            _cells(column, options, name, alone) for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        data = text_bytes(_lines(cells, options))
        if not begun and len(data):
            begun = True
            return _with_plain_first_line(bytes(data))
        return data

    return LineWriter(sink, schema, options.codec, render, header)


def _with_plain_first_line(data: bytes) -> bytes:
    """Prepend a blank line if readers would take a carriage return in the first line for the line end of the file."""
    end = data.find(b"\n")
    return b"\n" + data if 0 <= data.find(b"\r") < end else data


def _lines(cells: Sequence[Any], options: CsvOptions) -> Any:
    joined = pc.binary_join_element_wise(*cells, options.separator)
    return pc.binary_join_element_wise(joined, "\n", "")


# --- reading ----------------------------------------------------------------------------------------------------------
def _iter_records(source: BinaryIO, options: CsvOptions) -> Iterator[tuple[Record | None, Records]]:
    """Yield runs of records, each as a pair with the header (None if the file has none). The first run may be empty."""
    names: Record | None = None
    for records in read_records(source, options.codec, lambda end: _dialect(options, end), options.line_end):
        if options.header and names is None:
            names, records = _split_first_record(records, options)
        if names is not None or not options.header:
            yield names, records


def _split_first_record(records: Records, options: CsvOptions) -> tuple[Record | None, Records]:
    """Return the first record (None if there is none) and the remaining records."""
    for row, end in _dialect(options).rows(records):
        return row, records._replace(data=records.data.decode()[end:].encode())
    return None, records


def _columns(records: Records, width: int, wanted: Sequence[int], options: CsvOptions) -> tuple[list[Any], int]:
    """Return some columns as string arrays, and the number of rows.

    Args:
        width: the number of columns in the file.
        wanted: the positions of the columns to return.

    Raises:
        CorruptDataError: a record has more than `width` values, and one of the surplus values is not null.
    """
    if not records.data.strip(b"\n"):
        return [pa.array([], pa.string()) for _ in wanted], 0
    try:
        return _parse(records, width, wanted, options)
    except pa.ArrowInvalid:  # records of different lengths
        rows = [row for row, _ in _dialect(options).rows(records)]
    for row in rows:
        if any(value is not None for value in row[width:]):
            raise CorruptDataError(
                "a CSV record has more values than columns: check header, sep, quote and the schema",
                columns=width,
                record=options.separator.join(value or "" for value in row)[:80],
            )
    found = [pa.array([row[index] if index < len(row) else None for row in rows], pa.string()) for index in wanted]
    return found, len(rows)


def _parse(records: Records, width: int, wanted: Sequence[int], options: CsvOptions) -> tuple[list[Any], int]:
    names = [str(index) for index in range(width)]
    read = [names[index] for index in wanted] or names[:1]
    # pyarrow drops a byte order mark at the start of any buffer; the one at the start of the file was removed before
    data = BYTE_ORDER_MARK + records.data if records.data.startswith(BYTE_ORDER_MARK) else records.data
    table = pa_csv.read_csv(
        pa.BufferReader(data),  # in memory, because pyarrow would read ahead in its own thread
        read_options=pa_csv.ReadOptions(
            use_threads=False, block_size=min(len(data) + 1, 2**31 - 1), column_names=names
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=options.separator,
            quote_char=options.quote,
            double_quote=records.doubled,
            escape_char=False,
            newlines_in_values=True,
            ignore_empty_lines=True,
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=read,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    batch = table.combine_chunks().to_batches()[0]
    return [batch.column(position) for position in range(len(wanted))], batch.num_rows


def _without_null_texts(texts: Any, kind: pa.DataType, options: CsvOptions) -> Any:
    """Replace strings that mean null with nulls; the empty string is a value only in string columns."""
    nulls = [options.null_value] if options.null_value else []
    if not is_string(kind):
        nulls.append("")
    for null in nulls:
        is_null = pc.equal(texts, null)
        if pc.any(is_null).as_py():
            texts = pc.if_else(is_null, pa.scalar(None, pa.string()), texts)
    return texts


def _inspect(source: BinaryIO, options: CsvOptions) -> SeenColumns:
    """Infer the columns of a file and their types like Spark."""
    names: list[str] | None = None
    types: list[pa.DataType | None] = []
    for header, records in _iter_records(source, options):
        if names is None:
            if header is None:
                first = _split_first_record(records, options)[0]
                names = None if first is None else [f"_c{index}" for index in range(len(first))]
            else:
                names = safe_names(header, options.null_value)
            types = [None] * len(names or ())
        if names:
            columns = _columns(records, len(names), range(len(names)), options)[0]
            types = [column_type(texts, options.null_value, kind) for texts, kind in zip(columns, types, strict=True)]
    return SeenColumns.of(names or (), types, by_name=options.header)


def _positions(header: Record | None, schema: pa.Schema, needed: pa.Schema, null_value: str) -> list[int | None]:
    """Return the position of each needed column in the file's records; None for a column that the file lacks.

    A given schema uses the names of the header; an inferred schema uses those of `safe_names`.
    """
    if header is None:
        spellings = [schema.names]
    else:
        raw = [name or "" for name in header]
        spellings = [raw, safe_names(header, null_value)]
    known: dict[str, list[int]] = {}
    for names in (*spellings, *([name.lower() for name in names] for names in spellings)):
        here: dict[str, list[int]] = {}
        for index, name in enumerate(names):
            here.setdefault(name, []).append(index)
        known = {**here, **known}
    if header and len(header) == len(schema) and not any(_places(name, known) for name in schema.names):
        raise InvalidRequestError(
            "the header has none of the schema's column names: use the names in the header",
            header=spellings[0],
            schema=schema.names,
        )
    positions: list[int | None] = []
    for name in needed.names:
        places = _places(name, known)
        if len(places) > 1:
            raise InvalidRequestError(
                "the header names a column twice: omit the schema, so that such columns are numbered, or rename one",
                column=name,
                header=spellings[0],
            )
        positions.append(places[0] if places else None)
    return positions


def _places(name: str, known: Mapping[str, list[int]]) -> list[int]:
    return known.get(name) or known.get(name.lower()) or []


def _read(source: BinaryIO, wanted: Wanted, options: CsvOptions, groups: Sequence[int] | None) -> Iterator[Any]:
    for header, records in _iter_records(source, options):
        positions = _positions(header, wanted.schema, wanted.needed, options.null_value)
        width = len(wanted.schema if header is None else header)
        found, rows = _columns(records, width, [index for index in positions if index is not None], options)
        arrays = iter(found)
        values = []
        for field, index in zip(wanted.needed, positions, strict=True):
            if index is None:
                values.append(pa.nulls(rows, field.type))
                continue
            texts = _without_null_texts(next(arrays), field.type, options)
            values.append(parse_texts(texts, field.type, field.name, options.time_zone))
        yield batch_of(values, wanted.needed, rows)


# --- options ----------------------------------------------------------------------------------------------------------
def _single_character(text: str) -> str:
    """Parse one ASCII character; ``\\t`` stands for a tab, as in Spark."""
    character = "\t" if text == "\\t" else text
    if len(character) != 1 or not character.isascii() or character in "\r\n\0":
        raise InvalidRequestError("not a single ASCII character: enter one, or \\t for a tab")
    return character


def _reader_options(options: CsvOptions) -> Mapping[str, str]:
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
        **TEXT_PARSERS,
        "header": ("header", as_boolean),
        "sep": ("separator", _single_character),
        "delimiter": ("separator", _single_character),
        "quote": ("quote", _single_character),
        "escape": ("escape", _single_character),
        "nullvalue": ("null_value", str),
        "quoteall": ("quote_all", as_boolean),
        "emptyvalue": only(('""',), 'the empty string is always written as ""'),
        **TIME_PARSERS,
        "multiline": only(("true",), "line ends within quotes are always read"),
        "linesep": ("line_end", choice({"": "\n", "\\n": "\n"})),
        "timezone": ("time_zone", str),
        "inferschema": only(("true",), "without a schema the types are always inferred; give a schema"),
        "preferdate": only(("true",), "give a schema"),
        "enforceschema": only(("false",), "columns always match by the names in the header"),
        "ignoreleadingwhitespace": only(("false",), "blanks are preserved; trim the column"),
        "ignoretrailingwhitespace": only(("false",), "blanks are preserved; trim the column"),
        "unescapedquotehandling": only(("STOP_AT_DELIMITER",), "omit the option"),
        "comment": only(("",), "comments are not supported; remove them from the files"),
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
    check_schema=lambda schema: check_columns(CSV, schema),
    open_writer=_open_writer,
    read_schema=lambda source, options: schema_of(_inspect(source, options)),
    read=_read,
    by_position=True,
    maybe_by_position=True,
    reader_options=_reader_options,
    inference=Inference(inspect=_inspect, merge=merge_columns, schema=schema_of),
)
