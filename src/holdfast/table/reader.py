"""Read partitioned files as record batches.

Reading has three steps: `read_schema`, `plan_splits` and `read_split`. An engine such as Spark can run the last step on
many machines, since splits, schemas and settings can be pickled.

Worked composition::

    settings = ReadSettings(file_format=get_format("parquet"))
    schema = read_schema(files, open_file, settings)
    for split in plan_splits(files, open_file, schema, settings, filters):
        for batch in read_split(split, open_file, schema, settings, ["id", "month"], filters):
            ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, TypeVar

import pyarrow as pa

from holdfast.commit import VisibleFile
from holdfast.errors import InvalidRequestError
from holdfast.formats import FileFormat, FormatOptions, RowFilter, require_all
from holdfast.formats.columns.conversion import filter_rows
from holdfast.table.files import ListedFile as ListedFile
from holdfast.table.files import add_path_to_errors
from holdfast.table.partition import parse_partition_path, raw_partition_values
from holdfast.table.partition_values import infer_partition_type, parse_partition_values
from holdfast.wording import suggest_nearest

_MIB = 1024 * 1024

OpenFile = Callable[[ListedFile], BinaryIO]
"""A function that opens a listed file for reading; the caller closes the file."""


@dataclass(frozen=True, kw_only=True)
class ReadSettings:
    """Settings for reading files.

    Attributes:
        file_format: format of the files.
        format_options: the format's options; None for its defaults.
        split_bytes: the file size above which a file is divided, if its format supports that (Parquet does, by row
            groups).
    """

    file_format: FileFormat[Any]
    format_options: FormatOptions | None = None
    split_bytes: int = 128 * _MIB

    @property
    def options(self) -> FormatOptions:
        """The format's options, or its defaults."""
        default: FormatOptions = self.file_format.default_options
        return default if self.format_options is None else self.format_options


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of a table, and which of them are partition columns.

    Attributes:
        schema: all columns, in the order in which they are shown.
        partition_by: columns whose values are in directory names, outermost first. A directory's value overrides a
            column with the same name in the file.
    """

    schema: pa.Schema
    partition_by: tuple[str, ...] = ()

    @property
    def data_schema(self) -> pa.Schema:
        """The columns that are stored in files."""
        return pa.schema([field for field in self.schema if field.name not in self.partition_by])


@dataclass(frozen=True, slots=True)
class ReadSplit:
    """A part of a table that one task reads: a file, or some of its row groups.

    Attributes:
        file: the file.
        row_groups: the row groups to read; None for all.
    """

    file: VisibleFile
    row_groups: tuple[int, ...] | None = None


# --- empty files ------------------------------------------------------------------------------------------------------
# Spark never opens an empty file, whatever its format, but uses the file's directory when it infers partition columns.
class _SizedFile(Protocol):
    @property
    def size_bytes(self) -> int: ...


File = TypeVar("File", bound=_SizedFile)


def find_first_nonempty_or_first(files: Sequence[File]) -> File | None:
    """Return the first file with a size above 0, else the first file; None if there is no file."""
    return next((file for file in files if file.size_bytes), files[0] if files else None)


# --- schema -----------------------------------------------------------------------------------------------------------
def read_schema(
    files: Sequence[VisibleFile],
    open_file: OpenFile,
    settings: ReadSettings,
) -> TableSchema:
    """Return the schema of the first file that is not empty, then the partition columns, typed as Spark infers them.

    Partition columns come last, or at the position of a column in the file with the same name, as in Spark.

    Args:
        settings: the settings for the first file, of a format whose files tell their types.

    Raises:
        InvalidRequestError: there is no file, every file is empty, files are partitioned differently, or several
            columns have the same name.
        CorruptDataError: the file does not have the format.
    """
    first = find_first_nonempty_or_first(files)
    if first is None:
        raise InvalidRequestError("the schema is unknown, there is no file: give a schema, or check the URL")
    partition_by = tuple(parse_partition_path(first.path))
    directories = [file.path for file in files if file.size_bytes or parse_partition_path(file.path)]
    values = [raw_partition_values(path, partition_by) for path in directories]
    if not (first.size_bytes or settings.file_format.is_text):
        raise InvalidRequestError("the schema is unknown, every file is empty: give a schema, or check the URL")
    with add_path_to_errors(first.path), open_file(first) as source:
        found = settings.file_format.read_schema(source, settings.options)
    inferred = {name: pa.field(name, infer_partition_type([row[name] for row in values])) for name in partition_by}
    folded = {name.lower(): field for name, field in inferred.items()}
    fields = [folded.pop(field.name.lower(), field) for field in found]
    return _require_unique_column_names(TableSchema(pa.schema([*fields, *folded.values()]), partition_by))


def _require_unique_column_names(table: TableSchema) -> TableSchema:
    twice = next((name for name, count in Counter(table.schema.names).items() if count > 1), None)
    if twice is not None:
        raise InvalidRequestError(
            "several columns have the same name: rename them where the files are written", column=twice
        )
    return table


# --- plan -------------------------------------------------------------------------------------------------------------
def plan_splits(
    files: Sequence[VisibleFile],
    open_file: OpenFile,
    schema: TableSchema,
    settings: ReadSettings,
    filters: Sequence[RowFilter] = (),
) -> list[ReadSplit]:
    """Plan the splits to read. Skip empty files, and files whose partition directories do not meet the filters.

    Only files larger than `ReadSettings.split_bytes` are opened.
    """
    splits: list[ReadSplit] = []
    for file in _prune_files([file for file in files if file.size_bytes], schema, filters):
        if file.size_bytes <= settings.split_bytes:
            splits.append(ReadSplit(file))
            continue
        with add_path_to_errors(file.path), open_file(file) as source:
            groups = settings.file_format.plan_splits(source, settings.options, settings.split_bytes)
        splits.extend(ReadSplit(file, None if group is None else tuple(group)) for group in groups)
    return splits


def _prune_files(
    files: Sequence[VisibleFile], schema: TableSchema, filters: Sequence[RowFilter]
) -> Sequence[VisibleFile]:
    names = set(schema.partition_by)
    row_filter = require_all([one for one in filters if one.columns <= names])
    if row_filter is None or not names or not files:
        return files
    rows = [_partition_values_of(file, schema) for file in files]
    columns = [
        parse_partition_values([row[index] for row in rows], schema.schema.field(name).type, name)
        for index, name in enumerate(schema.partition_by)
    ]
    numbered = pa.record_batch(
        [*columns, pa.array(range(len(files)), pa.int64())], names=[*schema.partition_by, _FILE_NUMBER]
    )
    kept = filter_rows(numbered, row_filter)
    return [files[number] for number in kept.column(len(columns)).to_pylist()]


_FILE_NUMBER = "\0file"  # no column has this name


def _partition_values_of(file: VisibleFile, schema: TableSchema) -> list[str | None]:
    found = {name.lower(): value for name, value in parse_partition_path(file.path).items()}
    missing = [name for name in schema.partition_by if name.lower() not in found]
    if missing or len(found) != len(schema.partition_by):
        raise InvalidRequestError(
            "files are partitioned differently: read each layout separately",
            path=file.path,
            partition_by=schema.partition_by,
        )
    return [found[name.lower()] for name in schema.partition_by]


# --- read -------------------------------------------------------------------------------------------------------------
def read_split(
    split: ReadSplit,
    open_file: OpenFile,
    schema: TableSchema,
    settings: ReadSettings,
    columns: Sequence[str],
    filters: Sequence[RowFilter] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split that meet all filters, as batches of `columns` in that order, in the schema's types.

    Memory: the memory that the format needs for one batch (Parquet: a page of each column and 64 Ki rows).

    Raises:
        InvalidRequestError: a column is not in the schema, or a value does not fit its type.
        CorruptDataError: the file does not have the format.
    """
    return read_splits((split,), open_file, schema, lambda _: settings, columns, filters)


def read_splits(
    splits: Iterable[ReadSplit],
    open_file: OpenFile,
    schema: TableSchema,
    settings_of: Callable[[str], ReadSettings],
    columns: Sequence[str],
    filters: Sequence[RowFilter] = (),
) -> Iterator[pa.RecordBatch]:
    """Read many splits in sequence.

    This is like `read_split` for each of them, but filters and columns are prepared only once, which matters for small
    files.

    Args:
        settings_of: returns the settings for the file at a path.
    """
    names = set(schema.schema.names)
    for name in columns:
        if name not in names:
            raise InvalidRequestError(f"no such column: {suggest_nearest(name, schema.schema.names)}", column=name)
    data_schema = schema.data_schema
    data_names = set(data_schema.names)
    early = require_all([one for one in filters if one.columns and one.columns <= data_names])
    late = require_all([one for one in filters if not (one.columns and one.columns <= data_names)])
    wanted = list(columns) + sorted(late.columns - set(columns) if late else ())
    from_file = [name for name in wanted if name in data_names]
    whole_schema = pa.schema([schema.schema.field(name) for name in wanted])
    for split in splits:
        settings = settings_of(split.file.path)
        constants = _make_partition_constants(split.file, schema)
        with add_path_to_errors(split.file.path), open_file(split.file) as source:
            for batch in settings.file_format.read_batches(
                source, data_schema, from_file, early, settings.options, split.row_groups
            ):
                if batch.num_rows:
                    whole = _append_constants(batch, whole_schema, constants)
                    if late is not None:
                        whole = filter_rows(whole, late).select(list(columns))
                    if whole.num_rows:
                        yield whole


def _make_partition_constants(file: VisibleFile, schema: TableSchema) -> dict[str, Any]:
    """Return the values of a file's partition columns, as arrays of length one."""
    texts = _partition_values_of(file, schema)
    return {
        name: parse_partition_values([text], schema.schema.field(name).type, name)
        for name, text in zip(schema.partition_by, texts, strict=True)
    }


def _append_constants(batch: pa.RecordBatch, schema: pa.Schema, constants: dict[str, Any]) -> pa.RecordBatch:
    if not any(name in constants for name in schema.names):
        return batch
    arrays = [
        pa.repeat(constants[name][0], batch.num_rows) if name in constants else batch[name] for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
