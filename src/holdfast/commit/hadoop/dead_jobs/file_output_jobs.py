"""Find dead jobs of Hadoop's FileOutputCommitter, which Spark uses by default, and abort them on request.

Jobs are found by their directories below ``_temporary``::

    _temporary/<start>/task_<job>_m_000003/<path>                committed by a task; v1 only
    _temporary/<start>/_temporary/attempt_<job>_m_000003_0/<path>  an attempt that has not committed

The file names that Spark chooses contain a UUID of the write, which identifies the files that are already visible. The
job commit of v1 moves committed files one by one. In v2, tasks publish their files directly, so no committed files wait
in ``_temporary``. Visible files are deleted only if committed files wait: then the job commit of v1 had not finished.

Sources: paper 000, III.B and III.C; paper 001, "Hadoop MR Commit algorithm 1" and "2".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.destination import delete_visible_files
from holdfast.commit.hadoop.dead_jobs.s3a_jobs import extract_job_ids_from_path
from holdfast.commit.hadoop.file_output.directories import TEMPORARY, parse_working_directory
from holdfast.commit.hadoop.files import delete_dir
from holdfast.commit.ids import is_job_id
from holdfast.commit.leftovers import ForeignLeftover, Leftover, RecoveryAction
from holdfast.errors import ConflictError
from holdfast.stores.base import is_marker, iter_objects, iter_uploads, multipart
from holdfast.wording import format_count


@dataclass(slots=True)
class _FileOutputJob:
    """A job's files and uploads below ``_temporary``. Paths are relative to the destination.

    Attributes:
        directories: of its committed tasks, and of attempts that have not committed.
        committed: how many files its tasks have committed.
        writes: the UUIDs in the file names; an empty string for a name without one.
    """

    active_at_s: float = 0.0
    directories: set[str] = field(default_factory=set)
    committed: int = 0
    writes: set[str] = field(default_factory=set)
    uploads: int = 0

    def owns_visible_file(self, path: str) -> bool:
        """Check whether the visible file at `path` is one of this write: all its names contain the same UUID."""
        return len(self.writes) == 1 and "" not in self.writes and _write_id_in_path(path) in self.writes


def _write_id_in_path(path: str) -> str:
    return next(iter(extract_job_ids_from_path(path)), "")


def file_output_job_of(path: str) -> str | None:
    """Return the Hadoop job whose working directory contains `path` (relative to the destination), or None."""
    place = parse_working_directory(path)
    return None if place is None or is_job_id(place[0]) else f"job_{place[0]}"


# --- finding ----------------------------------------------------------------------------------------------------------
def list_hadoop_file_leftovers(ctx: CommitContext, abort: bool, insist: bool) -> Iterator[ForeignLeftover]:
    """List the jobs of FileOutputCommitter that left data below ``_temporary``, each with a recovery action.

    Args:
        abort: whether to abort dead jobs; otherwise they are only reported.
        insist: abort a job although its file names do not show which visible files belong to it; those stay.
    """
    for name, job in sorted(_scan_temporary_directory(ctx).items()):
        visible = _count_visible_files(ctx, job)
        action, reason = _choose_recovery_action(job, visible, abort, insist)
        leftover = Leftover(
            committer="hadoop-file",
            job=name,
            active_at_s=job.active_at_s,
            action=action,
            reason=reason,
            recover=partial(_finish_recovery, ctx, name, insist, action),
            files=visible,
            uploads=job.uploads,
        )
        yield ForeignLeftover(leftover=leftover, is_over=False)


def _scan_temporary_directory(ctx: CommitContext) -> dict[str, _FileOutputJob]:
    jobs: dict[str, _FileOutputJob] = {}
    prefix = ctx.key(f"{TEMPORARY}/")

    def note_file(key: str, at_s: float) -> tuple[_FileOutputJob, str, bool] | None:
        place = parse_working_directory(key[len(ctx.prefix) :])
        if place is None or is_job_id(place[0]):
            return None
        name, directory, below, is_committed = place
        job = jobs.setdefault(f"job_{name}", _FileOutputJob())
        job.directories.add(directory)
        job.active_at_s = max(job.active_at_s, at_s)
        return job, below, is_committed

    for info in iter_objects(ctx.store, prefix):
        found = note_file(info.key, info.modified_at_s)
        if found is not None and not layout.is_hidden(found[1]):  # checksums of Hadoop's local file system are hidden
            job, below, is_committed = found
            job.writes.add(_write_id_in_path(below))
            job.committed += is_committed
    if ctx.store.capabilities.multipart is not None:
        for upload in iter_uploads(multipart(ctx.store), prefix):
            if (found := note_file(upload.key, upload.initiated_at_s)) is not None:
                found[0].uploads += 1
    return jobs


def _count_visible_files(ctx: CommitContext, job: _FileOutputJob) -> int:
    return sum(job.owns_visible_file(path) for path, _info in layout.iter_visible(ctx.store, ctx.prefix))


# --- ending -----------------------------------------------------------------------------------------------------------
def _choose_recovery_action(job: _FileOutputJob, visible: int, abort: bool, insist: bool) -> tuple[RecoveryAction, str]:
    is_named = len(job.writes) == 1 and "" not in job.writes
    shown = f"visible: {format_count(visible, 'file')}"
    if not is_named:
        shown = "file names do not show which of its files are visible"
    state = f"its tasks have committed {format_count(job.committed, 'file')}, still in {TEMPORARY}; {shown}"
    if not abort:
        return RecoveryAction.KEEP, state
    if not job.committed:
        hint = "; visible files are not deleted: if the job failed, delete them yourself" if visible else ""
        return RecoveryAction.CLEAN, f"no committed file is left in {TEMPORARY}, {shown}{hint}"
    if not is_named and not insist:
        return RecoveryAction.KEEP, f"{state}: inspect them, then confirm with --accept-damage"
    return (RecoveryAction.BACK if is_named else RecoveryAction.CLEAN), state


def _finish_recovery(ctx: CommitContext, name: str, insist: bool, expected: RecoveryAction) -> None:
    """Carry out the recovery action, if it is still the right one.

    Raises:
        ConflictError: the job has made progress, so it may be alive.

    Crash: run it again. Visible files are deleted before the files in ``_temporary``, so the next run comes to the same
    decision (C10).
    """
    job = _scan_temporary_directory(ctx).get(name)
    if job is None or expected is RecoveryAction.KEEP:
        return
    action, reason = _choose_recovery_action(job, _count_visible_files(ctx, job), True, insist)
    if action not in (expected, RecoveryAction.CLEAN):
        raise ConflictError("the job has made progress, so it may be alive: run recover again", job=name, found=reason)
    if action is RecoveryAction.BACK:
        delete_visible_files(ctx, job.owns_visible_file)
    for directory in sorted(job.directories):
        delete_dir(ctx, directory)
    # Delete directory markers below ``_temporary`` if nothing else is left; never touch other jobs' files.
    left = list(iter_objects(ctx.store, ctx.key(f"{TEMPORARY}/"), markers=True))
    if left and all(map(is_marker, left)):
        ctx.store.delete_many([info.key for info in left])
