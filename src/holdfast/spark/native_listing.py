"""What Spark's own listing of a destination has to agree with, or rows would be missing without an error.

One directory ``p=1`` makes Spark take everything for partitioned by ``p``; then it reads no file outside of such
directories, and in a directory without partitions none from the directories below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import DataFrame

from holdfast.commit import VisibleFile
from holdfast.table import first_with_rows
from holdfast.table.partition import parse_partition_path

__all__ = ["directory_columns", "misplaced", "unlike"]

_OTHERWISE = "a file lies in directories that are not the partitions of the others, and Spark would leave files out"


def directory_columns(files: Sequence[VisibleFile]) -> tuple[str, ...]:
    """The partition columns of a directory without a log: those of the first file that has bytes."""
    first = first_with_rows(files)
    return () if first is None else tuple(parse_partition_path(first.path))


def misplaced(files: Iterable[VisibleFile], partition_by: Sequence[str]) -> str:
    """Why Spark would leave out one of these files; empty if it reads all that have bytes."""
    wanted = _folded(partition_by)
    for file in files:
        if not file.size_bytes:
            continue  # Spark never opens it
        if not wanted and "/" in file.path:
            return f"it leaves out files in directories that are no partitions, such as {file.path}"
        if _folded(parse_partition_path(file.path)) != wanted:
            return f"{_OTHERWISE}, such as {file.path}"
    return ""


def unlike(frame: DataFrame, partition_by: Sequence[str], files: Callable[[], Iterable[VisibleFile]]) -> str:
    """Why Spark's scan does not read all files that Spark listed; empty if it does.

    Costs a few questions to the JVM however many files there are, which stay there.

    Args:
        frame: as Spark's reader loaded it.
        partition_by: the columns that directories hold.
        files: the destination's, listed anew; only asked where the numbers differ, maybe by empty files.
    """
    plan = frame._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return "the session gives files to another source of Spark's (spark.sql.sources.useV1SourceList)"
    index = plan.relation().location()
    if index.getClass().getSimpleName() != "InMemoryFileIndex":
        return ""  # the log of Spark's own stream says which files count
    listed = index.leafFiles().size()
    if not listed:
        return ""
    partitions = index.partitionSpec()
    if _folded(partitions.partitionColumns().fieldNames()) != _folded(partition_by):
        return _OTHERWISE
    if partition_by:
        # Every directory with files is a partition, and a partition is one directory.
        whole = partitions.partitions().size() == index.leafDirToChildrenFiles().size()
    else:
        whole = index.allFiles().size() == listed
    return "" if whole else misplaced(files(), partition_by)


def _folded(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]
