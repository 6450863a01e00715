"""Parse the options of a read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.errors import InvalidRequestError
from holdfast.formats import format_name
from holdfast.options.file_format import FormatRequest
from holdfast.options.location import LOCATION_KEYS, LocationOptions, collect_options, parse_location
from holdfast.options.values import Condition, parse_columns, parse_conditions
from holdfast.stores.provider import MIB, OptionSource, OptionSpec, make_size_parser, make_word_parser

_SPECS = (
    OptionSpec("columns", "columns", parse_columns),
    OptionSpec("filters", "conditions", parse_conditions),
    OptionSpec("splitSize", "split_size_bytes", make_size_parser(1)),
    OptionSpec("reader", "reader", make_word_parser("auto", "native", "python")),
)
READ_KEYS = (*LOCATION_KEYS, "fileFormat", "partitionBy", *(spec.name for spec in _SPECS))
"""Names of the options that `parse_read_options` takes, except those of the file format."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The parsed options of a read.

    Attributes:
        store: the location of the data to read.
        file_format: None means the format in the newest log entry, or, without one, the format that the file names
            imply.
        format_options: the format's options as strings, which are parsed once the format is known.
        columns: the columns to read; None for all.
        conditions: only rows that meet all of them are read.
        reader: ``native`` for Spark's own reader, ``python`` for Holdfast's, or ``auto`` for Spark's own where it reads
            the same rows.
        split_size_bytes: approximate number of bytes that a task reads; 128 MiB is Spark's own
            ``spark.sql.files.maxPartitionBytes``.
    """

    store: LocationOptions
    file_format: str | None = None
    format_options: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    conditions: tuple[Condition, ...] = ()
    reader: str = "auto"
    split_size_bytes: int = 128 * MIB


def parse_read_options(options: OptionSource) -> ReadOptions:
    """Parse the options of a read.

    Raises:
        InvalidRequestError: an option is unknown or invalid; the message says how to fix it. If the format is not
            given, its options are checked later, once it is known.
    """
    given = collect_options(options, READ_KEYS)
    store = parse_location(given)
    file_format = given.take("fileFormat", format_name)
    if "schema" in given.rest:
        raise InvalidRequestError(
            "a schema is not an option: pass it to spark.read.format('holdfast').schema(…).load(url)", option="schema"
        )
    given.take("partitionBy", parse_columns)  # accepted for views, which are read and written with the same options
    if file_format is not None:
        FormatRequest(file_format, given.rest).check(given.known)
    return ReadOptions(store=store, file_format=file_format, format_options=given.rest, **given.fields(_SPECS))
