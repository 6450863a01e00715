"""Dead jobs of Hadoop's FileOutputCommitter, which is also Spark's own: found by ``_temporary``, ended on request.

    _temporary/<start>/task_<job>_m_000003/<path>                committed by a task; only in v1
    _temporary/<start>/_temporary/attempt_<job>_m_000003_0/<path>  an attempt that has not committed

Spark's file names hold a UUID of the write, which is how files are told that are visible already. v1's job commit moves
committed files one by one; v2 has none to move: its tasks show theirs at once. So

- committed files are left, and some of the write are visible: v1's job commit was under way. Moving the rest makes the
  job whole, deleting what is visible undoes it.
- committed files are left, none is visible: it had not begun. Nobody recorded how many tasks there were.
- none is left: v2, or v1 that was through or had no task committed. Nothing visible is ever deleted then.

Sources: paper 000, III.B and III.C; paper 001, "Hadoop MR Commit algorithm 1" and "2".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from holdfast.commit import layout
from holdfast.commit.committer import Action, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.file_output.layout import TEMPORARY
from holdfast.commit.file_output.merging import merge_paths_v1
from holdfast.commit.hadoop_jobs.marker import save_first_marker
from holdfast.commit.hadoop_jobs.values import HadoopLeftover, Resolution, ids_in
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.job_ends import delete_visible, succeed
from holdfast.commit.measure import Measure
from holdfast.commit.moves import delete_dir
from holdfast.commit.records import JobRecord, SaveMode, Totals
from holdfast.commit.two_phase.snapshot import read_instant
from holdfast.errors import ConflictError
from holdfast.stores.base import ObjectInfo, is_marker, iter_objects, iter_uploads, multipart
from holdfast.wording import counted

__all__ = ["file_job_of", "find_file_jobs"]

_TASK = re.compile(r"task_(.+)_[mr]_\d{6,}")
_ATTEMPT = re.compile(r"attempt_(.+)_[mr]_\d{6,}_\d+")


@dataclass(slots=True)
class _FileJob:
    """What lies below ``_temporary`` of one job; paths are relative to the destination.

    Attributes:
        tasks: directories of tasks that have committed, and the sizes of their files by path below them.
        attempts: directories of attempts that have not.
        starts: of the driver, after which tasks have committed something.
        writes: the UUIDs that files' names hold; an empty one for a name without.
    """

    job: str
    active_at_s: float = 0.0
    tasks: dict[str, dict[str, int]] = field(default_factory=dict)
    attempts: set[str] = field(default_factory=set)
    starts: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    uploads: int = 0

    @property
    def write(self) -> str:
        """The one UUID that all its names hold; empty if they do not tell."""
        return next(iter(self.writes)) if len(self.writes) == 1 else ""

    @property
    def files(self) -> int:
        return sum(map(len, self.tasks.values()))

    def owns(self, path: str) -> bool:
        """Whether a visible file is of this write, as its name tells."""
        return bool(self.write) and _write_of(path) == self.write


def _write_of(path: str) -> str:
    return next(iter(ids_in(path)), "")


def file_job_of(path: str) -> str | None:
    """The job of Hadoop whose working directory `path` lies in, relative to the destination; or None."""
    segments = path.split("/")
    if len(segments) < 4 or segments[0] != TEMPORARY or not segments[1].isdigit():
        return None
    is_committed = segments[2] != TEMPORARY
    match = _TASK.fullmatch(segments[2]) if is_committed else _ATTEMPT.fullmatch(segments[3])
    if match is None or is_job_id(match[1]) or len(segments) == (3 if is_committed else 4):
        return None
    return f"job_{match[1]}"


# --- finding ----------------------------------------------------------------------------------------------------------
def find_file_jobs(ctx: CommitContext, resolution: Resolution | None, *, insist: bool) -> Iterator[HadoopLeftover]:
    """Jobs of FileOutputCommitter that have something below ``_temporary``, each with what may be done about it."""
    for job in sorted(_scan(ctx).values(), key=lambda one: one.job):
        visible = _count_visible(ctx, job)
        action, reason = _decide(ctx, job, visible, resolution, insist)
        leftover = Leftover(
            committer="hadoop-file",
            job=job.job,
            active_at_s=job.active_at_s,
            action=action,
            reason=reason,
            finish=partial(_finish, ctx, job.job, resolution, insist, action),
            files=visible,
            uploads=job.uploads,
        )
        yield HadoopLeftover(leftover=leftover, is_over=False)


def _scan(ctx: CommitContext) -> dict[str, _FileJob]:
    jobs: dict[str, _FileJob] = {}
    prefix = ctx.key(f"{TEMPORARY}/")
    for info in iter_objects(ctx.store, prefix):
        _note(ctx, jobs, info.key, info)
    if ctx.store.capabilities.multipart is not None:
        for upload in iter_uploads(multipart(ctx.store), prefix):
            found = _note(ctx, jobs, upload.key, None)
            if found is not None:
                found.uploads += 1
                found.active_at_s = max(found.active_at_s, upload.initiated_at_s)
    return jobs


def _note(ctx: CommitContext, jobs: dict[str, _FileJob], key: str, info: ObjectInfo | None) -> _FileJob | None:
    """Put down what lies at `key` for its job; None if it is no job of Hadoop's."""
    name = file_job_of(key[len(ctx.prefix) :])
    if name is None:
        return None
    job = jobs.setdefault(name, _FileJob(name))
    segments = key[len(ctx.prefix) :].split("/")
    is_committed = segments[2] != TEMPORARY
    depth = 3 if is_committed else 4
    directory, path = "/".join(segments[:depth]), "/".join(segments[depth:])
    if not is_committed:
        job.attempts.add(directory)
    elif info is not None:
        job.tasks.setdefault(directory, {})
    if info is not None:
        job.active_at_s = max(job.active_at_s, info.modified_at_s)
        if not layout.is_hidden(path):  # such as the checksums of Hadoop's local file system
            job.writes.add(_write_of(path))
            if is_committed:
                job.tasks[directory][path] = info.size_bytes
                job.starts.add(segments[1])
    return job


def _count_visible(ctx: CommitContext, job: _FileJob) -> int:
    if not job.write:
        return 0
    return sum(job.owns(path) for path, _info in layout.iter_visible(ctx.store, ctx.prefix))


# --- deciding ---------------------------------------------------------------------------------------------------------
def _decide(
    ctx: CommitContext, job: _FileJob, visible: int, resolution: Resolution | None, insist: bool
) -> tuple[Action, str]:
    shown = f"visible: {counted(visible, 'file')}" if job.write else "names do not tell which files of it are visible"
    state = f"its tasks have committed {counted(job.files, 'file')}, waiting in {TEMPORARY}; {shown}"
    if resolution is None:
        return Action.KEEP, state
    if not job.files:
        stay = (
            f"; they stay, delete those with {job.write} in their names"
            if visible and resolution is Resolution.ABORT
            else ""
        )
        return Action.CLEAN, f"nothing that a task has committed waits, {shown}{stay}"
    if not job.write and not insist:
        return Action.KEEP, f"{state}: look at them, then insist with --accept-damage"
    if resolution is Resolution.ABORT:
        return (Action.BACK if job.write else Action.CLEAN), state
    if len(job.starts) > 1:
        return Action.KEEP, f"{state}; its driver started {len(job.starts)} times, nobody knows which tasks count"
    if read_instant(ctx).table is not None:
        return Action.KEEP, f"{state}; they would make the destination's table unreadable: abort it"
    if not visible and not insist:
        return Action.KEEP, (
            f"{state}: its job commit had not begun, and nobody recorded how many tasks it had: abort it, or insist "
            "with --accept-damage"
        )
    return Action.FORWARD, state


# --- acting -----------------------------------------------------------------------------------------------------------
def _finish(ctx: CommitContext, name: str, resolution: Resolution | None, insist: bool, expected: Action) -> None:
    """Do what was decided, if it is still right.

    Raises:
        ConflictError: the job has gone on: it is alive.

    Crash: run it again. What is visible is deleted before what waits, and moved one by one: while something waits,
    whoever looks next comes to the same decision (C10).
    """
    job = next((one for one in _scan(ctx).values() if one.job == name), None)
    if job is None or expected is Action.KEEP:
        return
    action, reason = _decide(ctx, job, _count_visible(ctx, job), resolution, insist)
    if action not in (expected, Action.CLEAN):
        raise ConflictError("the job has gone on, so it may be alive: look again", job=name, found=reason)
    if action is Action.FORWARD:
        _merge(Measure(ctx), job)
    elif action is Action.BACK:
        delete_visible(ctx, job.owns)
    for directory in sorted({*job.tasks, *job.attempts}):
        delete_dir(ctx, directory)
    _delete_empty(ctx)


def _merge(measure: Measure, job: _FileJob) -> None:
    ctx = measure.ctx
    for directory in sorted(job.tasks):
        merge_paths_v1(ctx, directory)
    moved = {path: size for files in job.tasks.values() for path, size in files.items()}
    totals = Totals(files=len(moved), size_bytes=sum(moved.values()))
    record = JobRecord(job=JobId(job.job), committer="file", mode=SaveMode.APPEND, started_at_s=0.0)
    succeed(measure, record, totals=totals, tasks=len(job.tasks), paths=sorted(moved), save=save_first_marker)


def _delete_empty(ctx: CommitContext) -> None:
    """Delete markers of directories below ``_temporary`` if nothing else is there: of other jobs nothing is touched."""
    found = list(iter_objects(ctx.store, ctx.key(f"{TEMPORARY}/"), markers=True))
    if found and all(map(is_marker, found)):
        ctx.store.delete_many([info.key for info in found])
