"""Resolve conflicts of `staging-*` with existing data in the destination, at the moments that the papers specify.

    staging-directory      fail: at job start, and again before the first completion; overwrite: before the first
                           completion, the whole directory
    staging-partitioned    fail: in the commit of a task that writes to a partition with data; overwrite: before the
                           first completion, the partitions that the job has written to and all below them
    append                 never checks

A partition is a directory that contains a file of the job. Files at the top level are in no partition, so
`staging-partitioned` accepts them only in mode append: Hadoop's committer would miss such files, or would replace the
whole destination because of them.

Source: paper 000, VI.2; paper 001, "Conflict Resolution".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import delete_visible_files, has_output, is_job_to_be_skipped
from holdfast.commit.hadoop.pending import PendingSet
from holdfast.commit.records import FileEntry, JobRecord, SaveMode
from holdfast.errors import DestinationExistsError, InvalidRequestError

LoadSet = Callable[[str], PendingSet]
"""Loads one of the job's pending sets by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictPolicy:
    """The rules for when a committer checks its destination for existing data, and which data it replaces.

    Attributes:
        at_setup: whether `setup_job` already refuses (``fail``) or skips (``ignore``) a destination that contains data.
        check_task: called with the files of an attempt before it uploads them.
        resolve: called before the first completion, with the names of the job's pending sets. Checks again, or deletes
            the data that the job replaces.
    """

    at_setup: bool
    check_task: Callable[[CommitContext, JobRecord, Sequence[FileEntry]], None]
    resolve: Callable[[Measure, JobRecord, Sequence[str], LoadSet], None]


def _list_partitions(paths: Iterable[str]) -> set[str]:
    """Return the directories that contain `paths`.

    Raises:
        InvalidRequestError: a path is at the top level.
    """
    found = set[str]()
    for path in paths:
        partition = path.rpartition("/")[0]
        if not partition:
            raise InvalidRequestError(
                "a file at the top level of the destination is in no partition: partition the data, append, or write "
                "with staging-directory",
                path=path,
            )
        found.add(partition)
    return found


def _partition_context(ctx: CommitContext, partition: str) -> CommitContext:
    return replace(ctx, prefix=ctx.key(f"{partition}/"), url=f"{ctx.url.rstrip('/')}/{partition}")


def _refuse_partitions_with_data(ctx: CommitContext, partitions: Iterable[str]) -> None:
    """Raise an error if a file exists in any of the partitions or below them.

    Raises:
        DestinationExistsError: a file exists; the error names its partition.
    """
    for partition in sorted(partitions):
        if has_output(_partition_context(ctx, partition)):
            raise DestinationExistsError(
                "the partition already contains data: choose mode append or overwrite-partitions",
                url=ctx.url,
                partition=partition,
            )


def _delete_partitions(ctx: CommitContext, partitions: Iterable[str]) -> None:
    """Delete the visible files in the partitions and below them, but not in their siblings or parents.

    Crash: some files are deleted, and their replacement is not visible yet (C9 does not hold).

    Raises:
        HoldfastError: some files could not be deleted.
    """

    def delete_partition(partition: str) -> int:
        return delete_visible_files(_partition_context(ctx, partition))

    found = sorted(partitions)
    for done, _deleted in enumerate(ctx.runner.map(delete_partition, found), start=1):
        ctx.progress("partitions", done, len(found))


# --- policies ---------------------------------------------------------------------------------------------------------
def _accept_every_task(ctx: CommitContext, job: JobRecord, files: Sequence[FileEntry]) -> None:
    """Accept every task, because the driver checks the whole directory."""


def _resolve_directory_conflict(measure: Measure, job: JobRecord, names: Sequence[str], load: LoadSet) -> None:
    """Refuse existing data (mode ``fail``, scenario 40), or delete all of it (mode ``overwrite``)."""
    if job.mode is SaveMode.FAIL:
        is_job_to_be_skipped(measure.ctx, SaveMode.FAIL)  # raises the error
    if job.mode is SaveMode.OVERWRITE:
        delete_visible_files(measure.ctx)


def _check_partitions(ctx: CommitContext, job: JobRecord, files: Sequence[FileEntry]) -> None:
    """Refuse files outside of partitions and, in mode ``fail``, partitions that contain data."""
    if job.mode is not SaveMode.APPEND:
        partitions = _list_partitions(file.path for file in files)
        if job.mode is SaveMode.FAIL:
            _refuse_partitions_with_data(ctx, partitions)


def _delete_replaced_partitions(measure: Measure, job: JobRecord, names: Sequence[str], load: LoadSet) -> None:
    """Delete all partitions that the job's pending sets name, in one pass over the sets."""
    if job.mode is not SaveMode.OVERWRITE_PARTITIONS:
        return
    ctx = measure.ctx
    partitions = set[str]()
    for found in ctx.runner.map(load, names):
        partitions |= _list_partitions(pending.key.removeprefix(ctx.prefix) for pending in found.commits)
    _delete_partitions(ctx, partitions)


DIRECTORY_CONFLICTS = ConflictPolicy(at_setup=True, check_task=_accept_every_task, resolve=_resolve_directory_conflict)
PARTITION_CONFLICTS = ConflictPolicy(at_setup=False, check_task=_check_partitions, resolve=_delete_replaced_partitions)
