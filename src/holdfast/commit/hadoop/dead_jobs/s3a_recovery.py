"""End a dead job of Hadoop's S3A committers: complete its uploads or abort them, as the user has chosen.

The reasoning is the same as for Holdfast's own jobs without a log (paper 001, "Job Driver failure during Job Commit"):
Hadoop's job commit starts only when all tasks have committed. This leads to four cases:

- Some files are visible and all others are pending: the job commit had started. Completing the others completes the
  job.
- No file is visible: the number of tasks is not recorded. The job is committed only if the user confirms the risk.
- Some files are neither visible nor pending: the job commit had failed and was deleting files, or other jobs replaced
  files. The job is never committed.
- Nothing is pending: the job has finished or was aborted. Visible files are never deleted.

An abort deletes visible files only if their names carry the job's id; files with other names may belong to another job
that wrote the same bytes. If names carry no job id, two sets may name the same file: both uploads are completed, like
in Hadoop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.hadoop.completion import complete_all, succeed_with
from holdfast.commit.hadoop.dead_jobs.hadoop_job import HadoopJob, carries, save_first_marker
from holdfast.commit.hadoop.dead_jobs.s3a_state import JobState, inspect_jobs, load_record
from holdfast.commit.hadoop.files import delete_dir
from holdfast.commit.hadoop.pending import PendingSet
from holdfast.commit.ids import JobId
from holdfast.commit.leftovers import Action, ForeignLeftover, Leftover, Resolution
from holdfast.commit.records import JobRecord, SaveMode
from holdfast.commit.two_phase.snapshot import read_instant
from holdfast.errors import ConflictError, UnavailableError
from holdfast.stores.base import batched_keys, iter_uploads, multipart
from holdfast.wording import counted

_ROUNDS = 3


def s3a_leftovers(
    ctx: CommitContext, jobs: Sequence[HadoopJob], resolution: Resolution | None, *, insist: bool
) -> Iterator[ForeignLeftover]:
    """List the leftover data of each job, with a recovery action.

    Args:
        resolution: how the user wants dead jobs to end; None to leave them alone.
        insist: commit the job even if it is unknown whether all of its tasks had committed.
    """
    for job, found in zip(jobs, inspect_jobs(ctx, jobs), strict=True):
        action, reason = _decide(ctx, job, found, resolution, insist)
        leftover = Leftover(
            committer=job.committer,
            job=job.job,
            active_at_s=found.active_at_s,
            action=action,
            reason=reason,
            recover=partial(_finish, ctx, job, resolution, insist, action),
            files=len(found.visible) + len(found.orphans),
            uploads=len(found.uploads),
        )
        yield ForeignLeftover(leftover=leftover, is_over=found.is_over)


# --- deciding ---------------------------------------------------------------------------------------------------------
def _decide(
    ctx: CommitContext, job: HadoopJob, found: JobState, resolution: Resolution | None, insist: bool
) -> tuple[Action, str]:
    if found.damaged:
        return _decide_damaged(job, found, resolution, insist=insist)
    if resolution is None:
        return Action.KEEP, _state(found)
    if found.succeeded:
        return Action.CLEAN, "_SUCCESS names the job, so it is committed; only its records are left"
    if found.orphans and (found.pending or found.missing):
        return Action.KEEP, "files of the job are visible that its pending sets do not name: inspect them"
    if found.commits and not found.pending:
        return _decide_over(found, resolution)
    return _decide_abort(job, found) if resolution is Resolution.ABORT else _decide_commit(ctx, job, found, insist)


def _decide_damaged(
    job: HadoopJob, found: JobState, resolution: Resolution | None, *, insist: bool
) -> tuple[Action, str]:
    """Choose the action for a job with an unreadable record: keep the job, or abort it if the user confirms.

    After an abort, nothing shows which uploads the unreadable record named.
    """
    state = f"a record cannot be parsed, {found.damaged}"
    if resolution is not Resolution.ABORT or not insist:
        return Action.KEEP, (
            f"{state}: repair it, or abort the job with --foreign abort --accept-damage; then abort "
            "the uploads that only this record names with holdfast uploads abort --all-tools"
        )
    if found.orphans:
        return Action.KEEP, (
            f"{state}, and files of the job are visible: delete those with {job.job} in their names, then run "
            "this again"
        )
    action, reason = _decide_abort(job, found)
    return action, f"{state}; {reason}"


def _state(found: JobState) -> str:
    if found.succeeded:
        return "_SUCCESS names the job, so it is committed; only its records are left"
    if not found.commits:
        return f"no task has committed anything; pending: {counted(len(found.uncommitted), 'upload')} of attempts"
    total = counted(len(found.commits), "file")
    state = f"{len(found.visible)} of its {total} are visible, {len(found.pending)} are pending"
    return state + (f", {len(found.missing)} are neither" if found.missing else "")


def _decide_over(found: JobState, resolution: Resolution) -> tuple[Action, str]:
    if found.visible and found.missing:
        return Action.KEEP, f"{_state(found)}: it was aborted, or other jobs have replaced its files"
    if not found.visible:
        return Action.CLEAN, "none of its files is visible or pending"
    if resolution is Resolution.COMMIT:
        return Action.FORWARD, "all of its files are visible, only _SUCCESS is missing"
    return Action.CLEAN, "all of its files are visible: it is committed except for its _SUCCESS, and its files stay"


def _decide_abort(job: HadoopJob, found: JobState) -> tuple[Action, str]:
    strange = [one for one in found.visible if not carries(job.job, one.key)]
    if strange:
        return Action.KEEP, (
            f"{_state(found)}; the names of visible files do not carry its id, so none is deleted: commit the job, or "
            "delete them yourself"
        )
    return Action.BACK, _state(found)


def _decide_commit(ctx: CommitContext, job: HadoopJob, found: JobState, insist: bool) -> tuple[Action, str]:
    if not found.commits:
        return Action.KEEP, f"{_state(found)}: nothing to commit, abort it"
    if found.missing:
        return Action.KEEP, f"{_state(found)}: it cannot be completed, abort it"
    if job.starts > 1:
        return (
            Action.KEEP,
            f"{_state(found)}; its driver started {job.starts} times, so it is unknown which tasks count",
        )
    if read_instant(ctx).table is not None:
        return Action.KEEP, f"{_state(found)}; these files would make the destination's table unreadable: abort the job"
    if not found.visible and not insist:
        return Action.KEEP, (
            f"{_state(found)}: its job commit had not started, and the number of its tasks is not recorded: abort it, "
            "or confirm with --accept-damage"
        )
    return Action.FORWARD, _state(found)


# --- acting -----------------------------------------------------------------------------------------------------------
def _finish(ctx: CommitContext, job: HadoopJob, resolution: Resolution | None, insist: bool, expected: Action) -> None:
    """Carry out the recovery action, if it is still the right one.

    Raises:
        ConflictError: the job has made progress, so it may be alive.
        UnavailableError: some uploads are not aborted; run it again.

    Crash: run it again; a partly finished recovery leads to the same end (C10).
    """
    if expected is Action.KEEP:
        return
    (found,) = inspect_jobs(ctx, [job])
    action, reason = _decide(ctx, job, found, resolution, insist)
    if action not in (expected, Action.CLEAN):
        raise ConflictError(
            "the job has made progress, so it may be alive: run recover again", job=job.job, found=reason
        )
    measure = Measure(ctx)
    if action is Action.FORWARD:
        _complete(measure, job)
    elif action is Action.BACK:
        # Delete files before aborting uploads: while uploads are pending, the next run comes to the same decision.
        for batch in batched_keys(sorted(one.key for one in found.visible)):
            ctx.store.delete_many(batch)
    _clean_up(measure, job, found, with_sets=action is not Action.FORWARD)


def _complete(measure: Measure, job: HadoopJob) -> None:
    """Complete the pending uploads and write ``_SUCCESS``.

    Raises:
        NotFoundError: an upload does not exist and its file is not visible, so another process is working on this job.
    """
    ctx = measure.ctx

    def load(key: str) -> PendingSet:
        return PendingSet(job_id=job.job, commits=load_record(ctx, job, key))

    published = complete_all(measure, job.sets, load, revert=False)
    record = JobRecord(
        job=JobId(job.job),
        committer=job.committer.removeprefix("hadoop-"),
        mode=SaveMode.APPEND,
        started_at_s=0.0,
    )
    succeed_with(measure, record, published, save=save_first_marker)


def _clean_up(measure: Measure, job: HadoopJob, found: JobState, *, with_sets: bool) -> None:
    """Abort the job's pending uploads, then delete its records. Never touch uploads that no record or name identifies.

    Records are deleted after the uploads are aborted. If the driver is alive after all, it finds that its uploads are
    aborted, and fails. If the records were deleted first, the driver would find no sets and report success without any
    files.

    Args:
        with_sets: whether to abort the uploads that tasks have committed; False if they have just been completed.

    Raises:
        UnavailableError: uploads are left; run it again.
    """
    ctx = measure.ctx
    store = multipart(ctx.store)
    left = own = found.uploads if with_sets else found.uncommitted
    # A part that is in flight during the abort can keep the upload alive: list again, a few times.
    for _ in range(_ROUNDS):
        for _done in ctx.runner.map(lambda upload: store.abort_upload(*upload), sorted(left)):
            measure.recorder.count("committer_commits_aborted")
        pending = ((one.key, one.upload_id) for one in iter_uploads(store, ctx.prefix))
        left = frozenset(upload for upload in pending if upload in own or carries(job.job, upload[0]))
        if not left:
            delete_dir(job.home, job.directory, unfinished=False)
            return
    raise UnavailableError("uploads of the job could not be aborted: run it again", job=job.job, uploads=len(left))
