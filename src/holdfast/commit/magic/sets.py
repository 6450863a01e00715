"""List and load the pending sets of a `magic` job, and clean up after the job.

Source: paper 000, VI.A (job commit, abort, clean-up) and XIV.C; paper 001, "Job Commit".
"""

from __future__ import annotations

import logging

from holdfast.commit.context import CommitContext
from holdfast.commit.file_operations import delete_dir
from holdfast.commit.hadoop.magic_path import is_pendingset, magic_dir
from holdfast.commit.hadoop.pending import PendingSet, SinglePending, decode_pendingset
from holdfast.commit.hadoop_names import file_job
from holdfast.commit.ids import JobId
from holdfast.commit.magic.file import iter_pending_paths, load_pending
from holdfast.commit.magic.layout import attempts_dir, pendingset_start
from holdfast.commit.measure import Measure
from holdfast.commit.pending_sets.completion import Upload, abort_listed, bucket_name
from holdfast.errors import CorruptDataError, HoldfastError, NotFoundError
from holdfast.stores.base import Support, iter_objects

_log = logging.getLogger(__name__)


def find_pendingsets(ctx: CommitContext, job: JobId) -> dict[str, str]:
    """Return the etags of the job's pending sets by path relative to the destination, in the order of tasks."""
    found = iter_objects(ctx.store, ctx.key(pendingset_start(job)))
    return dict(sorted((info.key[len(ctx.prefix) :], info.etag) for info in found if is_pendingset(info.key)))


def list_pendingsets(ctx: CommitContext, job: JobId) -> list[str]:
    """Return the paths of the job's pending sets, relative to the destination, in the order of tasks."""
    return list(find_pendingsets(ctx, job))


def load_pendingset(measure: Measure, job: JobId, path: str, data: bytes | None = None) -> PendingSet:
    """Load and check one pending set.

    Args:
        data: the set's bytes, if the caller has them; None to read them from the store.

    Raises:
        CorruptDataError: the set cannot be parsed, or belongs to another job.
        NotFoundError: the set does not exist.
    """
    ctx = measure.ctx
    with measure.recorder.timed("op_load_manifest"):
        if data is None:
            data = ctx.store.get(ctx.key(path))
        return decode_pendingset(path, data, bucket=bucket_name(ctx.url), prefix=ctx.prefix, job_id=job)


def clean_up(measure: Measure, job: JobId, *, with_sets: bool) -> str:
    """Abort the job's pending uploads, then delete its magic directory. Idempotent (C10).

    The job's uploads are the uploads that its records name, and those whose file names carry its id. With the setting
    ``abort_pending_uploads``, which is Hadoop's default (XIV.C.1), all uploads below the destination are aborted,
    including other jobs'. An upload is not found if the caller chose its file name and its record was never written.

    Args:
        with_sets: whether to abort even the uploads that tasks have committed; False after a job commit, which has
            completed all of them.

    Returns:
        Why something is left, in one sentence; empty if nothing is. Errors are not raised: an abort must not hide the
        error that caused it, and a committed job stays committed (paper 000, XI).

    Crash: some uploads are aborted, or some records deleted; run it again.
    """
    ctx = measure.ctx
    try:
        _abort_uploads(measure, job, with_sets)
        delete_dir(ctx, magic_dir(job), unfinished=False)
    except HoldfastError as error:
        _log.warning("the clean-up of job %s in %s is incomplete (%s)", job, ctx.url, error)
        return f"clean-up is incomplete, run holdfast recover: {error.message}"
    return ""


def _abort_uploads(measure: Measure, job: JobId, with_sets: bool) -> None:
    """Abort the job's uploads, even those that the server's listing lacks (MinIO cannot list by directory)."""
    ctx = measure.ctx
    lists = ctx.store.capabilities.lists_uploads is Support.YES
    recorded: set[Upload] | None = None

    def select(pending: set[Upload]) -> set[Upload]:
        nonlocal recorded
        takes_all = ctx.settings.hadoop.abort_pending_uploads
        own = pending if takes_all else {upload for upload in pending if file_job(upload[0]) == job}
        if recorded is not None:
            return own | (recorded & pending)
        recorded = _recorded_uploads(measure, job, with_sets) if pending != own or not lists else set()
        return own | (recorded & pending if lists else recorded)

    abort_listed(measure, select)


def _recorded_uploads(measure: Measure, job: JobId, with_sets: bool) -> set[Upload]:
    """Return the uploads that the job's records name; skip unreadable records (paper 001, "Malicious …")."""
    ctx = measure.ctx

    def load(path: str) -> tuple[SinglePending, ...]:
        try:
            if is_pendingset(path):
                return load_pendingset(measure, job, path).commits
            return (load_pending(measure, job, path),)
        except (CorruptDataError, NotFoundError) as error:
            _log.warning("a record of job %s could not be loaded, so its uploads are not aborted (%s)", job, error)
            return ()

    paths = [*iter_pending_paths(ctx, attempts_dir(job)), *(list_pendingsets(ctx, job) if with_sets else ())]
    return {(one.key, one.upload_id) for found in ctx.runner.map(load, paths) for one in found}
