"""Find dead jobs of ``file-v1`` and ``file-v2`` by their records and the ids in directory names, and recover them.

A job without a record is over: files that its attempts wrote after its end are deleted, and its visible files stay. A
job with a record is rolled back, if its files have names that identify the job. Rolling forward is never provably
right: a late attempt may have replaced a committed directory (v1) or its files (v2), and a job commit that died during
its merge recorded no progress. The only jobs that are known to be complete are jobs of v1 with visible files and no
committed directory left to merge.

Source: paper 001, "Job Recovery" and "v2 Job Recovery"; cleaning up one job at a time is Holdfast's own addition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.committer import Action, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.file_operations import delete_dir, delete_visible
from holdfast.commit.file_output.layout import TEMPORARY, recorded_job
from holdfast.commit.hadoop_names import attempt_owner, file_job, task_number
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.job_success import has_succeeded
from holdfast.errors import ConflictError
from holdfast.stores.base import iter_objects, iter_uploads, multipart


@dataclass(slots=True)
class _FileJob:
    """A job's records, directories and uploads below ``_temporary``.

    Attributes:
        committer: the committer that the record names; empty if there is no record, which means that the job is over.
        records: paths of the job's records.
        directories: the directories of the job's tasks and attempts, relative to the destination.
        committed: those of `directories` that a task committed.
        unattributed: whether the name of any of the job's files lacks the job's id.
    """

    committer: str = ""
    records: list[str] = field(default_factory=list)
    active_at_s: float = 0.0
    directories: set[str] = field(default_factory=set)
    committed: set[str] = field(default_factory=set)
    unattributed: bool = False
    uploads: int = 0


def file_leftovers(ctx: CommitContext, *, committer: str) -> Iterator[Leftover]:
    """List the jobs that have data below ``_temporary``, including live jobs.

    Args:
        committer: ``file-v1`` or ``file-v2``. For ``file-v1``, jobs of either committer that are over are listed as
            well.
    """
    jobs = {job: found for job, found in _scan(ctx).items() if (found.committer or "file-v1") == committer}
    if not jobs:
        return
    visible = dict.fromkeys(jobs, 0)
    for path, _info in layout.iter_visible(ctx.store, ctx.prefix):
        if (job := file_job(path)) in visible:
            visible[job] += 1
    for job, found in sorted(jobs.items()):
        action, reason = _decide(found, visible[job], is_success=has_succeeded(ctx, job))
        yield Leftover(
            committer=committer,
            job=job,
            active_at_s=found.active_at_s,
            action=action,
            reason=reason,
            recover=_finish(ctx, job, found, action),
            files=visible[job],
            uploads=found.uploads,
        )


def _scan(ctx: CommitContext) -> dict[JobId, _FileJob]:
    jobs: dict[JobId, _FileJob] = {}
    prefix = ctx.key(f"{TEMPORARY}/")
    for info in iter_objects(ctx.store, prefix):
        if (record := recorded_job(path := info.key[len(ctx.prefix) :])) is not None:
            of_record = jobs.setdefault(record[0], _FileJob())
            of_record.committer = record[1]
            of_record.records.append(path)
            of_record.active_at_s = max(of_record.active_at_s, info.modified_at_s)
        elif (found := _note(ctx, jobs, info.key, info.modified_at_s)) is not None:
            found.unattributed = found.unattributed or file_job(info.key) is None
    if ctx.store.capabilities.multipart is not None:
        for upload in iter_uploads(multipart(ctx.store), prefix):
            if (found := _note(ctx, jobs, upload.key, upload.initiated_at_s)) is not None:
                found.uploads += 1
    return jobs


def _note(ctx: CommitContext, jobs: dict[JobId, _FileJob], key: str, at_s: float) -> _FileJob | None:
    """Add the object or upload at `key` to its job, and return the job; None if `key` names no job."""
    segments = key[len(ctx.prefix) :].split("/")
    if len(segments) < 4 or not segments[1].isdigit():
        return None
    is_committed = segments[2] != TEMPORARY
    depth = 3 if is_committed else 4
    job = _task_job(segments[2]) if is_committed else _attempt_job(segments[3])
    if job is None:
        return None
    found = jobs.setdefault(job, _FileJob())
    directory = "/".join(segments[:depth])
    found.directories.add(directory)
    if is_committed:
        found.committed.add(directory)
    found.active_at_s = max(found.active_at_s, at_s)
    return found


def _task_job(name: str) -> JobId | None:
    job = JobId(name.removeprefix("task_").partition("_")[0])
    return job if is_job_id(job) and task_number(job, name) is not None else None


def _attempt_job(name: str) -> JobId | None:
    owner = attempt_owner(name)
    return None if owner is None else owner.job


def _decide(found: _FileJob, visible: int, *, is_success: bool) -> tuple[Action, str]:
    if not found.committer:
        return Action.CLEAN, "the job is over, but attempts continued to write"
    if is_success:
        return Action.CLEAN, "_SUCCESS names the job, so it is committed; only its working directory is left"
    tasks = "no task has committed a directory, as none does in file-v2"
    if found.committed:
        tasks = f"a second attempt at the job could recover its {len(found.committed)} committed tasks"
    if found.unattributed:
        return Action.KEEP, (
            f"the names of its files do not carry its id, so it is unknown which of them are visible; {tasks}"
        )
    if visible and found.committer == "file-v1" and not found.committed:
        return Action.CLEAN, (
            f"all files that its tasks committed are visible ({visible}); it died before it wrote _SUCCESS"
        )
    if visible:
        return Action.BACK, (
            f"{visible} of its files are visible without _SUCCESS, and a late attempt may have replaced the others"
        )
    return Action.BACK, f"none of its files is visible; {tasks}"


def _finish(ctx: CommitContext, job: JobId, found: _FileJob, action: Action) -> Callable[[], None]:
    def finish() -> None:
        if action is Action.KEEP:
            return
        if action is Action.BACK:
            if not _is_still(ctx, job, found, action):
                return
            delete_visible(ctx, lambda path: file_job(path) == job)
        # C7: delete only this job's directories, although the committers themselves delete all of _temporary. Records
        # are deleted last: until then the job counts as unfinished, and the next run comes to the same decision.
        for directory in sorted(found.directories):
            delete_dir(ctx, directory)
        for record in found.records:
            ctx.store.delete(ctx.key(record))

    return finish


def _is_still(ctx: CommitContext, job: JobId, found: _FileJob, expected: Action) -> bool:
    """Check whether the job still needs the recovery action `expected`: it may have made progress in the meantime."""
    again = next((one for one in file_leftovers(ctx, committer=found.committer) if one.job == job), None)
    if again is not None and again.action is not expected:
        raise ConflictError("the job has made progress: run recover again", job=job, found=again.reason)
    return again is not None
