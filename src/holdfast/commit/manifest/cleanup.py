"""How `manifest` removes what it kept of a job (paper 002, "Job Abort/cleanup"; Hadoop's CleanupJobStage)."""

from __future__ import annotations

import logging

from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId
from holdfast.commit.manifest.layout import job_dir, job_mark, tasks_dir
from holdfast.commit.moves import delete_dir, list_children
from holdfast.commit.records import JobRecord
from holdfast.errors import HoldfastError

__all__ = ["clean_up", "remove_job_dir"]

_log = logging.getLogger(__name__)


def clean_up(ctx: CommitContext, job: JobRecord, *, over: bool) -> str:
    """Remove the job's directory, the way the options say (scenario 62).

    C7: only this job's directory; ``_temporary`` has no existence of its own in a store, and goes with the last file.

    Args:
        over: the job is committed. Its record goes before anything else, also where clean-up is skipped: without it
            nobody takes the job for one that may still have to be ended.

    Returns:
        Why something is left although it should not be; empty if nothing is.

    Raises:
        HoldfastError: it could not be removed, and `cleanup_failures_ignored` is off.

    Crash: part of the directory is left; run it again.
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
        return f"the directory {job_dir(job.job)} of the job could not be removed: run holdfast recover ({error})"
    return ""


def _remove(ctx: CommitContext, job: JobRecord) -> None:
    options = ctx.settings.hadoop
    if options.cleanup_base_first:
        try:
            return remove_job_dir(ctx, job.job)
        except HoldfastError as error:
            _log.info("%s is not removed in one go: %s", job_dir(job.job), error)
    if options.cleanup_parallel_delete:
        _remove_attempts(ctx, job)
    return remove_job_dir(ctx, job.job)


def remove_job_dir(ctx: CommitContext, job: JobId) -> None:
    """Remove all that is kept of a job; again is harmless."""
    delete_dir(ctx, job_dir(job))


def _remove_attempts(ctx: CommitContext, job: JobRecord) -> None:
    """Attempts' directories side by side. Trouble does not matter: the job's directory is removed next."""
    directory = tasks_dir(job)
    try:
        attempts = [f"{directory}/{name}" for name, is_directory in list_children(ctx, directory) if is_directory]
        for _done in ctx.runner.map(lambda path: delete_dir(ctx, path), attempts):
            pass
    except HoldfastError as error:
        _log.info("attempts below %s are not removed side by side: %s", directory, error)
