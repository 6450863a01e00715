"""Find dead `staging-*` jobs in the shared directory; `pending_sets.recovery` chooses the recovery action for each.

Without the shared directory, only a job's uploads can be found, by the job id in their names; recovery lists
them. A job without a record is over: the pending sets of its late attempts are deleted, and the uploads that these sets
name are aborted.

Source: paper 001, "Job Driver failure before Job Commit", "… during Job Commit".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from holdfast.commit.committer import Action, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId
from holdfast.commit.measure import Measure
from holdfast.commit.pending_sets.completion import abort_sets
from holdfast.commit.pending_sets.recovery import PendingSetAccess, pending_set_leftover
from holdfast.commit.records import JobRecord
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.staging.cleanup import clean_up
from holdfast.commit.staging.layout import (
    find_jobs,
    list_ended_jobs,
    list_pendingsets,
    list_saved_pendingsets,
    load_pendingset,
    shared_context,
)
from holdfast.errors import CorruptDataError, NotFoundError, UnavailableError
from holdfast.stores.base import iter_objects

_SETS = PendingSetAccess(
    names=list_pendingsets,
    load=lambda measure, job, name: load_pendingset(measure, job.job, name),
    clean_up=clean_up,
)


def has_records(ctx: CommitContext, job: JobId, folders: Sequence[str]) -> bool:
    """Check whether the shared directory contains data of the job."""
    if ctx.staging is None:
        return False
    shared = shared_context(ctx, job)
    return next(iter_objects(shared.store, shared.prefix, page_size=2), None) is not None


def staging_leftovers(ctx: CommitContext, *, committer: str) -> Iterator[Leftover]:
    """List the jobs of `committer` in the shared directory, including live jobs."""
    for destination, job, active_at_s in find_jobs(ctx):
        if job.committer != committer:
            continue
        found = pending_set_leftover(destination, job, active_at_s, _SETS)
        replaces = job.mode in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)
        if replaces and found.action is Action.BACK:
            # Paper 001: no record says how much was deleted before the first completion.
            found = replace(found, reason=f"{found.reason}; the data that it replaces may already be deleted")
        yield found
    for ended, active_at_s in list_ended_jobs(ctx):
        uploads = _late_uploads(ctx, ended)
        if uploads is not None:
            yield Leftover(
                committer=committer,
                job=ended,
                active_at_s=active_at_s,
                action=Action.CLEAN,
                reason="the job is over, but attempts continued to write",
                recover=partial(_clean_up_ended, ctx, ended, committer),
                uploads=uploads,
            )


def _late_uploads(ctx: CommitContext, job: JobId) -> int | None:
    """Return the number of uploads that the job's pending sets name; None if no set is for this destination."""
    measure = Measure(ctx)
    count = None
    for path in list_saved_pendingsets(ctx, job):
        try:
            count = (count or 0) + len(load_pendingset(measure, job, path).commits)
        except (CorruptDataError, NotFoundError):
            continue  # it belongs to another destination, or is unreadable
    return count


def _clean_up_ended(ctx: CommitContext, job: JobId, committer: str) -> None:
    """Clean up after a job without a record. Idempotent (C10).

    Raises:
        UnavailableError: some uploads or files could not be removed; run it again.
    """
    measure = Measure(ctx)
    abort_sets(measure, list_saved_pendingsets(ctx, job), lambda path: load_pendingset(measure, job, path))
    record = JobRecord(job=job, committer=committer, mode=SaveMode.APPEND, started_at_s=0.0)  # the mode is not used
    left = clean_up(measure, record)
    if left:
        raise UnavailableError("clean-up is incomplete: run holdfast recover again", job=job, left=left)
