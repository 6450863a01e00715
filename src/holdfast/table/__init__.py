"""Record batches into partitioned files through a task attempt, and back."""

from holdfast.table.attempt import AttemptFiles, AttemptSink
from holdfast.table.reader import (
    DataFile,
    OpenFile,
    ReadSettings,
    ReadSplit,
    TableSchema,
    first_with_rows,
    given_schema,
    plan_splits,
    read_schema,
    read_split,
    read_splits,
)
from holdfast.table.store_file import StoreFile
from holdfast.table.writer import TableWriter, WriteCounts, WriteSettings

__all__ = [
    "AttemptFiles",
    "AttemptSink",
    "DataFile",
    "OpenFile",
    "ReadSettings",
    "ReadSplit",
    "StoreFile",
    "TableSchema",
    "TableWriter",
    "WriteCounts",
    "WriteSettings",
    "first_with_rows",
    "given_schema",
    "plan_splits",
    "read_schema",
    "read_split",
    "read_splits",
]
