"""Build and parse the names of Hive-style partition directories, with Spark's names and escapes.

Spark does not write ``month=1/city=S%C3%A3o``: it escapes only the characters that a file system or a URL could
misinterpret (observed by writing every ASCII character with Spark). Other characters, such as ``ã`` and a space, are
not escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.types import check_unique_names, kind_of_column
from holdfast.table.partition_values import format_partition_values, parse_partition_values
from holdfast.wording import suggest_nearest

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

# Spark does not escape NUL, but no store accepts a key that contains it.
_TO_ESCAPE = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
# The longest directory name on common file systems.
_MOST_NAME_BYTES = 255


def escape_name(name: str) -> str:
    """Escape a partition column's name or value so that it is a single path segment."""
    return _TO_ESCAPE.sub(lambda match: f"%{ord(match.group()):02X}", name)


def unescape_name(escaped: str) -> str:
    """Reverse `escape_name`. A ``%`` that does not start an escape sequence is literal, as in Spark."""
    return _ESCAPED.sub(lambda match: chr(int(match.group(1), 16)), escaped)


def directory_name(column: str, value: str | None) -> str:
    """Return the name of a partition directory, ``column=value``, with both parts escaped.

    Raises:
        InvalidRequestError: the name is longer than file systems allow, or the value is the empty string, which Spark's
            writer silently turns into null.
    """
    if value == "":
        raise InvalidRequestError(
            "a partition directory cannot distinguish an empty string from null: write null or another value",
            column=column,
        )
    if value == NULL_PARTITION:
        raise InvalidRequestError(
            "a partition directory of this name means null: write null or another value",
            column=column,
            value=value,
        )
    name = f"{escape_name(column)}={NULL_PARTITION if value is None else escape_name(value)}"
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidRequestError("a partition value is not valid Unicode: clean it", column=column) from None
    if size > _MOST_NAME_BYTES:
        raise InvalidRequestError(
            f"a partition directory's name is longer than {_MOST_NAME_BYTES} bytes: partition by a shorter value",
            column=column,
            size_bytes=size,
        )
    return name


def normalize_partition_directory(directory: str, schema: pa.Schema) -> str:
    """Return Holdfast's name for a partition directory that another writer may have named differently.

    Other writers use ``month=01``, or escape more characters. Such names mean the same partition. A directory whose
    value does not fit the schema is returned unchanged.
    """
    folded = {name.lower(): name for name in schema.names}
    segments = []
    for column, text in parse_partition_path(f"{directory}/").items():
        name = folded.get(column.lower())
        if name is None:
            return directory
        try:
            values = parse_partition_values([text], schema.field(name).type, name)
            segments.append(directory_name(name, format_partition_values(values, name)[0]))
        except InvalidRequestError:
            return directory
    return "/".join(segments) if segments else directory


def parse_partition_path(path: str) -> dict[str, str | None]:
    """Return the partition columns and values in a file's path, outermost first; None for a null value.

    Segments without ``=`` and the file's own name are ignored.
    """
    found = _parse_raw_path(path).items()
    return {column: None if value is None else unescape_name(value) for column, value in found}


def _parse_raw_path(path: str) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for directory in path.split("/")[:-1]:
        column, equals, value = directory.partition("=")
        if equals and column:
            values[unescape_name(column)] = None if value == NULL_PARTITION else value
    return values


def resolve_partition_columns(schema: pa.Schema, partition_by: Sequence[str]) -> tuple[str, ...]:
    """Return the partition columns as the schema spells them, after checking them.

    Raises:
        InvalidRequestError: two columns of the schema have the same name, or a partition column does not exist (the
            error suggests the nearest names), is named twice, is called "" or something that makes readers skip the
            directory, or has a type that directory names cannot represent; or all columns are partition columns.
    """
    check_unique_names(schema)
    exact = set(schema.names)
    folded = {name.lower(): name for name in schema.names}
    resolved: list[str] = []
    for name in partition_by:
        column = name if name in exact else folded.get(name.lower())
        if column is None:
            raise InvalidRequestError(
                f"no such column to partition by: {suggest_nearest(name, schema.names)}", column=name
            )
        if column in resolved:
            raise InvalidRequestError("a partition column is named twice: name it once", column=column)
        _check_partition_field(schema.field(column))
        resolved.append(column)
    if resolved and len(resolved) == len(schema.names):
        raise InvalidRequestError(
            "partitioning by every column leaves no data to write: leave one out", columns=resolved
        )
    return tuple(resolved)


# Kinds of types that directory names cannot represent, and why; shown in the error and in a table of the documentation.
PARTITION_REASONS: Mapping[str, str] = {
    "float": "Spark reads some of them back rounded: cast the column to a decimal or a string",
    "timestamp": "Spark reads it in the time zone of its session: partition by a date, or by a string",
    "timestamp_ntz": "Spark reads it as a timestamp with a zone: partition by a date, or by a string",
    "binary": "Spark reads other bytes back than it names: partition by hex(column) or base64(column)",
    "time": "Spark cannot read a time back from a directory: cast the column to a string",
    "interval": "a directory's name does not say which fields an interval has: cast the column to a string",
    "interval of other fields": "a directory's name does not say which fields an interval has: cast it to a string",
    "time of nanoseconds": "Spark cannot read a time back from a directory: cast the column to a string",
    "collated string": "Spark partitions by plain strings only: cast the column to string collate UTF8_BINARY",
    "list": "Spark partitions by single values only: partition by an element of it",
    "map": "Spark partitions by single values only: partition by a value of it",
    "struct": "Spark partitions by single values only: partition by a field of it",
    "user-defined": "Spark partitions by single values only: partition by a part of it",
    "variant": "Spark partitions by single values only: partition by variant_get(column, …)",
    "geometry": "Spark partitions by single values only: partition by another column",
    "geography": "Spark partitions by single values only: partition by another column",
}


def _check_partition_field(field: pa.Field) -> None:
    kind = kind_of_column(field)
    if kind is None or kind in PARTITION_REASONS:
        reason = PARTITION_REASONS.get(kind or "", "partition by a whole number, a string or a date")
        raise InvalidRequestError(
            f"a directory name cannot hold this type: {reason}", column=field.name, type=str(field.type)
        )
    if not field.name:
        raise InvalidRequestError("a column without a name cannot name a directory: rename it", column=field.name)
    if field.name.startswith("."):
        raise InvalidRequestError(
            "readers skip directories whose name starts with a dot: rename the partition column", column=field.name
        )


@dataclass(frozen=True, slots=True)
class _ColumnCodes:
    """One partition column of a batch: for each row an index into `names`, which contains the directory names."""

    indices: Any
    names: Sequence[str]


class PartitionSplitter:
    """Splits record batches by partition.

    Args:
        schema: the schema of the batches.
        partition_by: the partition columns as the schema spells them (`resolve_partition_columns`),
            outermost first.
    """

    def __init__(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        self.columns = tuple(partition_by)
        self._data_names = [name for name in schema.names if name not in set(partition_by)]
        self.data_schema = pa.schema([schema.field(name) for name in self._data_names])

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield each partition's directory (``a=1/b=x``, empty if unpartitioned) with its rows, in their order.

        Guarantee: the parts do not share memory, so buffering one part does not keep the memory of the others.
        """
        if batch.num_rows == 0:
            return
        if not self.columns:
            yield "", batch
            return
        data = batch.select(self._data_names)
        columns = [self._encode_column(name, batch.column(name)) for name in self.columns]
        combined = _combine_partition_codes(columns)
        groups = pc.dictionary_encode(combined)
        if len(groups.dictionary) == 1:
            yield _directory_of_row(columns, 0), data
            return
        order = pc.array_sort_indices(groups.indices)  # the sort is stable: rows keep their order
        ends = pc.run_end_encode(groups.indices.take(order)).run_ends.to_pylist()
        start = 0
        for end in ends:
            rows = order.slice(start, end - start)
            yield _directory_of_row(columns, rows[0].as_py()), data.take(rows)
            start = end

    def _encode_column(self, name: str, column: Any) -> _ColumnCodes:
        if pat.is_dictionary(column.type):  # an incoming dictionary may contain a value twice, or null
            column = column.cast(column.type.value_type)
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        return _ColumnCodes(
            encoded.indices, [directory_name(name, text) for text in format_partition_values(encoded.dictionary, name)]
        )


def _combine_partition_codes(columns: Sequence[_ColumnCodes]) -> Any:
    """Return a number for each row, so that two rows have the same number if they belong to the same partition."""
    combined = columns[0].indices.cast(pa.int64())
    for codes in columns[1:]:
        # Make codes dense before each step, so that the product stays below rows x names and cannot overflow.
        combined = pc.dictionary_encode(combined).indices.cast(pa.int64())
        combined = pc.add(pc.multiply(combined, len(codes.names)), codes.indices.cast(pa.int64()))
    return combined


def _directory_of_row(columns: Sequence[_ColumnCodes], row: int) -> str:
    return "/".join(codes.names[codes.indices[row].as_py()] for codes in columns)


def raw_partition_values(path: str, columns: Sequence[str]) -> Mapping[str, str | None]:
    """Return the values of `columns` in a file's path, still escaped; None for null.

    The values are not unescaped, because Spark infers a string type from an escaped digit.

    Raises:
        InvalidRequestError: the path lacks one of the columns.
    """
    found = _parse_raw_path(path)
    missing = [name for name in columns if name not in found]
    if missing:
        raise InvalidRequestError(
            "files are partitioned differently: read each layout separately", path=path, missing=missing
        )
    return {name: found[name] for name in columns}
