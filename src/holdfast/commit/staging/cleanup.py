"""How a `staging-*` job ends, in every way: its uploads, its directory that all machines share, its files here.

Source: paper 000, VI.1 (cleanupJob, abortJob) and XIV.C; paper 001, "Explicit Job Abort" and "Job complete/abort".
"""

from __future__ import annotations

import logging

from holdfast.commit.ids import JobId
from holdfast.commit.measure import Measure
from holdfast.commit.moves import delete_dir
from holdfast.commit.pending_sets.completion import abort_sets
from holdfast.commit.records import JobRecord
from holdfast.commit.staging.layout import (
    list_pendingsets,
    load_pendingset,
    scratch_context,
    scratch_dir,
    staging_context,
)
from holdfast.errors import HoldfastError
from holdfast.stores.base import iter_uploads, multipart

__all__ = ["clean_up"]

_ROUNDS = 3
_log = logging.getLogger(__name__)


def clean_up(measure: Measure, job: JobRecord, *, with_sets: bool = True) -> str:
    """Abort what the job still has pending, then delete its records and its files. Again is harmless (C10).

    The job's uploads are those that its pending sets name and those whose file names hold it; with the setting
    ``abort_pending_uploads`` all below the destination, as Hadoop does it by default, other jobs' too (XIV.C.1). Files
    on other machines stay there: the paper's clean-up does not reach them either.

    Args:
        with_sets: whether what tasks have committed is aborted, too; after a job commit there is nothing to abort.

    Returns:
        Why something is left, in a sentence; empty if nothing is. Errors are not raised: abort must not hide the error
        that led to it, and a job that is committed stays so (paper 000, XI).

    Crash: some uploads are gone, or some records; run it again. The job's own record goes last.
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
    """What no pending set names: of attempts that died, or failed and could not abort."""
    ctx = measure.ctx
    store = multipart(ctx.store)
    # A part that was on its way while its upload was aborted can leave the upload alive: look again, a few times.
    for _ in range(_ROUNDS):
        waiting = [
            upload
            for upload in iter_uploads(store, ctx.prefix)
            if ctx.settings.hadoop.abort_pending_uploads or job in upload.key.rpartition("/")[2]
        ]
        if not waiting:
            return
        for _done in ctx.runner.map(lambda upload: store.abort_upload(upload.key, upload.upload_id), waiting):
            measure.recorder.count("committer_commits_aborted")
