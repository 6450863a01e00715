"""Set up, commit and abort a `manifest` job: load the tasks' manifests, rename the files, write ``_SUCCESS``.

No decision is logged: a job is committed when its last file is at its final path. A crash before that moment leaves
some files visible and the others hidden. The manifests list both, so recovery can find out which files are visible.

Source: paper 002, "Job Setup", "Job Commit", "Job Abort/cleanup"; Hadoop's job stages for names and order.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from holdfast.commit import layout
from holdfast.commit.codec import encode_job
from holdfast.commit.committer import TaskReports
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import delete_visible, new_job
from holdfast.commit.hadoop.files import delete_dir, file_info, is_dir, list_children, move_file, rename_until_known
from holdfast.commit.hadoop.manifest.format import DirStatus, ManifestFile
from holdfast.commit.hadoop.manifest.loading import (
    LoadedJob,
    check_reported,
    job_attempt_dir,
    job_dir,
    job_mark,
    load_manifests,
    require_open,
    success_draft,
    tasks_dir,
)
from holdfast.commit.ids import JobId, file_job
from holdfast.commit.records import JobOutcome, JobRecord, SaveMode
from holdfast.commit.success_file import has_succeeded, succeed
from holdfast.errors import (
    CorruptDataError,
    DestinationExistsError,
    HoldfastError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
)
from holdfast.stores.base import Create, ObjectInfo, Overwrite, Support, rename


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


_log = logging.getLogger(__name__)


def clean_up(ctx: CommitContext, job: JobRecord, *, over: bool) -> str:
    """Delete the job's directory, as the ``cleanup_*`` settings specify (scenario 62).

    C7: only this job's directory is deleted. ``_temporary`` is not an object: the directory disappears with the
    last file below it.

    Args:
        over: whether the job is committed. If so, its record is deleted first, even if clean-up is skipped, so that
            recovery does not consider the job unfinished.

    Returns:
        Why data was unexpectedly left behind; empty if none was.

    Raises:
        HoldfastError: the directory could not be deleted, and `cleanup_failures_ignored` is off.

    Crash: a part of the directory is left; run it again.
    """
    options = ctx.settings.hadoop
    try:
        if over:
            ctx.store.delete(ctx.key(job_mark(job)))
        if not options.cleanup_skipped:
            _remove(ctx, job)
    except HoldfastError as error:
        if not options.cleanup_failures_ignored:
            raise
        return f"the job's directory {job_dir(job.job)} could not be deleted: run holdfast recover ({error})"
    return ""


def _remove(ctx: CommitContext, job: JobRecord) -> None:
    options = ctx.settings.hadoop
    if options.cleanup_base_first:
        try:
            return remove_job_dir(ctx, job.job)
        except HoldfastError as error:
            _log.info("%s could not be deleted in one step: %s", job_dir(job.job), error)
    if options.cleanup_parallel_delete:
        _remove_attempts(ctx, job)
    return remove_job_dir(ctx, job.job)


def remove_job_dir(ctx: CommitContext, job: JobId) -> None:
    """Delete everything that is stored for a job. Idempotent."""
    delete_dir(ctx, job_dir(job))


def _remove_attempts(ctx: CommitContext, job: JobRecord) -> None:
    """Delete the attempts' directories in parallel. Only log errors, because the job's directory is deleted next."""
    directory = tasks_dir(job)
    try:
        attempts = [f"{directory}/{name}" for name, is_directory in list_children(ctx, directory) if is_directory]
        for _done in ctx.runner.map(lambda path: delete_dir(ctx, path), attempts):
            pass
    except HoldfastError as error:
        _log.info("attempts below %s could not be deleted in parallel: %s", directory, error)


REPLACING = frozenset({SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS})
"""In these modes a file replaces whatever exists at its target."""


def make_room(measure: Measure, job: JobRecord, loaded: LoadedJob) -> None:
    """Delete the files that the job replaces, and files that exist where it needs directories (scenario 57).

    Files at the job's own targets stay, because the renames replace them. So this function may be repeated after
    renames have started (C10). When tasks committed, they recorded the files that are in the way of directories; such a
    file that was added later makes a rename fail.

    Crash: replaced data is deleted, in part or completely, and its replacement is still hidden (C9 does not hold).
    """
    ctx = measure.ctx
    if job.mode is SaveMode.OVERWRITE:
        delete_visible(ctx, lambda path: not loaded.is_target(path))
    elif job.mode is SaveMode.OVERWRITE_PARTITIONS:
        delete_visible(ctx, lambda path: path.rpartition("/")[0] in loaded.partitions and not loaded.is_target(path))
    files = sorted(path for path, status in loaded.directories.items() if status is DirStatus.FILE)
    for _done in ctx.runner.map(lambda path: ctx.store.delete(ctx.key(path)), files):
        measure.recorder.count("op_delete_file_under_destination")


# --- renames ----------------------------------------------------------------------------------------------------------
def rename_files(measure: Measure, job: JobRecord, loaded: LoadedJob) -> None:
    """Rename every file to its target; stop at the first error (scenario 53).

    Guarantee: on return every file of every committed task is at its target. Idempotent: a file whose etag shows that
    it is already at its target is not touched.

    C4 does not hold: files appear one by one.

    Raises:
        NotFoundError: a file is neither at its source nor at its target (scenario 55).
        DestinationExistsError: another file exists at the target, and neither the mode nor `delete_target_files` allows
            replacing it (scenario 56).
        OutcomeUnknownError: the store did not say whether a file was renamed.

    Crash: some files are visible, the others are at their sources. `find_leftovers` finds out which files are visible,
    and recovery continues.
    """
    ctx = measure.ctx
    check_targets = job.mode not in REPLACING

    def commit_file(file: ManifestFile) -> None:
        if check_targets and _may_be_taken(job, loaded, file):
            _clear_target(ctx, file)
        _rename_file(measure, file)

    for done, _ in enumerate(ctx.runner.map(commit_file, loaded.files()), start=1):
        ctx.progress("files", done, loaded.totals.files)


def _may_be_taken(job: JobRecord, loaded: LoadedJob, file: ManifestFile) -> bool:
    """Check whether another file may exist at a file's target.

    Hadoop's rename fails if the target exists, but Holdfast's replaces it, so the target must be checked first. No
    check is needed for a name that carries the job's id, because no other job uses it, or for a directory that did not
    exist when the tasks committed, because it is empty. For every other file the check costs one request.
    """
    directory = file.dest.rpartition("/")[0]
    was_there = not directory or loaded.directories.get(directory, DirStatus.UNKNOWN) in (
        DirStatus.DIR,
        DirStatus.UNKNOWN,
    )
    return was_there and file_job(file.dest) != job.job


def _clear_target(ctx: CommitContext, file: ManifestFile) -> None:
    found = file_info(ctx, file.dest)
    if not ctx.settings.hadoop.delete_target_files:
        if found is not None and not is_same_file(file, found):
            raise DestinationExistsError(
                "a file of this name already exists: write under another name, or set delete_target_files",
                url=ctx.url,
                path=file.dest,
            )
    elif found is None:
        if is_dir(ctx, file.dest):
            delete_dir(ctx, file.dest, unfinished=False)
    elif not is_same_file(file, found):
        ctx.store.delete(ctx.key(file.dest))


def is_same_file(file: ManifestFile, found: ObjectInfo) -> bool:
    """Check whether `found` is `file`: a rename preserves size and etag. Without an etag, only sizes are compared."""
    return found.size_bytes == file.size_bytes and file.etag in ("", found.etag)


def _rename_file(measure: Measure, file: ManifestFile) -> None:
    """Rename one file, and check the effect if the store does not answer (paper 002, "Requirements of the Store").

    If the source does not exist, but a file with the same etag and size is at the target, then an earlier rename by
    this or another process has taken effect. If the file has no etag, the target is accepted only after this call has
    already tried the rename.
    """
    ctx = measure.ctx
    store = rename(ctx.store)

    def move() -> None:
        with measure.recorder.timed("commit_file_rename"):
            store.rename(ctx.key(file.source), ctx.key(file.dest))

    def has_arrived(is_retry: bool) -> bool:
        found = file_info(ctx, file.dest) if is_retry or file.etag else None
        if found is None or not is_same_file(file, found):
            return False
        measure.recorder.count("commit_file_rename_recovered")
        return True

    try:
        rename_until_known(ctx, file.dest, move, has_arrived)
    except NotFoundError as error:
        raise NotFoundError(
            "a file of a committed task does not exist, so the job cannot be committed: run it again",
            source=file.source,
            dest=file.dest,
        ) from error


# --- validation -------------------------------------------------------------------------------------------------------
def validate_files(measure: Measure, loaded: LoadedJob) -> None:
    """Check that every file is at its target, with the expected size and etag (scenario 59).

    Raises:
        NotFoundError: a file does not exist.
        CorruptDataError: a different file is at a target.
    """
    ctx = measure.ctx

    def validate(file: ManifestFile) -> None:
        found = file_info(ctx, file.dest)
        if found is None:
            raise NotFoundError(
                "a file of the job is not at its target: run the job again", url=ctx.url, path=file.dest
            )
        if not is_same_file(file, found):
            raise CorruptDataError(
                "a file of the job is not what its task wrote: keep the file, and run the job again",
                url=ctx.url,
                path=file.dest,
                expected_bytes=file.size_bytes,
                found_bytes=found.size_bytes,
            )

    for _done in ctx.runner.map(validate, loaded.files()):
        pass
