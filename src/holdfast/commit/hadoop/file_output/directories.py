"""Name the working directories of FileOutputCommitter, merge them, and run what its two algorithms share.

    _temporary/<job attempt>/_temporary/<attempt>/<path>     while the attempt writes
    _temporary/<job attempt>/<task>/<path>                   committed by the task; v1 only
    _temporary/0/job_<job>.<committer>.json                  from the start to the end of the job

A *job attempt* is one start of the job's driver, numbered from 0. The last path, the job's record, is Holdfast's own.
It replaces the job attempt's directory that Hadoop creates, because object stores have no directories. The record is
deleted right after ``_SUCCESS`` is written. A job without a record is over: if its attempts still write, recovery does
not mistake their files for those of a dead job.

Sources: paper 000, III.B and III.C; paper 001, "Hadoop MR Commit algorithm 1", "`mergePaths` Algorithm" and "v2 commit
algorithm"."""

from __future__ import annotations

import re
from collections.abc import Mapping

from holdfast.commit.codec import encode_job
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import start_truncating_job
from holdfast.commit.hadoop.files import delete_dir, file_info, is_dir, list_children, move_dir, move_file
from holdfast.commit.ids import FileOwner, JobId, is_job_id, make_hadoop_attempt_id, make_hadoop_task_id
from holdfast.commit.records import JobOutcome, JobRecord, SaveMode
from holdfast.commit.sinks import RenameSink
from holdfast.commit.success_file import clean_up_after_job
from holdfast.commit.task import AttemptContext
from holdfast.errors import NotFoundError
from holdfast.stores.base import as_renaming

TEMPORARY = "_temporary"
_DIRECTORY = re.compile(
    rf"({TEMPORARY}/\d+/(?:task_(.+?)_[mr]_\d{{6,}}|{TEMPORARY}/attempt_(.+?)_[mr]_\d{{6,}}_[0-9a-f]+))/(.+)", re.DOTALL
)
_RECORD = re.compile(rf"{TEMPORARY}/0/job_([0-9a-f-]+)\.([a-z0-9-]+)\.json")


def parse_working_directory(path: str) -> tuple[str, str, str, bool] | None:
    """Parse the path of a file in the directory of a task or an attempt, of any job, also one of Hadoop's.

    Returns:
        The job in the directory's name, the directory, the path below it, and whether a task committed it; None for any
        other path.
    """
    match = _DIRECTORY.fullmatch(path)
    return None if match is None else (match[2] or match[3], match[1], match[4], match[2] is not None)


def job_record_path(job: JobRecord) -> str:
    """Return the path of a job's record.

    The first attempt at the job writes the record, once. It exists until the job is over.
    """
    return f"{job_attempt_dir(0)}/job_{job.job}.{job.committer}.json"


def parse_job_record_path(path: str) -> tuple[JobId, str] | None:
    """Parse the path of a job's record, and return the job and its committer; None for any other path."""
    match = _RECORD.fullmatch(path)
    return (JobId(match[1]), match[2]) if match is not None and is_job_id(match[1]) else None


def start_file_job(
    ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]
) -> JobRecord | None:
    """Create a job with `start_truncating_job`, and write the job's record before its first task.

    Crash: the record may exist; `holdfast recover` deletes it.
    """
    job = start_truncating_job(ctx, committer, mode, details)
    if job is not None:
        ctx.store.put(ctx.key(job_record_path(job)), encode_job(job))
    return job


def require_job_record(ctx: CommitContext, job: JobRecord) -> None:
    """Check, before the job commit, that the job's record is still where the job began.

    Raises:
        NotFoundError: the job or another one has ended here (C7 does not hold), or the destination was renamed or
            deleted, and files of committed tasks with it.
    """
    if file_info(ctx, job_record_path(job)) is None:
        raise NotFoundError(
            "the job's record does not exist, because the destination was renamed or deleted while the job ran, or a "
            "job ended in it: unless files of the job are visible, run it again",
            url=ctx.url,
            job=job.job,
        )


def job_attempt_dir(job_attempt: int) -> str:
    """Return the directory of a job attempt. It does not name the job: jobs must run one at a time."""
    return f"{TEMPORARY}/{job_attempt}"


def attempt_dir(job: JobRecord, owner: FileOwner) -> str:
    """Return the directory in which a task attempt writes."""
    return f"{job_attempt_dir(job.job_attempt)}/{TEMPORARY}/{make_hadoop_attempt_id(owner)}"


def committed_task_dir(job: JobRecord, task: int) -> str:
    """Return the directory to which v1 moves the output of a committed task."""
    return f"{job_attempt_dir(job.job_attempt)}/{make_hadoop_task_id(job.job, task)}"


def open_attempt_file(scope: AttemptContext, path: str) -> RenameSink:
    """Open a new file in the attempt's directory, for the target `path` relative to the destination."""
    source = f"{attempt_dir(scope.job, scope.owner)}/{path}"
    return RenameSink(as_renaming(scope.ctx.store), scope.ctx.key(source), source, path, background=scope.background)


def needs_task_commit(ctx: CommitContext, job: JobRecord, owner: FileOwner, written: int) -> bool:
    """Check whether the attempt has files to commit, like Hadoop's ``needsTaskCommit``.

    Args:
        written: how many files the attempt has written, according to its own count.

    Raises:
        NotFoundError: the attempt wrote files that no longer exist, because the job ended or another job cleaned up.
    """
    if is_dir(ctx, attempt_dir(job, owner)):
        return True
    if written:
        raise NotFoundError(
            "the files of the attempt do not exist, because a job ended in this destination: run the job again",
            url=ctx.url,
            job=job.job,
            task=owner.task,
        )
    return False


def abort_attempt(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """Delete the attempt's directory. Idempotent."""
    delete_dir(ctx, attempt_dir(job, owner))


def delete_temporary_directory(measure: Measure, job: JobRecord, outcome: JobOutcome) -> JobOutcome:
    """Clean up after a job and return its outcome: delete all of ``_temporary``, even other jobs' work (not C7)."""
    ctx = measure.ctx

    def delete_directory() -> None:
        if outcome.committed:
            ctx.store.delete(ctx.key(job_record_path(job)))
        delete_dir(ctx, TEMPORARY)

    return clean_up_after_job(measure, outcome, delete_directory)


def merge_paths_v1(ctx: CommitContext, source: str) -> None:
    """Move the content of the directory `source` to the destination; move a directory as a whole if its target is free.

    Requires: no other process writes in these directories.
    Guarantee: a file replaces the file or directory at its target; directories are merged, depth first.

    Raises:
        NotFoundError: another process moved or deleted `source`, or a part of it. Files that have already moved stay at
            their targets.

    Crash: some files and directories have moved, and no record says which: the merge cannot simply be repeated.
    """
    # The destination itself always exists: `source` is in it.
    for name, is_directory in _list_existing_directory(ctx, source):
        _merge_v1(ctx, f"{source}/{name}", is_directory, name)


def _list_existing_directory(ctx: CommitContext, source: str) -> list[tuple[str, bool]]:
    """List a directory that must exist; `list_children` would return an empty list for a deleted one."""
    found = list_children(ctx, source)
    if not found:
        raise NotFoundError(
            "a committed directory does not exist, because a late attempt is replacing it: run the job again",
            path=source,
        )
    return found


def _merge_v1(ctx: CommitContext, source: str, is_directory: bool, target: str) -> None:
    if not is_directory:
        _move_replacing(ctx, source, target)
    elif file_info(ctx, target) is not None:
        ctx.store.delete(ctx.key(target))
        move_dir(ctx, source, target)
    elif is_dir(ctx, target):
        for name, below in _list_existing_directory(ctx, source):
            _merge_v1(ctx, f"{source}/{name}", below, f"{target}/{name}")
    else:
        move_dir(ctx, source, target)


def merge_paths_v2(ctx: CommitContext, source: str) -> None:
    """Move the files below the directory `source` to the destination one by one; tasks can do so concurrently.

    Guarantee: a file replaces the file or directory at its target. Readers see each file as soon as it is moved.

    Crash: some files have moved. A second call moves the rest.
    """
    for name, is_directory in list_children(ctx, source):
        _merge_v2(ctx, f"{source}/{name}", is_directory, name)


def _merge_v2(ctx: CommitContext, source: str, is_directory: bool, target: str) -> None:
    if not is_directory:
        _move_replacing(ctx, source, target)
        return
    if file_info(ctx, target) is not None:
        ctx.store.delete(ctx.key(target))
    for name, below in list_children(ctx, source):
        _merge_v2(ctx, f"{source}/{name}", below, f"{target}/{name}")


def _move_replacing(ctx: CommitContext, source: str, target: str) -> None:
    if file_info(ctx, target) is not None:
        ctx.store.delete(ctx.key(target))
    elif is_dir(ctx, target):
        delete_dir(ctx, target, unfinished=False)
    move_file(ctx, source, target)
