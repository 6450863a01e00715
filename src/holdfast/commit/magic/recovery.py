"""Find dead `magic` jobs; `pending_sets.recovery` chooses the recovery action for each.

Source: paper 001, "Job Driver failure during Job Commit" and "Cleaning up after complete job failure".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.commit.committer import Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.magic_path import MAGIC_JOB_PREFIX
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.magic.sets import clean_up, list_pendingsets, load_pendingset
from holdfast.commit.pending_sets.recovery import PendingSetAccess, pending_set_leftover
from holdfast.commit.records import JobRecord
from holdfast.commit.save_mode import SaveMode
from holdfast.errors import AccessDeniedError
from holdfast.stores.base import iter_objects

_SETS = PendingSetAccess(
    names=lambda ctx, job: list_pendingsets(ctx, job.job),
    load=lambda measure, job, name: load_pendingset(measure, job.job, name),
    clean_up=lambda measure, job: clean_up(measure, job.job, with_sets=True),
)


def magic_jobs(ctx: CommitContext) -> dict[JobId, float]:
    """Return the jobs that have a magic directory at the destination, with the time of the last write there."""
    jobs: dict[JobId, float] = {}
    start = ctx.key(MAGIC_JOB_PREFIX)
    for info in iter_objects(ctx.store, start):
        name = info.key[len(start) :].partition("/")[0]
        if is_job_id(name):
            jobs[JobId(name)] = max(jobs.get(JobId(name), 0.0), info.modified_at_s)
    return dict(sorted(jobs.items()))


def has_records(ctx: CommitContext, job: JobId, folders: Sequence[str]) -> bool:
    """Check whether one of these folders contains the job's magic directory; it may be another destination's (C7)."""

    def is_home(folder: str) -> bool:
        try:
            return next(iter_objects(ctx.store, f"{folder}{MAGIC_JOB_PREFIX}{job}/", page_size=2), None) is not None
        except AccessDeniedError:
            if folder.startswith(ctx.prefix):
                raise
            return False  # the credentials cover only this destination; see `holdfast.commit.two_phase.live_jobs`

    return any(is_home(folder) for folder in folders)


def magic_leftovers(ctx: CommitContext) -> Iterator[Leftover]:
    """List the leftover data of every job with a magic directory, including live jobs."""
    for job, active_at_s in magic_jobs(ctx).items():
        yield pending_set_leftover(ctx, _job_record(job), active_at_s, _SETS)


def _job_record(job: JobId) -> JobRecord:
    """Return a substitute for the job's record, which `magic` does not store. Its save mode is not used."""
    return JobRecord(job=job, committer="magic", mode=SaveMode.APPEND, started_at_s=0.0)
