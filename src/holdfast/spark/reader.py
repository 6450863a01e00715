"""Read one snapshot through the data source (C4), divided among Spark's tasks. This is the *Python reader*."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from holdfast.commit import CommitContext, Snapshot, VisibleFile, read_snapshot
from holdfast.commit.nested_destinations import refuse_read_inside_destination
from holdfast.errors import HoldfastError, InvalidRequestError, NotFoundError
from holdfast.formats import get_format
from holdfast.options.read import ReadOptions
from holdfast.spark.failures import errors_without_traceback
from holdfast.spark.file_format import DestinationFormat
from holdfast.spark.filters import build_row_filters, require_comparable_strings
from holdfast.spark.types import make_arrow_schema, make_spark_schema, make_table_spark_schema
from holdfast.table.contract import decode_table, require_columns
from holdfast.table.files import file_opener
from holdfast.table.foreign import refuse_foreign_read
from holdfast.table.partition import parse_partition_path
from holdfast.table.reader import (
    ReadSplit,
    TableSchema,
    find_first_nonempty_or_first,
    plan_splits,
    read_schema,
    read_splits,
)
from holdfast.wording import suggest_nearest

_MIB = 1024 * 1024
_OPEN_COST_BYTES = 4 * _MIB  # opening a file costs about as much as reading this; spark.sql.files.openCostInBytes
_WANTED_TASKS = 32  # the number of cores is unknown; even small tables are divided, if their files allow it
_LEAST_TASK_BYTES = 32 * _MIB  # less is not worth a task
_PLAN_CHUNK = 64


@dataclass(frozen=True)
class SplitGroup(InputPartition):
    """The input of one Spark task: parts of files, and how to read them.

    Contains all results of planning, because Spark copies the reader before planning.

    Attributes:
        splits: the parts of files that the task reads.
        choice: the files' format.
        directories: the names of the partition columns in the files' paths.
        whole: the table's schema if files may identify columns by position; else None.
    """

    splits: tuple[ReadSplit, ...]
    choice: DestinationFormat
    directories: tuple[str, ...]
    whole: pa.Schema | None = None


# --- schema -----------------------------------------------------------------------------------------------------------
def infer_schema(options: ReadOptions) -> StructType:
    """Return the Spark schema of a destination: that in the log or, without a log, that of the first file.

    Raises:
        NotFoundError: the destination holds no data.
        InvalidRequestError: a requested column does not exist; the message suggests the nearest one.
    """
    with options.store.open() as ctx:
        snapshot = _require_snapshot(ctx)
        found = _read_whole_schema(ctx, options, snapshot)
    if options.columns is not None:
        found = select_columns(found, options.columns)
    require_comparable_strings(options.conditions, found)
    build_row_filters(
        options.conditions, make_arrow_schema(found)
    )  # refuse an invalid condition when the DataFrame is created
    return found


def select_columns(found: StructType, columns: Sequence[str]) -> StructType:
    """Return a schema with only the named columns, in their order.

    Raises:
        InvalidRequestError: a column does not exist.
    """
    names = {field.name.lower(): field for field in found.fields}
    for name in columns:
        if name.lower() not in names:
            raise InvalidRequestError(f"no such column: {suggest_nearest(name, found.names)}", column=name)
    return StructType([names[name.lower()] for name in columns])


def _require_snapshot(ctx: CommitContext) -> Snapshot:
    refuse_foreign_read(ctx)
    snapshot = read_snapshot(ctx)
    if not snapshot.files and snapshot.table is None:
        raise nothing_to_read_error(ctx)
    if not snapshot.head:
        refuse_read_inside_destination(ctx)
    return snapshot


def nothing_to_read_error(ctx: CommitContext) -> InvalidRequestError:
    """Return the error for a destination without data; it says if the URL names a single file."""
    place = ctx.prefix.rstrip("/")
    if place:
        try:
            ctx.store.head(place)
        except HoldfastError:
            pass
        else:
            return InvalidRequestError("this is a file: name the directory that holds it", url=ctx.url)
    if any(sign in place for sign in "*?[{"):
        return NotFoundError(
            "there is nothing of this name, and patterns are not supported: name a directory", url=ctx.url
        )
    return NotFoundError("there is nothing to read: check the URL", url=ctx.url)


def _read_whole_schema(ctx: CommitContext, options: ReadOptions, snapshot: Snapshot) -> StructType:
    choice = DestinationFormat.of(options, snapshot)  # refuses invalid options, even if the schema is in the log
    if snapshot.table is not None:
        return make_table_spark_schema(decode_table(snapshot.table))
    files = snapshot.files
    first = find_first_nonempty_or_first(files)
    path = "" if first is None else first.path
    table = read_schema(
        files,
        file_opener(ctx),
        choice.settings(path, options.split_size_bytes),
    )
    return make_spark_schema(_drop_unrequested(table.schema, options.columns))


def _drop_unrequested(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """Drop columns that were not requested, because Spark may have no type for them."""
    names = {name.lower() for name in columns or ()}
    wanted = [field for field in schema if field.name.lower() in names]
    return pa.schema(wanted) if columns is not None and len(wanted) == len(names) else schema


# --- reading ----------------------------------------------------------------------------------------------------------
class HoldfastReader(DataSourceReader):
    """Reads a destination in Spark: plans the input of tasks, and yields rows as Arrow batches.

    Guarantee: reads whole jobs only: those that were visible at one point in time while the scan was planned.

    Args:
        options: the options of the read.
        schema: the columns that Spark requests, in its order.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = make_arrow_schema(schema)
        self._wanted = json.loads(schema.json())["fields"]
        require_comparable_strings(options.conditions, schema)
        self._filters = build_row_filters(options.conditions, self._schema)

    def partitions(self) -> Sequence[InputPartition]:
        """Divide the files of a snapshot among Spark's tasks."""
        with errors_without_traceback():
            with self._options.store.open() as ctx:
                snapshot = _require_snapshot(ctx)
                files = [file for file in snapshot.files if file.size_bytes]
                choice = DestinationFormat.of(self._options, snapshot)
                table = None if snapshot.table is None else decode_table(snapshot.table)
                if table is not None:
                    require_columns(self._wanted, table)
                    directories = table.partition_by
                else:
                    directories = tuple(parse_partition_path(files[0].path)) if files else ()
                total = sum(file.size_bytes + _OPEN_COST_BYTES for file in files)
                goal = min(self._options.split_size_bytes, max(total // _WANTED_TASKS, _LEAST_TASK_BYTES))
                splits = self._plan_splits(ctx, files, choice, directories, goal)
                whole = self._find_columns_by_position(ctx, choice, snapshot) if files else None
            return [SplitGroup(group, choice, directories, whole) for group in _pack_splits(splits, goal)]

    def _find_columns_by_position(
        self, ctx: CommitContext, choice: DestinationFormat, snapshot: Snapshot
    ) -> pa.Schema | None:
        """Return all columns, in the table's order, if files may identify columns by position; if not, None.

        Columns that Spark requests have the requested types. If there is no log and no choice of columns, Spark
        requests all columns, so the result is None.
        """
        by_position = get_format(choice.name).by_position
        if not by_position or (snapshot.table is None and self._options.columns is None):
            return None
        found = make_arrow_schema(_read_whole_schema(ctx, replace(self._options, columns=None), snapshot))
        wanted = {field.name.lower(): field for field in self._schema}
        return pa.schema([wanted.get(field.name.lower(), field) for field in found])

    def _plan_splits(
        self,
        ctx: CommitContext,
        files: Sequence[VisibleFile],
        choice: DestinationFormat,
        directories: tuple[str, ...],
        split_bytes: int,
    ) -> list[tuple[ReadSplit, int]]:
        """Return the splits with their sizes. Large files are opened concurrently, to divide them."""
        table = _make_schema_with_partitions(self._schema, directories)
        chunks = [files[start : start + _PLAN_CHUNK] for start in range(0, len(files), _PLAN_CHUNK)]

        def plan_files(chunk: Sequence[VisibleFile]) -> list[tuple[ReadSplit, int]]:
            settings = choice.settings(chunk[0].path, split_bytes)
            splits = plan_splits(chunk, file_opener(ctx), table, settings, self._filters)
            pieces = collections.Counter(split.file.path for split in splits)
            return [(split, split.file.size_bytes // pieces[split.file.path]) for split in splits]

        return [split for planned in ctx.runner.map(plan_files, chunks) for split in planned]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition, in batches that have exactly the schema that Spark expects."""
        if not isinstance(partition, SplitGroup):
            return  # PySpark's placeholder if there is nothing to read
        table = _make_schema_with_partitions(partition.whole or self._schema, partition.directories)
        with errors_without_traceback():
            with self._options.store.open() as ctx:
                settings_of = partition.choice.make_settings_by_path(self._options.split_size_bytes)
                for batch in read_splits(
                    partition.splits, file_opener(ctx), table, settings_of, self._schema.names, self._filters
                ):
                    yield _apply_spark_schema(batch, self._schema)


def _make_schema_with_partitions(schema: pa.Schema, directories: Sequence[str]) -> TableSchema:
    """Return the requested columns, and all partition columns in the files' paths, even those not requested."""
    folded = {name.lower(): name for name in schema.names}
    fields = list(schema)
    partition_by: list[str] = []
    for name in directories:
        if name.lower() not in folded:
            fields.append(pa.field(name, pa.string()))
        partition_by.append(folded.get(name.lower(), name))
    return TableSchema(pa.schema(fields), tuple(partition_by))


def _pack_splits(splits: Sequence[tuple[ReadSplit, int]], goal_bytes: int) -> Iterator[tuple[ReadSplit, ...]]:
    """Group splits into tasks of about the given size, so that many small files do not make many tasks."""
    group: list[ReadSplit] = []
    size = 0
    for split, size_bytes in splits:
        if group and size + size_bytes > goal_bytes:
            yield tuple(group)
            group, size = [], 0
        group.append(split)
        size += size_bytes + _OPEN_COST_BYTES
    if group:
        yield tuple(group)


def _apply_spark_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with exactly Spark's schema, because Spark also compares nullability and metadata."""
    if not len(schema) or batch.schema.equals(schema, check_metadata=True):
        return batch
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
