"""Define `FileFormat`: a frozen value with the functions that write and read one file.

A writer takes record batches and a sink. A reader takes a seekable binary file and yields record batches. Neither
closes the sink or file it was given: the caller that opened it closes it.

Worked composition::

    file_format = get_format("parquet")
    options = file_format.parse_options({"compression": "zstd"}).options
    file_format.check_schema(schema)                       # before anything is written
    writer = file_format.open_writer(sink, schema, options)
    writer.write(batch)
    writer.close()                                         # writes the footer; the sink stays open

Errors: `InvalidRequestError` for a type or an option that the format does not support, before any byte is written;
`CorruptDataError` for a file that is not in the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, NamedTuple, Protocol, TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.formats.filters import RowFilter

if TYPE_CHECKING:
    import pyarrow as pa


class ByteSink(Protocol):
    """An object that receives the bytes of one file, in order."""

    def write(self, data: bytes | memoryview, /) -> int:
        """Append all of `data` and return its length."""
        ...


class BatchWriter(Protocol):
    """Writes rows to one file of a format."""

    @property
    def buffered_bytes(self) -> int:
        """Return an estimate of the memory held for rows that have not reached the sink yet."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows. The batch has the schema that the writer was opened with, except for dictionary encoding."""
        ...

    def close(self) -> None:
        """Write the remaining rows and the footer to the sink. The sink stays open. Call this once."""
        ...


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """The options for reading and writing one format, parsed; each format defines its own subclass."""


Opt = TypeVar("Opt", bound=FormatOptions)
OptionParser = tuple[str, Callable[[str], Any]]


@dataclass(frozen=True, slots=True)
class ParsedOptions(Generic[Opt]):
    """The result of `FileFormat.parse_options`.

    Attributes:
        options: the format's options.
        unknown: the given keys that this format does not know, spelled as given. The caller may know them.
    """

    options: Opt
    unknown: tuple[str, ...]


class ReadRequest(NamedTuple):
    """The columns and the filter of one call of `FileFormat.read`.

    Attributes:
        schema: describes the rows in the file (CSV without a header has no other schema).
        needed: the part of the schema to read: the requested columns, and those that only the filter uses.
        row_filter: the filter that the rows will be given; a format may use it to skip parts of the file.
    """

    schema: pa.Schema
    needed: pa.Schema
    row_filter: RowFilter | None


def _refuse_untyped_files(source: BinaryIO, options: FormatOptions) -> pa.Schema:
    raise InvalidRequestError("the files do not tell the types of their values: use spark.read")


@dataclass(frozen=True, kw_only=True)
class FileFormat(Generic[Opt]):
    """The functions and properties of one file format, such as Parquet.

    Attributes:
        name: the canonical name of the format.
        default_options: the options used when none are given.
        parsers: maps option names (Spark's, in lower case) to pairs: the field of the options class to set (empty if
            the option is only checked), and a function that parses the option's value.
        holds: the kinds of types that the format supports (`holdfast.formats.columns.types`).
        reasons: why the format does not support the other kinds, and what to do instead; errors show these texts.
        extension: takes the options and returns the suffix of file names, with the leading dot, e.g.
            ``.snappy.parquet``.
        check_schema: raises `InvalidRequestError` if the format does not support a column; the error names the column,
            its type and the formats that support it.
        open_writer: takes (sink, schema, options) and returns a `BatchWriter`. The caller has checked the schema.
        read_schema: takes (source, options) and returns the file's schema. A format whose files do not tell the types
            of their values has none.
        read: takes (source, what is wanted, options, row_groups) and yields record batches as the file has them:
            `read_batches` brings their columns into order.
        plan_splits: takes (source, options, bytes) and returns groups of row groups, each of about `bytes` bytes;
            ``[None]`` if the file cannot be split.
        magic: the first bytes of each file; empty if files have no such mark.
        is_text: whether files are lines of text: values do not say their type, and a codec applies to the whole file.
        void_becomes_any: whether a column of untyped nulls can be read as any type.
        by_position: whether files may identify columns by position only, so that all files must use the same order, and
            a reader must know all columns of the table.
        reader_options: takes the options, and returns those that every reader of the written files must use, including
            defaults, under Spark's names and with one spelling for each value. Files with equal reader options can be
            read together.
    """

    name: str
    default_options: Opt
    parsers: Mapping[str, OptionParser]
    holds: frozenset[str]
    reasons: Mapping[str, str] = field(default_factory=dict)
    extension: Callable[[Opt], str]
    check_schema: Callable[[pa.Schema], None]
    open_writer: Callable[[ByteSink, pa.Schema, Opt], BatchWriter]
    read_schema: Callable[[BinaryIO, Opt], pa.Schema] = field(default=_refuse_untyped_files)
    read: Callable[[BinaryIO, ReadRequest, Opt, Sequence[int] | None], Iterator[pa.RecordBatch]]
    plan_splits: Callable[[BinaryIO, Opt, int], Sequence[Sequence[int] | None]] = field(default=lambda *_: (None,))
    magic: bytes = b""
    is_text: bool = False
    void_becomes_any: bool = True
    by_position: bool = False
    reader_options: Callable[[Opt], Mapping[str, str]] = field(default=lambda _: {})

    @property
    def tells_types(self) -> bool:
        """Whether files of the format store the types of values; if not, only tables with a log can be read."""
        return self.read_schema is not _refuse_untyped_files

    def read_batches(
        self,
        source: BinaryIO,
        schema: pa.Schema,
        columns: Sequence[str],
        row_filter: RowFilter | None,
        options: Opt,
        row_groups: Sequence[int] | None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file that pass the filter, as batches of `columns`, with the types in `schema`.

        A column that the file lacks is null, and values of another type are cast.

        Args:
            schema: the columns of the rows, including the filter's.
            row_groups: one of the groups of row groups that `plan_splits` returned; None for the whole file.
        """
        from holdfast.formats.columns.conversion import (
            convert_to_requested,
            select_needed_schema,
        )  # with pyarrow, which a commit needs not

        needed = select_needed_schema(schema, columns, row_filter)
        for batch in self.read(source, ReadRequest(schema, needed, row_filter), options, row_groups):
            yield convert_to_requested(batch, needed, columns, row_filter)

    def parse_options(self, given: Mapping[str, str]) -> ParsedOptions[Opt]:
        """Parse option strings. Names are matched case-insensitively.

        Returns:
            The options, and the keys that this format does not know. The caller decides what to do with unknown keys.

        Raises:
            InvalidRequestError: a value is invalid, or two spellings of one option contradict each other.
        """
        fields: dict[str, Any] = {}
        set_by: dict[str, str] = {}
        unknown: list[str] = []
        for key, value in given.items():
            if key.lower() not in self.parsers:
                unknown.append(key)
                continue
            name, parse = self.parsers[key.lower()]
            try:
                parsed = parse(value)
            except InvalidRequestError as error:
                raise InvalidRequestError(error.message, option=key, value=value, format=self.name) from error
            if name in fields and fields[name] != parsed:
                raise InvalidRequestError(
                    "two options contradict each other: set only one", first=set_by[name], second=key
                )
            if name:
                fields[name] = parsed
                set_by[name] = key
        return ParsedOptions(replace(self.default_options, **fields), tuple(unknown))
