"""CSV as Spark writes and reads it.

Written: null as nothing, the empty string as ``""``; a value is quoted if it holds the separator, a quote, the escape
character, a line end, a leading or trailing blank, or is empty. Inside quotes the escape character stands before a
quote and before itself. A value with a line end needs ``multiLine`` in Spark's reader.

Read: the records of `csv_dialect`, which are those of Spark's parser, and the values of `spark_text`. Columns are found
by the names in the header if there is one, else by position. A record with fewer values than columns ends in nulls; one
with more is refused.
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
from holdfast.formats.base import ByteSink, FileFormat, FormatOptions, Inference, RowFilter
from holdfast.formats.columns.conversion import batch_of, finish, needed_schema
from holdfast.formats.columns.types import check_types, is_string
from holdfast.formats.csv.dialect import Dialect, Plain, Record, Records, read_records, tokens
from holdfast.formats.csv.schema import SeenColumns, column_type, merge_columns, safe_names, schema_of
from holdfast.formats.lines.blocks import BYTE_ORDER_MARK, CODEC_EXTENSIONS, TEXT_PARSERS, LineWriter
from holdfast.formats.lines.render import scalar_text, text_bytes
from holdfast.formats.lines.rounding import refuse_rounded
from holdfast.formats.lines.values import parse_texts
from holdfast.formats.options import boolean, choice, only, single_character, text

__all__ = ["CSV", "CsvOptions", "header_names"]

_NO_VALUE = "\ufdd0"  # given to Spark for nullValue: then nothing at all is null, and the empty string is not


@dataclass(frozen=True, kw_only=True)
class CsvOptions(FormatOptions):
    """How CSV is written and read; names and defaults are Spark's.

    Attributes:
        header: the first line names the columns.
        separator, quote, escape: one ASCII character each.
        null_value: text of a null, besides nothing at all. A reader takes it for null also within quotes, as Spark's.
        quote_all: quote every value that is not null.
        line_end: read lines that end in this; empty for what the first line of a file ends in.
        time_zone: in which a text without a zone is read as an instant; empty if that is not known.
        codec: pyarrow codec of the whole file, empty for none.
        exact: refuse numbers that a float or double column rounds; readers take them, as Spark's do.
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
    exact: bool = False


def _dialect(options: CsvOptions, line_end: str = "\n") -> Dialect:
    """Raises `InvalidRequestError` if the characters cannot be told apart."""
    if options.separator in (options.quote, options.escape):
        raise InvalidRequestError(
            "sep is also the quote or the escape character: choose another", sep=options.separator
        )
    return Dialect(options.separator, options.quote, options.escape, line_end)


# --- writing ----------------------------------------------------------------------------------------------------------
def _must_quote(options: CsvOptions) -> str:
    """A pattern of the texts that need quotes."""
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
    _refuse_lost(texts, options, name)
    special = {options.separator, options.quote, options.escape}
    if is_string(column.type) or options.quote_all or special & _IN_NUMBERS:
        texts = _quoted_where_needed(texts, options)
    null = options.null_value
    if alone and not null and texts.null_count:  # a blank line is no record to any reader
        if is_string(column.type) or pat.is_null(column.type):  # which may be a string one day
            raise InvalidRequestError(
                "a CSV file of one column cannot tell null from an empty string: give the option nullValue", column=name
            )
        null = options.quote * 2
    return pc.fill_null(texts, null)


def _refuse_lost(texts: Any, options: CsvOptions, name: str) -> None:
    """Values that Spark's reader gives back as something else."""
    if pc.any(pc.equal(texts, options.null_value or _NO_VALUE)).as_py():
        raise InvalidRequestError(
            "a value is the same as nullValue and would be read as null: choose another nullValue", column=name
        )
    if options.quote == options.escape and pc.any(pc.match_substring(texts, "\0")).as_py():
        raise InvalidRequestError(
            "a value holds NUL, which Spark drops where quotes are doubled: leave the option escape out", column=name
        )


def _open_writer(sink: ByteSink, schema: pa.Schema, options: CsvOptions) -> LineWriter:
    _dialect(options)
    if set(options.null_value) & {options.separator, options.quote, options.escape, "\r", "\n"}:
        raise InvalidRequestError("nullValue holds a character that needs quotes: choose another")
    alone = len(schema) == 1
    header = b""
    if options.header:
        if {"", options.null_value}.intersection(schema.names):
            raise InvalidRequestError(
                "a header cannot name a column that is called nothing, or the same as nullValue: rename it",
                columns=schema.names,
                nullValue=options.null_value,
            )
        names = [_quoted_where_needed(pa.array([name], pa.string()), options) for name in schema.names]
        header = _starting_plainly(bytes(text_bytes(_lines(names, options))))
    begun = bool(header)

    def render(batch: pa.RecordBatch) -> Any:
        nonlocal begun
        cells = [
            _cells(column, options, name, alone) for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        data = text_bytes(_lines(cells, options))
        if not begun and len(data):
            begun = True
            return _starting_plainly(bytes(data))
        return data

    return LineWriter(sink, schema, options.codec, render, header)


def _starting_plainly(data: bytes) -> bytes:
    """The start of a file, whose first line end readers take for that of all lines: a blank line, if it is none."""
    end = data.find(b"\n")
    return b"\n" + data if 0 <= data.find(b"\r") < end else data


def _lines(cells: Sequence[Any], options: CsvOptions) -> Any:
    joined = pc.binary_join_element_wise(*cells, options.separator)
    return pc.binary_join_element_wise(joined, "\n", "")


def _check_schema(schema: pa.Schema) -> None:
    if not schema.names:
        raise InvalidRequestError("a file needs a column: select at least one")
    check_types("csv", schema)


# --- reading ----------------------------------------------------------------------------------------------------------
def _pieces(source: BinaryIO, options: CsvOptions) -> Iterator[tuple[Record | None, Plain | Records]]:
    """Stretches of records with the header, None without one. The first may have no record."""
    names: Record | None = None
    first = options.header
    for piece in read_records(source, options.codec, lambda end: _dialect(options, end), options.line_end):
        if not first:
            yield names, piece
            continue
        names, rest = _parted(piece, options)
        if names is not None:
            first = False
            yield names, rest


def _parted(piece: Plain | Records, options: CsvOptions) -> tuple[Record | None, Plain | Records]:
    """The first record and the others; None if there is none."""
    if isinstance(piece, Records):
        return (piece.rows[0], Records(piece.rows[1:])) if piece.rows else (None, piece)
    dialect = _plain_dialect(piece, options)
    text = piece.data[: piece.data.find(b"\n") + 1].decode()
    rows, used = tokens(text, dialect, final=False, most=1)
    if not rows:  # a line end within quotes
        text = piece.data.decode()
        rows, used = tokens(text, dialect, most=1)
    if not rows:
        return None, piece
    return rows[0], Plain(piece.data[len(text[:used].encode()) :], piece.doubled)


def _plain_dialect(piece: Plain, options: CsvOptions) -> Dialect:
    return Dialect(options.separator, options.quote, options.quote if piece.doubled else options.escape)


def _columns(piece: Plain | Records, width: int, wanted: Sequence[int], options: CsvOptions) -> tuple[list[Any], int]:
    """The wanted ones of `width` columns as string arrays, and the number of rows."""
    if isinstance(piece, Plain):
        if not piece.data.strip(b"\n"):
            return [pa.array([], pa.string()) for _ in wanted], 0
        try:
            return _parse(piece, width, wanted, options)
        except pa.ArrowInvalid:  # records of other lengths
            piece = Records(_taken_apart(piece, options))
    for row in piece.rows:
        if len(row) > width and any(value is not None for value in row[width:]):
            raise CorruptDataError(
                "a CSV record has more values than there are columns: check header, sep, quote and the schema",
                columns=width,
                record=options.separator.join(value or "" for value in row)[:80],
            )
    return [
        pa.array([row[index] if index < len(row) else None for row in piece.rows], pa.string()) for index in wanted
    ], len(piece.rows)


def _taken_apart(piece: Plain, options: CsvOptions) -> list[Record]:
    try:
        return tokens(piece.data.decode(), _plain_dialect(piece, options))[0]
    except UnicodeDecodeError as error:
        raise CorruptDataError("a CSV file is not UTF-8: convert it") from error


def _parse(piece: Plain, width: int, wanted: Sequence[int], options: CsvOptions) -> tuple[list[Any], int]:
    names = [str(index) for index in range(width)]
    read = [names[index] for index in wanted] or names[:1]
    # pyarrow drops one byte order mark wherever a piece begins; that of the file is gone already
    data = BYTE_ORDER_MARK + piece.data if piece.data.startswith(BYTE_ORDER_MARK) else piece.data
    table = pa_csv.read_csv(
        pa.BufferReader(data),  # all in memory: pyarrow would read ahead in a thread of its own
        read_options=pa_csv.ReadOptions(
            use_threads=False, block_size=min(len(data) + 1, 2**31 - 1), column_names=names
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=options.separator,
            quote_char=options.quote,
            double_quote=piece.doubled,
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
    """Null where a text means null; the empty string is a value of strings only."""
    nulls = [options.null_value] if options.null_value else []
    if not is_string(kind):
        nulls.append("")
    for null in nulls:
        is_null = pc.equal(texts, null)
        if pc.any(is_null).as_py():
            texts = pc.if_else(is_null, pa.scalar(None, pa.string()), texts)
    return texts


def _look(source: BinaryIO, options: CsvOptions) -> SeenColumns:
    """The columns of a file, and their types as Spark infers them."""
    names: list[str] | None = None
    types: list[pa.DataType | None] = []
    for header, piece in _pieces(source, options):
        if names is None:
            if header is None:
                first = _parted(piece, options)[0]
                names = None if first is None else [f"_c{index}" for index in range(len(first))]
            else:
                names = safe_names(header, options.null_value)
            types = [None] * len(names or ())
        if names:
            columns = _sample(piece, len(names), options)
            types = [column_type(texts, options.null_value, kind) for texts, kind in zip(columns, types, strict=True)]
    return SeenColumns.of(names or (), types, by_name=options.header)


def header_names(source: BinaryIO, options: CsvOptions) -> list[str]:
    """The names in a file's first record as they stand there, empty for a file without records.

    The options have to say ``header``.
    """
    header = next((names for names, _ in _pieces(source, options) if names is not None), [])
    return [name or "" for name in header]


def _sample(piece: Plain | Records, width: int, options: CsvOptions) -> list[Any]:
    """All columns; further values of a record do not matter here."""
    try:
        return _columns(piece, width, range(width), options)[0]
    except CorruptDataError:
        rows = piece.rows if isinstance(piece, Records) else _taken_apart(piece, options)
        return _columns(Records([row[:width] for row in rows]), width, range(width), options)[0]


def _positions(header: Record | None, schema: pa.Schema, needed: pa.Schema, null_value: str) -> list[int | None]:
    """Where in a record the needed columns are, None for one that the file lacks.

    A schema that is known has the names of the header, one that was inferred those of `safe_names`.
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
            "the header has none of the schema's names: name the columns as the header does",
            header=spellings[0],
            schema=schema.names,
        )
    positions: list[int | None] = []
    for name in needed.names:
        places = _places(name, known)
        if len(places) > 1:
            raise InvalidRequestError(
                "the header has a column twice: leave the schema out, which numbers such columns, or rename one",
                column=name,
                header=spellings[0],
            )
        positions.append(places[0] if places else None)
    return positions


def _places(name: str, known: Mapping[str, list[int]]) -> list[int]:
    return known.get(name) or known.get(name.lower()) or []


def _read_batches(
    source: BinaryIO,
    schema: pa.Schema,
    columns: Sequence[str],
    row_filter: RowFilter | None,
    options: CsvOptions,
    row_groups: Sequence[int] | None,
) -> Iterator[pa.RecordBatch]:
    needed = needed_schema(schema, columns, row_filter)
    for header, piece in _pieces(source, options):
        positions = _positions(header, schema, needed, options.null_value)
        width = len(schema if header is None else header)
        found, rows = _columns(piece, width, [index for index in positions if index is not None], options)
        arrays = iter(found)
        values = []
        for field, index in zip(needed, positions, strict=True):
            if index is None:
                values.append(pa.nulls(rows, field.type))
                continue
            texts = _without_null_texts(next(arrays), field.type, options)
            values.append(parse_texts(texts, field.type, field.name, options.time_zone))
            if options.exact and pat.is_floating(field.type):
                refuse_rounded(texts, parse_texts(texts, pa.float64(), field.name, ""), field.type, field.name)
        yield finish(batch_of(values, needed, rows), needed, columns, row_filter)


# --- options ----------------------------------------------------------------------------------------------------------
def _reader_options(options: CsvOptions) -> Mapping[str, str]:
    """What Spark's reader needs; with its own default for nullValue it would read empty strings as null."""
    return {
        "header": str(options.header).lower(),
        "sep": options.separator,
        "quote": options.quote,
        "escape": options.escape,
        "nullValue": options.null_value or _NO_VALUE,
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
        "linesep": choice("line_end", {"": "\n", "\\n": "\n"}),
        "timezone": text("time_zone"),
        "inferschema": only(("true",), "without a schema the types are always inferred; give one"),
        "preferdate": only(("true",), "give a schema"),
        "enforceschema": only(("false",), "columns are found by the header's names"),
        "ignoreleadingwhitespace": only(("false",), "blanks are kept; trim the column"),
        "ignoretrailingwhitespace": only(("false",), "blanks are kept; trim the column"),
        "unescapedquotehandling": only(("STOP_AT_DELIMITER",), "leave it out"),
        "comment": only(("",), "comments are not known; remove them"),
    },
    extension=lambda options: f".csv{CODEC_EXTENSIONS[options.codec]}",
    check_schema=_check_schema,
    open_writer=_open_writer,
    read_schema=lambda source, options: schema_of(_look(source, options)),
    read_batches=_read_batches,
    by_position=True,
    maybe_by_position=True,
    reader_options=_reader_options,
    inference=Inference(look=_look, merge=merge_columns, schema=schema_of),
)
