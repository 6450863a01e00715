"""Set up, commit and abort a `manifest` job: load the tasks' manifests, rename the files, write ``_SUCCESS``.

No decision is logged: a job is committed when its last file is at its final path. A crash before that moment leaves
some files visible and the others hidden. The manifests list both, so recovery can find out which files are visible.

Source: paper 002, "Job Setup", "Job Commit", "Job Abort/cleanup"; Hadoop's job stages for names and order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.commit import layout
from holdfast.commit.codec import encode_job
from holdfast.commit.committer import TaskReports
from holdfast.commit.context import CommitContext
from holdfast.commit.file_operations import is_dir, move_file
from holdfast.commit.job_setup import new_job
from holdfast.commit.job_success import has_succeeded, succeed
from holdfast.commit.manifest.cleanup import clean_up
from holdfast.commit.manifest.layout import job_attempt_dir, job_mark, success_draft
from holdfast.commit.manifest.loading import LoadedJob, check_reported, load_manifests, require_open
from holdfast.commit.manifest.renaming import make_room, rename_files, validate_files
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobOutcome, JobRecord
from holdfast.commit.save_mode import SaveMode
from holdfast.errors import (
    DestinationExistsError,
    HoldfastError,
    OutcomeUnknownError,
    PreconditionError,
)
from holdfast.stores.base import Create, Overwrite, Support


# --- start ------------------------------------------------------------------------------------------------------------
def setup_job(ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]) -> JobRecord | None:
    """Check the destination and create the job's directory, which must not exist (scenario 31).

    Object stores have no directories, so the job's record takes the place of the job's directory. Hadoop first checks
    for the directory and then creates it. Here, on a store with conditional writes, the second driver is refused even
    if two drivers run this concurrently.

    Raises:
        DestinationExistsError: the mode is ``fail`` and the destination contains data, or the job was started before.

    Crash: an earlier ``_SUCCESS`` may be deleted, and a record may exist, which `find_leftovers` finds.
    """
    job = new_job(ctx, committer, mode, details)
    if job is None:
        return None
    taken = "the job was started before: start another one"
    if is_dir(ctx, job_attempt_dir(job)):
        raise DestinationExistsError(taken, url=ctx.url, job=job.job)
    is_conditional = ctx.store.capabilities.conditional_put is Support.YES
    try:
        ctx.store.put(ctx.key(job_mark(job)), encode_job(job), Create() if is_conditional else Overwrite())
    except PreconditionError as error:
        raise DestinationExistsError(taken, url=ctx.url, job=job.job) from error
    return job


# --- commit -----------------------------------------------------------------------------------------------------------
def commit_job(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Rename the files of all committed tasks to their final paths.

    Guarantee: on return every file of every manifest in the job's directory is at its final path (C1), and no files of
    other attempts are visible (C2). The manifests in the directory decide which files count, not the tasks' reports.

    C3 does not hold: a partitioned attempt may have replaced its task's manifest. C4 does not hold: files appear one by
    one. C5 does not hold once a job commit has failed halfway: files that are already visible stay, even after an
    abort. C8 does not hold: two drivers can commit and abort one job at the same time. In the modes that overwrite, C9
    does not hold: see `make_room`.

    Raises:
        NotFoundError: the job is over, or one of its manifests or files does not exist.
        InvalidRequestError: a task is missing or reported twice, or two files have the same target. Nothing is visible.
        DestinationExistsError: the caller chose a file's name, and a file with that name already exists (scenario 56).
        CorruptDataError: a manifest cannot be parsed, or validation failed.
        UnavailableError: a store call failed. Renamed files are visible; calling again continues.
        OutcomeUnknownError: see `rename_files` and `finish_job`.

    Crash: see `rename_files`; recovery rolls the job forward or back.
    """
    ctx = measure.ctx
    present = reports.check(job)
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
    """Run the stages after the renames: validation, ``_SUCCESS``, clean-up.

    Raises:
        OutcomeUnknownError: the job is committed, but clean-up failed and `cleanup_failures_ignored` is off.
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
            "the job is committed, but its clean-up failed: run holdfast recover, or set cleanup_failures_ignored",
            url=ctx.url,
            job=job.job,
        ) from error
    return replace(outcome, finished=not left, pending_reason=left)


# --- abort ------------------------------------------------------------------------------------------------------------
def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Delete the job's directory; may be called from any process, and repeatedly (scenarios 17 to 22).

    If ``_SUCCESS`` names the job, it is committed; then this only cleans up, and the outcome says that the job is
    committed. Files that a job commit renamed before it failed stay, as in Hadoop (C5 does not hold for them).

    Crash: a part of the directory is left; run it again.
    """
    ctx = measure.ctx
    committed = has_succeeded(ctx, job.job)
    left = clean_up(ctx, job, over=committed)
    return JobOutcome(job=job.job, committed=committed, finished=not left, pending_reason=left)
