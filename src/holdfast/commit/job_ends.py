"""What the papers' committers have in common at a job's start and end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.destination import is_to_be_skipped, refuse_file, refuse_taken
from holdfast.commit.ids import FileOwner, JobId, new_job_id
from holdfast.commit.measure import Measure
from holdfast.commit.nesting import refuse_nested
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, JobReport, SaveMode, TaskCommit, Totals
from holdfast.commit.statistics import NO_STATISTICS, Statistics
from holdfast.commit.success_file import FILENAME_LIMIT, encode_report, read_success
from holdfast.commit.task_commits import totals_of
from holdfast.errors import CorruptDataError
from holdfast.stores.base import batched_keys

__all__ = [
    "delete_visible",
    "new_job",
    "report_task",
    "reported_totals",
    "start_over",
    "succeed",
    "succeeded",
]


def new_job(ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]) -> JobRecord | None:
    """A job with an id of its own, also if another starts in the same second (SPARK-33402, HADOOP-17318).

    The mode is looked at first: ``fail`` refuses a destination with data, ``ignore`` skips it. An old ``_SUCCESS``
    goes: it would speak of files that are about to change (scenario 73).

    Returns:
        None if there is nothing to do.

    Raises:
        DestinationExistsError: mode ``fail`` and the destination holds data.
        InvalidRequestError: the destination is a file, or lies inside another one or around one.
    """
    refuse_file(ctx)
    refuse_taken(ctx)
    if ctx.settings.check_nesting:
        refuse_nested(ctx, first=mode in _DELETING or not _was_written(ctx))
    if is_to_be_skipped(ctx, mode):
        return None
    ctx.store.delete(ctx.key(layout.SUCCESS))
    return JobRecord(
        job=new_job_id(ctx.clock, ctx.ids),
        committer=committer,
        mode=mode,
        started_at_s=round(ctx.clock.now_s(), 3),
        details=details,
    )


_DELETING = (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)
"""Modes that delete what they find: whatever the log and ``_SUCCESS`` say, nobody else's rows are to be among it."""


def _was_written(ctx: CommitContext) -> bool:
    """Whether a job of ours has ended here: then it has looked for destinations inside this one."""
    try:
        return bool(read_success(ctx))
    except CorruptDataError:
        return False


def start_over(ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]) -> JobRecord | None:
    """As `new_job`; mode ``overwrite`` empties the destination now, before any task runs, as Spark does.

    Crash: what was replaced is gone, and what replaces it is not there (C9 does not hold).
    """
    job = new_job(ctx, committer, mode, details)
    if job is not None and mode is SaveMode.OVERWRITE:
        delete_visible(ctx)
    return job


def delete_visible(ctx: CommitContext, in_scope: Callable[[str], bool] = lambda path: True) -> int:
    """Delete the visible files whose path `in_scope` accepts; returns how many.

    Raises:
        HoldfastError: some could not be deleted; those before are gone.
    """
    paths = (path for path, _info in layout.iter_visible(ctx.store, ctx.prefix) if in_scope(path))
    deleted = 0
    for batch in batched_keys([ctx.key(path) for path in paths]):
        ctx.store.delete_many(batch)
        deleted += len(batch)
    return deleted


def succeed(
    measure: Measure,
    job: JobRecord,
    *,
    totals: Totals,
    tasks: int,
    paths: Iterable[str],
    statistics: Statistics = NO_STATISTICS,
    save: Callable[[CommitContext, bytes], None] | None = None,
) -> JobOutcome:
    """The end of a job that went well: its report in ``_SUCCESS``, unless the user wants none.

    Args:
        tasks: how many were committed.
        paths: the job's files, relative to the destination; the first hundred are named.
        statistics: of the tasks.
        save: how the marker is saved; a plain put if None.
    """
    ctx = measure.ctx
    names: list[str] = []
    for path in paths:
        if len(names) == FILENAME_LIMIT:
            break
        names.append("/" + ctx.key(path).lstrip("/"))
    with measure.stage("job_stage_save_success_marker"):
        report = JobReport(
            job=job.job,
            committer=job.committer,
            mode=job.mode,
            at_s=round(ctx.clock.now_s(), 3),
            success=True,
            stage=measure.stage_name,
            totals=totals,
            tasks=tasks,
            filenames=tuple(names),
            metrics=measure.metrics(),
            diagnostics={f"holdfast.{name}": str(job.details[name]) for name in ("token",) if name in job.details},
            statistics=statistics + measure.statistics(),
        )
        if ctx.settings.hadoop.mark_successful_jobs:
            (save or _put_marker)(ctx, encode_report(report))
    return JobOutcome(job=job.job, committed=True, totals=totals, report=report)


def _put_marker(ctx: CommitContext, data: bytes) -> None:
    ctx.store.put(ctx.key(layout.SUCCESS), data)


def report_task(owner: FileOwner, files: tuple[FileEntry, ...]) -> TaskCommit:
    """What a task tells the driver. Only counts: the driver finds the files by itself."""
    return TaskCommit(job=owner.job, task=owner.task, attempt=owner.attempt, totals=totals_of(files))


def reported_totals(commits: Sequence[TaskCommit]) -> Totals:
    """What the tasks say that they wrote. For reports: nothing is decided by it."""
    totals = Totals()
    for commit in commits:
        totals += commit.totals
    return totals


def succeeded(ctx: CommitContext, job: JobId) -> bool:
    """Whether ``_SUCCESS`` is this job's: it is the last thing that a job writes before it cleans up."""
    try:
        report = read_success(ctx)
    except CorruptDataError:
        return False
    return report is not None and report.get("jobId") == job
