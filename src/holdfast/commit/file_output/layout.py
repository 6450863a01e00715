"""Where FileOutputCommitter keeps its work, and what both of its algorithms do there in a task.

    _temporary/<job attempt>/_temporary/<attempt>/<path>     while the attempt writes
    _temporary/<job attempt>/<task>/<path>                   committed by the task; only in v1
    _temporary/0/job_<job>.<committer>.json                  from the start to the end of the job

The last is ours: Hadoop makes the job attempt's directory, and stores have none. It goes right after ``_SUCCESS``;
without it a job is over, and whatever attempts of it still write, recovery never takes its files for a dead job's.

Source: paper 000, III.B; paper 001, "Hadoop MR Commit algorithm 1".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from holdfast.commit.attempt_names import attempt_name, task_name
from holdfast.commit.codec import encode_job
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import FileOwner, JobId, is_job_id
from holdfast.commit.job_ends import start_over
from holdfast.commit.measure import Measure
from holdfast.commit.moves import delete_dir, is_dir, open_whole_file
from holdfast.commit.records import JobOutcome, JobRecord, SaveMode
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.task import TaskScope
from holdfast.errors import HoldfastError, NotFoundError

__all__ = [
    "TEMPORARY",
    "abort_attempt",
    "attempt_dir",
    "clean_up",
    "committed_dir",
    "job_attempt_dir",
    "job_record",
    "open_attempt_file",
    "recorded_job",
    "require_attempt",
    "start_file_job",
]

TEMPORARY = "_temporary"
_RECORD = re.compile(rf"{TEMPORARY}/0/job_([0-9a-f-]+)\.([a-z0-9-]+)\.json")


def job_record(job: JobRecord) -> str:
    """What a job says of itself while it is not over; written once, by the first attempt at it."""
    return f"{job_attempt_dir(0)}/job_{job.job}.{job.committer}.json"


def recorded_job(path: str) -> tuple[JobId, str] | None:
    """The job whose record lies at `path`, and its committer; or None."""
    match = _RECORD.fullmatch(path)
    return (JobId(match[1]), match[2]) if match is not None and is_job_id(match[1]) else None


def start_file_job(
    ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]
) -> JobRecord | None:
    """As `start_over`, and the job's record is there before its first task.

    Crash: at most the record; `holdfast recover` removes it.
    """
    job = start_over(ctx, committer, mode, details)
    if job is not None:
        ctx.store.put(ctx.key(job_record(job)), encode_job(job))
    return job


def job_attempt_dir(job_attempt: int) -> str:
    """Where an attempt at a job works. It does not name the job: one job at a time writes to a destination."""
    return f"{TEMPORARY}/{job_attempt}"


def attempt_dir(job: JobRecord, owner: FileOwner) -> str:
    """Where a task attempt writes."""
    return f"{job_attempt_dir(job.job_attempt)}/{TEMPORARY}/{attempt_name(owner)}"


def committed_dir(job: JobRecord, task: int) -> str:
    """Where v1 puts what a task committed."""
    return f"{job_attempt_dir(job.job_attempt)}/{task_name(job.job, task)}"


def open_attempt_file(scope: TaskScope, path: str) -> UploadSink | RenameSink:
    """A file in the attempt's directory."""
    return open_whole_file(scope, f"{attempt_dir(scope.job, scope.owner)}/{path}", path)


def require_attempt(ctx: CommitContext, job: JobRecord, owner: FileOwner, written: int) -> bool:
    """Whether the attempt has anything to commit (``needsTaskCommit``).

    Args:
        written: how many files the attempt says that it wrote.

    Raises:
        NotFoundError: it wrote some and they are gone: the job ended, or another one cleaned up (scenario 6).
    """
    if is_dir(ctx, attempt_dir(job, owner)):
        return True
    if written:
        raise NotFoundError(
            "what the attempt wrote is gone, since a job ended in this destination: run the job again",
            url=ctx.url,
            job=job.job,
            task=owner.task,
        )
    return False


def abort_attempt(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """Delete the attempt's directory; nothing there is no error (scenarios 16 and 22)."""
    delete_dir(ctx, attempt_dir(job, owner))


def clean_up(measure: Measure, job: JobRecord, outcome: JobOutcome) -> JobOutcome:
    """Delete ``_temporary`` as a whole, with the work of every other job in this destination (C7 does not hold).

    The job has ended by now: trouble is part of the outcome, no error.
    """
    try:
        with measure.stage("job_stage_cleanup"):
            if outcome.committed:
                measure.ctx.store.delete(measure.ctx.key(job_record(job)))
            delete_dir(measure.ctx, TEMPORARY)
    except HoldfastError as error:
        reason = f"the job is over, but its working directory could not be deleted: {error}"
        return replace(outcome, finished=False, pending_reason=reason)
    return outcome
