"""What dead jobs of ``file-v1`` and ``file-v2`` left, found by their records and the ids in their directories' names.

A job whose record is gone is over: what attempts of it wrote since is debris, and its visible files stay. A job with a
record goes back, as far as its files can be told by their names: going forward is never provably right, because a late
attempt may have replaced a committed directory (v1) or its files (v2), and a job commit that died in its merge left no
note of how far it came. Only v1's is known to be through, once nothing committed is left to merge.

Source: paper 001, "Job Recovery" and "v2 Job Recovery"; the clean-up of single jobs is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.attempt_names import attempt_owner, file_job, task_number
from holdfast.commit.committer import Action, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.file_output.layout import TEMPORARY, recorded_job
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.job_ends import delete_visible, succeeded
from holdfast.commit.moves import delete_dir
from holdfast.errors import ConflictError
from holdfast.stores.base import iter_objects, iter_uploads, multipart

__all__ = ["find_file_jobs"]


@dataclass(slots=True)
class _FileJob:
    """What lies below ``_temporary`` of one job.

    Attributes:
        committer: as its record says; empty without a record: the job is over.
        records: paths of its records.
        directories: of its tasks and attempts, relative to the destination.
        committed: the directories among them that a task committed.
        chosen: whether a file has a name that does not tell the job.
    """

    committer: str = ""
    records: list[str] = field(default_factory=list)
    active_at_s: float = 0.0
    directories: set[str] = field(default_factory=set)
    committed: set[str] = field(default_factory=set)
    chosen: bool = False
    uploads: int = 0


def find_file_jobs(ctx: CommitContext, *, committer: str) -> Iterator[Leftover]:
    """Jobs that have something below ``_temporary``, dead or alive.

    Args:
        committer: ``file-v1``, with the debris of all jobs that are over, or ``file-v2``.
    """
    jobs = {job: found for job, found in _scan(ctx).items() if (found.committer or "file-v1") == committer}
    if not jobs:
        return
    visible = dict.fromkeys(jobs, 0)
    for path, _info in layout.iter_visible(ctx.store, ctx.prefix):
        if (job := file_job(path)) in visible:
            visible[job] += 1
    for job, found in sorted(jobs.items()):
        action, reason = _judge(found, visible[job], is_success=succeeded(ctx, job))
        yield Leftover(
            committer=committer,
            job=job,
            active_at_s=found.active_at_s,
            action=action,
            reason=reason,
            finish=_finish(ctx, job, found, action),
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
            found.chosen = found.chosen or file_job(info.key) is None
    if ctx.store.capabilities.multipart is not None:
        for upload in iter_uploads(multipart(ctx.store), prefix):
            if (found := _note(ctx, jobs, upload.key, upload.initiated_at_s)) is not None:
                found.uploads += 1
    return jobs


def _note(ctx: CommitContext, jobs: dict[JobId, _FileJob], key: str, at_s: float) -> _FileJob | None:
    """Put down what lies at `key` for its job; None if it is nobody's that we know."""
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


def _judge(found: _FileJob, visible: int, *, is_success: bool) -> tuple[Action, str]:
    if not found.committer:
        return Action.CLEAN, "the job is over, attempts of it wrote on"
    if is_success:
        return Action.CLEAN, "_SUCCESS names the job, only its working directory is left"
    tasks = "no task has committed a directory, as none does in file-v2"
    if found.committed:
        tasks = f"{len(found.committed)} committed tasks could be taken over by a second attempt at the job"
    if found.chosen:
        return Action.KEEP, (
            f"its files have names that do not tell the job, so nobody knows which of them are visible already; {tasks}"
        )
    if visible and found.committer == "file-v1" and not found.committed:
        return Action.CLEAN, f"all that its tasks committed is visible, {visible} files; it died before its _SUCCESS"
    if visible:
        return Action.BACK, (
            f"{visible} of its files are visible without _SUCCESS, and a late attempt may have replaced what is left"
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
        # C7: its own directories; the committers themselves delete all of _temporary. The records go last: until then
        # the job is not over, and whoever finds a part of it decides as this call has.
        for directory in sorted(found.directories):
            delete_dir(ctx, directory)
        for record in found.records:
            ctx.store.delete(ctx.key(record))

    return finish


def _is_still(ctx: CommitContext, job: JobId, found: _FileJob, expected: Action) -> bool:
    """Whether what was decided is still right and to be done: between looking and acting the job may have gone on.

    Raises:
        ConflictError: it has.
    """
    again = next((one for one in find_file_jobs(ctx, committer=found.committer) if one.job == job), None)
    if again is not None and again.action is not expected:
        raise ConflictError("the job has gone on: look again", job=job, found=again.reason)
    return again is not None
