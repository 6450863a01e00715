"""Delete a `manifest` job's directory (paper 002, "Job Abort/cleanup"; Hadoop's CleanupJobStage)."""

from __future__ import annotations

import logging

from holdfast.commit.context import CommitContext
from holdfast.commit.file_operations import delete_dir, list_children
from holdfast.commit.ids import JobId
from holdfast.commit.manifest.layout import job_dir, job_mark, tasks_dir
from holdfast.commit.records import JobRecord
from holdfast.errors import HoldfastError

_log = logging.getLogger(__name__)


def clean_up(ctx: CommitContext, job: JobRecord, *, over: bool) -> str:
    """Delete the job's directory, as the ``cleanup_*`` settings specify (scenario 62).

    C7: only this job's directory is deleted. ``_temporary`` is not an object: the directory disappears with the
    last file below it.

    Args:
        over: whether the job is committed. If so, its record is deleted first, even if clean-up is skipped, so that
            recovery does not consider the job unfinished.

    Returns:
        Why data was unexpectedly left behind; empty if none was.

    Raises:
        HoldfastError: the directory could not be deleted, and `cleanup_failures_ignored` is off.

    Crash: a part of the directory is left; run it again.
    """
    options = ctx.settings.hadoop
    try:
        if over:
            ctx.store.delete(ctx.key(job_mark(job)))
        if not options.cleanup_skipped:
            _remove(ctx, job)
    except HoldfastError as error:
        if not options.cleanup_failures_ignored:
            raise
        return f"the job's directory {job_dir(job.job)} could not be deleted: run holdfast recover ({error})"
    return ""


def _remove(ctx: CommitContext, job: JobRecord) -> None:
    options = ctx.settings.hadoop
    if options.cleanup_base_first:
        try:
            return remove_job_dir(ctx, job.job)
        except HoldfastError as error:
            _log.info("%s could not be deleted in one step: %s", job_dir(job.job), error)
    if options.cleanup_parallel_delete:
        _remove_attempts(ctx, job)
    return remove_job_dir(ctx, job.job)


def remove_job_dir(ctx: CommitContext, job: JobId) -> None:
    """Delete everything that is stored for a job. Idempotent."""
    delete_dir(ctx, job_dir(job))


def _remove_attempts(ctx: CommitContext, job: JobRecord) -> None:
    """Delete the attempts' directories in parallel. Only log errors, because the job's directory is deleted next."""
    directory = tasks_dir(job)
    try:
        attempts = [f"{directory}/{name}" for name, is_directory in list_children(ctx, directory) if is_directory]
        for _done in ctx.runner.map(lambda path: delete_dir(ctx, path), attempts):
            pass
    except HoldfastError as error:
        _log.info("attempts below %s could not be deleted in parallel: %s", directory, error)
