"""Clean up after a `staging-*` job: abort its uploads, delete its shared directory and its scratch files.

Source: paper 000, VI.1 (cleanupJob, abortJob) and XIV.C; paper 001, "Explicit Job Abort" and "Job complete/abort".
"""

from __future__ import annotations

import logging

from holdfast.commit.file_operations import delete_dir
from holdfast.commit.ids import JobId
from holdfast.commit.measure import Measure
from holdfast.commit.pending_sets.completion import Upload, abort_listed, abort_sets
from holdfast.commit.records import JobRecord
from holdfast.commit.staging.layout import (
    list_pendingsets,
    load_pendingset,
    scratch_context,
    scratch_dir,
    staging_context,
)
from holdfast.errors import HoldfastError

_log = logging.getLogger(__name__)


def clean_up(measure: Measure, job: JobRecord, *, with_sets: bool = True) -> str:
    """Abort the job's pending uploads, then delete its records and its scratch files. Idempotent (C10).

    The job's uploads are the uploads that its pending sets name, and those whose file names contain its id. With the
    setting ``abort_pending_uploads``, which is Hadoop's default (XIV.C.1), all uploads below the destination are
    aborted, including other jobs'. Scratch files on other machines are not deleted, neither here nor in the paper's
    clean-up.

    Args:
        with_sets: whether to abort even the uploads that tasks have committed; False after a job commit, which has
            completed all of them.

    Returns:
        Why something is left, in one sentence; empty if nothing is. Errors are not raised: an abort must not hide the
        error that caused it, and a committed job stays committed (paper 000, XI).

    Crash: some uploads are aborted, or some records deleted; run it again. The job's own record is deleted last.
    """
    ctx = measure.ctx
    try:
        with measure.stage("job_stage_cleanup"):
            if with_sets:
                abort_sets(measure, list_pendingsets(ctx, job), lambda name: load_pendingset(measure, job.job, name))
            _abort_uploads(measure, job.job)
            delete_dir(scratch_context(ctx), scratch_dir(job.job))
            delete_dir(staging_context(ctx), job.job)
    except HoldfastError as error:
        _log.warning("the clean-up of job %s in %s is incomplete (%s)", job.job, ctx.url, error)
        return f"clean-up is incomplete, run holdfast recover: {error.message}"
    return ""


def _abort_uploads(measure: Measure, job: JobId) -> None:
    """Abort the uploads that no pending set names: those of attempts that died, or failed without aborting them."""

    def select(pending: set[Upload]) -> set[Upload]:
        if measure.ctx.settings.hadoop.abort_pending_uploads:
            return pending
        return {upload for upload in pending if job in upload[0].rpartition("/")[2]}

    abort_listed(measure, select)
