"""What a file format is: a frozen value with the functions that write and read one file.

A writer takes record batches and a sink; a reader takes a seekable binary file and gives record batches back.
Neither closes what it was given: whoever opened a sink or a file closes it.

Worked composition::

    file_format = get_format("parquet")
    options = file_format.parse_options({"compression": "zstd"}).options
    file_format.check_schema(schema)                       # before anything is written
    writer = file_format.open_writer(sink, schema, options)
    writer.write(batch)
    writer.close()                                         # the footer is written; the sink is still open

Errors: `InvalidRequestError` for a type or an option that the format cannot hold, before any byte is written;
`CorruptDataError` for a file that is not of the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BatchWriter",
    "ByteSink",
    "FileFormat",
    "FormatOptions",
    "Inference",
    "ParsedOptions",
    "ReadBatches",
    "RowFilter",
    "require_all",
]


class ByteSink(Protocol):
    """Where a format writer sends the bytes of a file, from its start to its end."""

    def write(self, data: bytes | memoryview, /) -> int:
        """Append all of `data`; returns its length."""
        ...


class BatchWriter(Protocol):
    """One file that is being written."""

    @property
    def buffered_bytes(self) -> int:
        """Estimate of the memory held for rows that did not reach the sink yet."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; the batch has the schema that the writer was opened with (dictionary encoding aside)."""
        ...

    def close(self) -> None:
        """Send the rest and the footer to the sink. The sink stays open. Called once."""
        ...


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """Settings of one format; each format has its own subclass."""


Opt = TypeVar("Opt", bound=FormatOptions)


@dataclass(frozen=True, slots=True)
class ParsedOptions(Generic[Opt]):
    """What `FileFormat.parse_options` made of strings.

    Attributes:
        options: the format's options.
        unknown: keys, as given, that this format does not know; the caller may know them.
    """

    options: Opt
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition that a row has to meet; a null result does not meet it.

    Attributes:
        expression: a `pyarrow.compute.Expression` over column names.
        columns: the names in it. An expression cannot be asked for them.
    """

    expression: Any
    columns: frozenset[str]


def require_all(filters: Sequence[RowFilter]) -> RowFilter | None:
    """The conjunction of filters, None for no filter."""
    if not filters:
        return None
    expression = filters[0].expression
    for other in filters[1:]:
        expression = expression & other.expression
    return RowFilter(expression, frozenset().union(*(one.columns for one in filters)))


class ReadBatches(Protocol[Opt]):  # type: ignore[misc]  # Opt is invariant in FileFormat, where this protocol is used
    """The signature of `FileFormat.read_batches`."""

    def __call__(
        self,
        source: BinaryIO,
        schema: pa.Schema,
        columns: Sequence[str],
        row_filter: RowFilter | None,
        options: Opt,
        row_groups: Sequence[int] | None,
    ) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True, kw_only=True)
class Inference(Generic[Opt]):
    """How a format without types takes them from its values, over any number of files.

    Attributes:
        look: (source, options) to what the values of one file tell; the file is read to its end, in pieces.
        merge: what a file tells, and what the next one does, to what both do.
        schema: what the files tell to their schema.
    """

    look: Callable[[BinaryIO, Opt], Any]
    merge: Callable[[Any, Any], Any]
    schema: Callable[[Any], pa.Schema]


@dataclass(frozen=True, kw_only=True)
class FileFormat(Generic[Opt]):
    """One file format.

    Attributes:
        name: the format's one name.
        aliases: other names that `get_format` knows.
        default_options: the options that hold when nothing is said.
        parsers: option names as Spark users write them, lower case, each with a function from the value to the fields
            of the options that it sets; it raises `InvalidRequestError` for a bad value.
        extension: what a file name ends in, with the leading dot, e.g. ``.snappy.parquet``.
        check_schema: raises `InvalidRequestError` that names the column, its type and the formats that can hold it.
        open_writer: (sink, schema, options) to a `BatchWriter`. The schema was checked.
        read_schema: the schema of a file, from its footer or inferred from its values.
        read_batches: (source, schema, columns, row_filter, options, row_groups) to record batches. `schema` is that of
            the rows in the file (CSV without a header has no other); out come `columns` of it, in that order and type:
            null where the file lacks one, cast where it has another type; only rows that meet the filter, whose columns
            are in the schema too. `row_groups` narrows the file to one of the groups that `plan_splits` gave.
        plan_splits: (source, options, bytes) to groups of row groups of about that size; ``[None]``: not splittable.
        by_position: whether files tell their columns by position only, so that all files need one order.
        maybe_by_position: whether there are files that do, so that a reader has to know all of a table's columns.
        reader_options: options to those that every reader of files written with them has to use, under Spark's names
            and in one spelling each, defaults included. Files whose reader options are equal can be read together.
        inference: how the schema of many files is inferred; None where each file tells its own.
    """

    name: str
    aliases: tuple[str, ...] = ()
    default_options: Opt
    parsers: Mapping[str, Callable[[str], Mapping[str, Any]]]
    extension: Callable[[Opt], str]
    check_schema: Callable[[pa.Schema], None]
    open_writer: Callable[[ByteSink, pa.Schema, Opt], BatchWriter]
    read_schema: Callable[[BinaryIO, Opt], pa.Schema]
    read_batches: ReadBatches[Opt]
    plan_splits: Callable[[BinaryIO, Opt, int], Sequence[Sequence[int] | None]] = field(default=lambda *_: (None,))
    by_position: bool = False
    maybe_by_position: bool = False
    reader_options: Callable[[Opt], Mapping[str, str]] = field(default=lambda _: {})
    inference: Inference[Opt] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Spark carries settings between processes: a format travels by its name."""
        from holdfast.formats.registry import get_format

        return get_format, (self.name,)

    def parse_options(self, given: Mapping[str, str]) -> ParsedOptions[Opt]:
        """Turn strings into options; names are matched without regard to case.

        Returns:
            The options and the keys that this format does not know, for the caller to judge.

        Raises:
            InvalidRequestError: a value is no good, or two spellings of one option contradict each other.
        """
        from holdfast.formats.options import parse_format_options

        return parse_format_options(self, given)
