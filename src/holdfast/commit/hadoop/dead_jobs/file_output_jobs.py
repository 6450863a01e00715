"""Find dead jobs of Hadoop's FileOutputCommitter, which Spark uses by default, and recover them on request.

Jobs are found by their directories below ``_temporary``::

    _temporary/<start>/task_<job>_m_000003/<path>                committed by a task; v1 only
    _temporary/<start>/_temporary/attempt_<job>_m_000003_0/<path>  an attempt that has not committed

The file names that Spark chooses contain a UUID of the write, which identifies the files that are already visible. The
job commit of v1 moves committed files one by one. In v2, tasks publish their files directly, so no committed files wait
in ``_temporary``. This leads to three cases:

- Committed files exist in ``_temporary``, and some files of the write are visible: the job commit of v1 had started.
  Moving the remaining files completes the job; deleting the visible files undoes it.
- Committed files exist in ``_temporary``, and no file of the write is visible: the job commit had not started. The
  number of tasks is not recorded.
- No committed file exists in ``_temporary``: the job used v2, or it used v1 and has finished, or no task has committed.
  In this case visible files are never deleted.

Sources: paper 000, III.B and III.C; paper 001, "Hadoop MR Commit algorithm 1" and "2".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from holdfast.commit import layout
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import delete_visible
from holdfast.commit.hadoop.dead_jobs.hadoop_job import ids_in, save_first_marker
from holdfast.commit.hadoop.file_output.directories import TEMPORARY, merge_paths_v1
from holdfast.commit.hadoop.files import delete_dir
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.leftovers import Action, ForeignLeftover, Leftover, Resolution
from holdfast.commit.records import JobRecord, SaveMode, Totals
from holdfast.commit.success_file import succeed
from holdfast.commit.two_phase.snapshot import read_instant
from holdfast.errors import ConflictError
from holdfast.stores.base import ObjectInfo, is_marker, iter_objects, iter_uploads, multipart
from holdfast.wording import counted

_TASK = re.compile(r"task_(.+)_[mr]_\d{6,}")
_ATTEMPT = re.compile(r"attempt_(.+)_[mr]_\d{6,}_\d+")


@dataclass(slots=True)
class _FileJob:
    """A job's files and uploads below ``_temporary``. Paths are relative to the destination.

    Attributes:
        tasks: maps the directory of each committed task to the sizes of its files, by path below the directory.
        attempts: directories of attempts that have not committed.
        starts: the numbers ``<start>`` of the driver starts after which tasks have committed.
        writes: the UUIDs in the file names; an empty string for a name without one.
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
        """Return the UUID that all file names contain; empty if they contain different UUIDs or none."""
        return next(iter(self.writes)) if len(self.writes) == 1 else ""

    @property
    def files(self) -> int:
        return sum(map(len, self.tasks.values()))

    def owns(self, path: str) -> bool:
        """Check whether the name of the visible file at `path` contains the UUID of this write."""
        return bool(self.write) and _write_of(path) == self.write


def _write_of(path: str) -> str:
    return next(iter(ids_in(path)), "")


def file_output_job_of(path: str) -> str | None:
    """Return the Hadoop job whose working directory contains `path` (relative to the destination), or None."""
    segments = path.split("/")
    if len(segments) < 4 or segments[0] != TEMPORARY or not segments[1].isdigit():
        return None
    is_committed = segments[2] != TEMPORARY
    match = _TASK.fullmatch(segments[2]) if is_committed else _ATTEMPT.fullmatch(segments[3])
    if match is None or is_job_id(match[1]) or len(segments) == (3 if is_committed else 4):
        return None
    return f"job_{match[1]}"


# --- finding ----------------------------------------------------------------------------------------------------------
def hadoop_file_leftovers(
    ctx: CommitContext, resolution: Resolution | None, *, insist: bool
) -> Iterator[ForeignLeftover]:
    """List the jobs of FileOutputCommitter that left data below ``_temporary``, each with a recovery action."""
    for job in sorted(_scan(ctx).values(), key=lambda one: one.job):
        visible = _count_visible(ctx, job)
        action, reason = _decide(ctx, job, visible, resolution, insist)
        leftover = Leftover(
            committer="hadoop-file",
            job=job.job,
            active_at_s=job.active_at_s,
            action=action,
            reason=reason,
            recover=partial(_finish, ctx, job.job, resolution, insist, action),
            files=visible,
            uploads=job.uploads,
        )
        yield ForeignLeftover(leftover=leftover, is_over=False)


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
    """Add the object or upload at `key` to its job, and return the job; None if `key` belongs to no Hadoop job."""
    name = file_output_job_of(key[len(ctx.prefix) :])
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
        if not layout.is_hidden(path):  # for example the checksum files of Hadoop's local file system
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
    shown = (
        f"visible: {counted(visible, 'file')}" if job.write else "file names do not show which of its files are visible"
    )
    state = f"its tasks have committed {counted(job.files, 'file')}, still in {TEMPORARY}; {shown}"
    if resolution is None:
        return Action.KEEP, state
    if not job.files:
        hint = (
            f"; visible files are not deleted: delete those with {job.write} in their names yourself"
            if visible and resolution is Resolution.ABORT
            else ""
        )
        return Action.CLEAN, f"no committed file is left in {TEMPORARY}, {shown}{hint}"
    if not job.write and not insist:
        return Action.KEEP, f"{state}: inspect them, then confirm with --accept-damage"
    if resolution is Resolution.ABORT:
        return (Action.BACK if job.write else Action.CLEAN), state
    if len(job.starts) > 1:
        return Action.KEEP, f"{state}; its driver started {len(job.starts)} times, so it is unknown which tasks count"
    if read_instant(ctx).table is not None:
        return Action.KEEP, f"{state}; these files would make the destination's table unreadable: abort the job"
    if not visible and not insist:
        return Action.KEEP, (
            f"{state}: its job commit had not started, and the number of its tasks is not recorded: abort it, or "
            "confirm with --accept-damage"
        )
    return Action.FORWARD, state


# --- acting -----------------------------------------------------------------------------------------------------------
def _finish(ctx: CommitContext, name: str, resolution: Resolution | None, insist: bool, expected: Action) -> None:
    """Carry out the recovery action, if it is still the right one.

    Raises:
        ConflictError: the job has made progress, so it may be alive.

    Crash: run it again. Files are moved one by one, and visible files are deleted before the files in ``_temporary``.
    So while files remain in ``_temporary``, the next run comes to the same decision (C10).
    """
    job = next((one for one in _scan(ctx).values() if one.job == name), None)
    if job is None or expected is Action.KEEP:
        return
    action, reason = _decide(ctx, job, _count_visible(ctx, job), resolution, insist)
    if action not in (expected, Action.CLEAN):
        raise ConflictError("the job has made progress, so it may be alive: run recover again", job=name, found=reason)
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
    """Delete directory markers below ``_temporary`` if nothing else is left. Never touch other jobs' files."""
    found = list(iter_objects(ctx.store, ctx.key(f"{TEMPORARY}/"), markers=True))
    if found and all(map(is_marker, found)):
        ctx.store.delete_many([info.key for info in found])
