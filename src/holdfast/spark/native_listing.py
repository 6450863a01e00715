"""Check Spark's own listing of a destination: if it misses files, rows are missing without an error.

If there is a single directory ``p=1``, Spark treats everything as partitioned by ``p`` and ignores all files outside
such directories. In a destination without partitions, Spark ignores all files in subdirectories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import DataFrame

from holdfast.commit import VisibleFile
from holdfast.table import first_with_bytes
from holdfast.table.partition import parse_partition_path

_OTHERWISE = "a file lies in directories that differ from the other files' partitions, and Spark would skip files"


def directory_columns(files: Sequence[VisibleFile]) -> tuple[str, ...]:
    """Return the partition columns of a destination without a log, taken from the path of the first non-empty file."""
    first = first_with_bytes(files)
    return () if first is None else tuple(parse_partition_path(first.path))


def misplaced(files: Iterable[VisibleFile], partition_by: Sequence[str]) -> str:
    """Return the reason why Spark would skip one of these files; empty if Spark reads all non-empty ones."""
    wanted = _folded(partition_by)
    for file in files:
        if not file.size_bytes:
            continue  # Spark never opens it
        if not wanted and "/" in file.path:
            return f"it skips files in directories that are not partitions, such as {file.path}"
        if _folded(parse_partition_path(file.path)) != wanted:
            return f"{_OTHERWISE}, such as {file.path}"
    return ""


def unlike(frame: DataFrame, partition_by: Sequence[str], files: Callable[[], Iterable[VisibleFile]]) -> str:
    """Return the reason why Spark's scan does not read all files that Spark listed; empty if it does.

    Costs a few calls to the JVM, however many files there are, because the file names stay in the JVM.

    Args:
        frame: a DataFrame from Spark's reader.
        partition_by: the partition columns.
        files: lists the destination; only called if the counts differ, to check whether empty files explain the
            difference.
    """
    plan = frame._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return "the session reads files through another Spark source (spark.sql.sources.useV1SourceList)"
    index = plan.relation().location()
    if index.getClass().getSimpleName() != "InMemoryFileIndex":
        return ""  # the log of Spark's own stream determines the files
    listed = index.leafFiles().size()
    if not listed:
        return ""
    partitions = index.partitionSpec()
    if _folded(partitions.partitionColumns().fieldNames()) != _folded(partition_by):
        return _OTHERWISE
    if partition_by:
        # Spark reads all files if every directory with files is a partition, and each partition is one directory.
        whole = partitions.partitions().size() == index.leafDirToChildrenFiles().size()
    else:
        whole = index.allFiles().size() == listed
    return "" if whole else misplaced(files(), partition_by)


def _folded(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]
