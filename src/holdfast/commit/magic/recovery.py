"""What dead `magic` jobs left; `judge` says what may be done about each.

Source: paper 001, "Job Driver failure during Job Commit" and "Cleaning up after complete job failure".
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.commit.committer import Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.magic_path import MAGIC_JOB_PREFIX
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.magic.sets import clean_up, list_pendingsets, load_pendingset
from holdfast.commit.pending_sets.recovery import SetStore, judge_job
from holdfast.commit.records import JobRecord, SaveMode
from holdfast.stores.base import iter_objects

__all__ = ["magic_jobs", "magic_leftovers"]

_SETS = SetStore(
    names=lambda ctx, job: list_pendingsets(ctx, job.job),
    load=lambda measure, job, name: load_pendingset(measure, job.job, name),
    clean_up=lambda measure, job: clean_up(measure, job.job, with_sets=True),
)


def magic_jobs(ctx: CommitContext) -> dict[JobId, float]:
    """Jobs that have a magic directory at the destination, and when something was last written there."""
    jobs: dict[JobId, float] = {}
    start = ctx.key(MAGIC_JOB_PREFIX)
    for info in iter_objects(ctx.store, start):
        name = info.key[len(start) :].partition("/")[0]
        if is_job_id(name):
            jobs[JobId(name)] = max(jobs.get(JobId(name), 0.0), info.modified_at_s)
    return dict(sorted(jobs.items()))


def magic_leftovers(ctx: CommitContext) -> Iterator[Leftover]:
    """One for each job with a magic directory; live jobs are among them."""
    if ctx.store.capabilities.multipart is None:
        return
    for job, active_at_s in magic_jobs(ctx).items():
        yield judge_job(ctx, _job_record(job), active_at_s, _SETS)


def _job_record(job: JobId) -> JobRecord:
    """What the job's own record would say: nothing of it is stored, and all modes end alike."""
    return JobRecord(job=job, committer="magic", mode=SaveMode.APPEND, started_at_s=0.0)
