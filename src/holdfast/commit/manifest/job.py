"""The driver's side of `manifest`: list the tasks' manifests, rename all files that they name, say so.

There is no decision: a job is committed when its last file is at its place. Until then a crash leaves some files
visible and the rest waiting, with manifests that tell which.

Source: paper 002, "Job Setup", "Job Commit", "Job Abort/cleanup"; Hadoop's job stages for names and order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from holdfast.commit import layout
from holdfast.commit.codec import encode_job
from holdfast.commit.context import CommitContext
from holdfast.commit.job_ends import new_job, succeed
from holdfast.commit.manifest.cleanup import clean_up
from holdfast.commit.manifest.layout import job_attempt_dir, job_mark, success_draft
from holdfast.commit.manifest.loading import LoadedJob, check_reported, load_manifests, require_open
from holdfast.commit.manifest.renaming import make_room, rename_files, validate_files
from holdfast.commit.measure import Measure
from holdfast.commit.moves import is_dir, move_file
from holdfast.commit.records import JobOutcome, JobRecord, SaveMode, TaskCommit
from holdfast.commit.success_file import read_success
from holdfast.commit.task_commits import check_messages
from holdfast.errors import (
    CorruptDataError,
    DestinationExistsError,
    HoldfastError,
    OutcomeUnknownError,
    PreconditionError,
)
from holdfast.stores.base import Create, Overwrite, Support

__all__ = ["abort_job", "commit_job", "finish_job", "is_reported", "setup_job"]


# --- start ------------------------------------------------------------------------------------------------------------
def setup_job(ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]) -> JobRecord | None:
    """Check the destination and make the job's directory, which is to be new (scenario 31).

    A store has no directories to make, so a record of the job stands for it. Hadoop looks and then makes it; here one
    of two drivers that look at once is refused too, where the store has conditional writes.

    Raises:
        DestinationExistsError: mode ``fail`` and the destination holds data, or the job was started before.

    Crash: ``_SUCCESS`` of the job before may be gone, and a record may be there; `leftovers` finds it.
    """
    job = new_job(ctx, committer, mode, details)
    if job is None:
        return None
    taken = "the job was started before: start another"
    if is_dir(ctx, job_attempt_dir(job)):
        raise DestinationExistsError(taken, url=ctx.url, job=job.job)
    is_conditional = ctx.store.capabilities.conditional_put is Support.YES
    try:
        ctx.store.put(ctx.key(job_mark(job)), encode_job(job), Create() if is_conditional else Overwrite())
    except PreconditionError as error:
        raise DestinationExistsError(taken, url=ctx.url, job=job.job) from error
    return job


# --- commit -----------------------------------------------------------------------------------------------------------
def commit_job(
    measure: Measure, job: JobRecord, commits: Sequence[TaskCommit | None], tasks: int | Collection[int]
) -> JobOutcome:
    """Rename the files of all committed tasks to their places.

    Guarantee: when it returns, every file of every manifest in the job's directory is at its place (C1), and no file
    of another attempt (C2). What counts is what lies there, not what the tasks' messages say.

    C3 does not hold: a partitioned attempt may have replaced its task's manifest. C4 does not hold: files appear one by
    one. C5 does not hold once a job commit has failed half way: what is visible stays, also after an abort. C8 does not
    hold: nothing keeps two drivers from committing and aborting one job at once. With the modes that overwrite, C9 does
    not hold: see `make_room`.

    Raises:
        NotFoundError: the job is over, or a manifest or file of it is gone.
        InvalidRequestError: a task is missing or doubled, or two files have one target. Nothing is visible.
        DestinationExistsError: a file of the caller's naming is there already (scenario 56).
        CorruptDataError: a manifest cannot be read, or validation failed.
        UnavailableError: a store call failed. What was renamed is visible; calling again goes on.
        OutcomeUnknownError: see `rename_files` and `finish_job`.

    Crash: see `rename_files`; `leftovers` goes on or back.
    """
    ctx = measure.ctx
    present = check_messages(job, commits, tasks)
    with measure.stage("job_stage_load_manifests"):
        require_open(ctx, job)
        loaded = load_manifests(ctx, job)
        check_reported(job, loaded, present)
    with measure.stage("job_stage_create_target_dirs"):
        make_room(measure, job, loaded)
    with measure.stage("job_stage_rename_files"):
        rename_files(measure, job, loaded)
    return finish_job(measure, job, loaded)


def finish_job(measure: Measure, job: JobRecord, loaded: LoadedJob) -> JobOutcome:
    """The stages that come when all files are at their places: validation, ``_SUCCESS``, clean-up.

    Raises:
        OutcomeUnknownError: the job is committed, only clean-up failed, and `cleanup_failures_ignored` is off.
    """
    ctx = measure.ctx
    if ctx.settings.hadoop.validate_output:
        with measure.stage("job_stage_optional_validate_output"):
            validate_files(measure, loaded)

    def save(ctx: CommitContext, data: bytes) -> None:
        ctx.store.put(ctx.key(success_draft(job)), data)
        move_file(ctx, success_draft(job), layout.SUCCESS)

    outcome = succeed(
        measure,
        job,
        totals=loaded.totals,
        tasks=len(loaded.tasks),
        paths=loaded.names,
        statistics=loaded.statistics,
        save=save,
    )
    try:
        with measure.stage("job_stage_cleanup"):
            left = clean_up(ctx, job, over=True)
    except HoldfastError as error:
        raise OutcomeUnknownError(
            "the job is committed, its clean-up failed: run holdfast recover, or set cleanup_failures_ignored",
            url=ctx.url,
            job=job.job,
        ) from error
    return replace(outcome, finished=not left, pending_reason=left)


# --- abort ------------------------------------------------------------------------------------------------------------
def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Remove the job's directory, from whichever process (scenarios 17 to 22).

    A job whose ``_SUCCESS`` stands is committed: only its clean-up is done, and the outcome says so. Files that a job
    commit renamed before it failed stay, as in Hadoop (C5 does not hold for them).

    Crash: part of the directory is left; run it again.
    """
    ctx = measure.ctx
    committed = is_reported(ctx, job)
    left = clean_up(ctx, job, over=committed)
    return JobOutcome(job=job.job, committed=committed, finished=not left, pending_reason=left)


def is_reported(ctx: CommitContext, job: JobRecord) -> bool:
    """Whether ``_SUCCESS`` is this job's."""
    try:
        report = read_success(ctx)
    except CorruptDataError:
        return False  # somebody else's, or broken: it tells nothing of this job
    return report is not None and report.get("jobId") == job.job
