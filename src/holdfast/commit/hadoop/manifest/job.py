"""Set up, commit and abort a `manifest` job: load the tasks' manifests, rename the files, write ``_SUCCESS``.

No decision is logged: a job is committed when its last file is at its final path. A crash before that moment leaves
some files visible and the others hidden. The manifests list both, so recovery can find out which files are visible.

Source: paper 002, "Job Setup", "Job Commit", "Job Abort/cleanup"; Hadoop's job stages for names and order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.commit.codec import encode_job
from holdfast.commit.committer import TaskReports
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import REPLACING, delete_visible_files, start_job
from holdfast.commit.hadoop.files import delete_dir, file_info, is_dir, list_files, read_listed_file
from holdfast.commit.hadoop.manifest.format import (
    MANIFEST_SUFFIX,
    MAX_MANIFEST_BYTES,
    IntermediateManifest,
    ManifestFile,
    decode_intermediate_manifest,
    job_attempt_dir,
    job_dir,
    job_record_path,
    manifests_dir,
)
from holdfast.commit.ids import job_in_file_name, make_hadoop_task_id
from holdfast.commit.records import JobOutcome, JobRecord, SaveMode, TaskCommit, Totals
from holdfast.commit.statistics import NO_STATISTICS, Statistics
from holdfast.commit.success_file import clean_up_after_job, has_job_succeeded, write_success_report
from holdfast.commit.task import ensure_file_moved
from holdfast.errors import (
    CorruptDataError,
    DestinationExistsError,
    InvalidRequestError,
    NotFoundError,
    PreconditionError,
)
from holdfast.stores.base import Create, ObjectInfo, Overwrite, Support, as_renaming
from holdfast.wording import OR_OVERWRITE


# --- start ------------------------------------------------------------------------------------------------------------
def setup_job(ctx: CommitContext, committer: str, mode: SaveMode, details: Mapping[str, object]) -> JobRecord | None:
    """Check the destination and create the job's directory, which must not exist.

    Object stores have no directories, so the job's record takes the place of the job's directory. Hadoop first checks
    for the directory and then creates it. Here, on a store with conditional writes, the second driver is refused even
    if two drivers run this concurrently.

    Raises:
        DestinationExistsError: the mode is ``fail`` and the destination contains data, or the job was started before.

    Crash: an earlier ``_SUCCESS`` may be deleted, and a record may exist, which `find_leftovers` finds.
    """
    job = start_job(ctx, committer, mode, details)
    if job is None:
        return None
    taken = "the job was started before: start another one"
    if is_dir(ctx, job_attempt_dir(job)):
        raise DestinationExistsError(taken, url=ctx.url, job=job.job)
    is_conditional = ctx.store.capabilities.conditional_put is Support.YES
    try:
        ctx.store.put(ctx.key(job_record_path(job)), encode_job(job), Create() if is_conditional else Overwrite())
    except PreconditionError as error:
        raise DestinationExistsError(taken, url=ctx.url, job=job.job) from error
    return job


# --- commit -----------------------------------------------------------------------------------------------------------
def commit_job(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Commit a job: rename the files of all committed tasks to their final paths.

    Guarantee: on return every file of every manifest in the job's directory is at its final path (C1), and no files of
    other attempts are visible (C2). The manifests in the directory decide which files count, not the tasks' reports.

    C3 does not hold: a partitioned attempt may have replaced its task's manifest. C4 does not hold: files appear one by
    one. C5 does not hold once a job commit has failed halfway: files that are already visible stay, even after an
    abort. C8 does not hold: two drivers can commit and abort one job at the same time. In the modes that overwrite, C9
    does not hold: see `delete_replaced_files`.

    Raises:
        NotFoundError: the job is over, or one of its manifests or files does not exist.
        InvalidRequestError: a task is missing or reported twice, two files have the same target, or a file is where the
            job needs a directory, or the reverse. Nothing is visible.
        DestinationExistsError: the caller chose a file's name, and a file with that name already exists.
        CorruptDataError: a manifest cannot be parsed.
        UnavailableError: a store call failed. Renamed files are visible; calling again continues.
        OutcomeUnknownError: see `rename_files`.

    Crash: see `rename_files`; recovery rolls the job forward or back.
    """
    ctx = measure.ctx
    present = reports.check(job)
    with measure.stage("job_stage_load_manifests"):
        require_unfinished_job(ctx, job)
        loaded = load_manifests(ctx, job)
        check_reported_tasks(job, loaded, present)
    with measure.stage("job_stage_create_target_dirs"):
        delete_replaced_files(measure, job, loaded)
    with measure.stage("job_stage_rename_files"):
        rename_files(measure, job, loaded)
    return finish_job(measure, job, loaded)


def finish_job(measure: Measure, job: JobRecord, loaded: LoadedManifests) -> JobOutcome:
    """Finish a job whose files are all renamed: write ``_SUCCESS``, clean up, and return the outcome."""
    outcome = write_success_report(
        measure,
        job,
        totals=loaded.totals,
        tasks=len(loaded.tasks),
        paths=loaded.files,
        statistics=loaded.statistics,
    )
    return delete_job_directory(measure, job, outcome)


# --- abort ------------------------------------------------------------------------------------------------------------
def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Abort a job: delete its directory. May be called from any process, and repeatedly.

    If ``_SUCCESS`` names the job, it is committed; then this only cleans up, and the outcome says that the job is
    committed. Files that a job commit renamed before it failed stay, as in Hadoop (C5 does not hold for them).

    Crash: a part of the directory is left; run it again.
    """
    committed = has_job_succeeded(measure.ctx, job.job)
    return delete_job_directory(measure, job, JobOutcome(job=job.job, committed=committed))


def delete_job_directory(measure: Measure, job: JobRecord, outcome: JobOutcome) -> JobOutcome:
    """Clean up after a job: delete its directory, and no other job's (C7). Errors are added to the returned outcome.

    ``_temporary`` is not an object: the directory disappears with the last file below it. The record of a committed job
    is deleted first, so that recovery does not consider the job unfinished.

    Crash: a part of the directory is left; run it again.
    """
    ctx = measure.ctx

    def delete_directory() -> None:
        if outcome.committed:
            ctx.store.delete(ctx.key(job_record_path(job)))
        delete_dir(ctx, job_dir(job.job))

    return clean_up_after_job(measure, outcome, delete_directory)


# --- manifests --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedManifests:
    """The merged content of a job's manifests.

    Attributes:
        tasks: names of the committed tasks, which are the tasks that have a manifest.
        files: the files to rename, by target.
        statistics: the merged statistics of all tasks.
    """

    tasks: frozenset[str]
    files: Mapping[str, ManifestFile]
    statistics: Statistics

    @property
    def totals(self) -> Totals:
        files = self.files.values()
        return Totals(
            files=len(files),
            size_bytes=sum(file.size_bytes for file in files),
            rows=sum(file.rows for file in files),
        )


def require_unfinished_job(ctx: CommitContext, job: JobRecord) -> None:
    """Check that the job has not ended, that is, that its record exists.

    Raises:
        NotFoundError: the job was already committed or aborted, or the destination was renamed or
            deleted.
    """
    if file_info(ctx, job_record_path(job)) is None:
        raise NotFoundError(
            "the job's directory does not exist, because the job was committed or aborted before, or the destination "
            "was renamed or deleted: unless files of it are visible, run it again",
            url=ctx.url,
            job=job.job,
        )


def check_reported_tasks(job: JobRecord, loaded: LoadedManifests, commits: Sequence[TaskCommit]) -> None:
    """Refuse to commit if the manifest of a task that has reported is missing (C1). Do not check the reported counts.

    Raises:
        NotFoundError: a manifest was deleted.
    """
    missing = [commit.task for commit in commits if make_hadoop_task_id(job.job, commit.task) not in loaded.tasks]
    if missing:
        raise NotFoundError(
            "manifests of committed tasks do not exist: run the job again", job=job.job, missing=missing[:5]
        )


def load_manifests(ctx: CommitContext, job: JobRecord) -> LoadedManifests:
    """Load every manifest in the job's directory. A task counts if it has a manifest there, no matter who wrote it.

    Memory: about 500 bytes per file.

    Raises:
        CorruptDataError: a manifest is not one that a task of this job would write.
        InvalidRequestError: two files have the same target (paper 002, "Benefits": the preflight check).
    """
    prefix = f"{manifests_dir(job)}/"
    listed = [(path, info) for path, info in list_files(ctx, manifests_dir(job)) if path.endswith(MANIFEST_SUFFIX)]
    listed = [entry for entry in listed if "/" not in entry[0][len(prefix) :]]  # like Hadoop, skip subdirectories
    tasks: set[str] = set()
    files: dict[str, ManifestFile] = {}
    statistics = NO_STATISTICS
    for done, manifest in enumerate(ctx.runner.map(lambda entry: _load_manifest(ctx, job, *entry), listed), start=1):
        tasks.add(manifest.task_id)
        statistics += manifest.statistics
        for file in manifest.files:
            if file.dest in files:
                raise InvalidRequestError(
                    "two files of the job have the same target: put the partition's number into the names",
                    job=job.job,
                    path=file.dest,
                )
            files[file.dest] = file
        ctx.progress("manifests", done, len(listed))
    return LoadedManifests(tasks=frozenset(tasks), files=files, statistics=statistics)


def _load_manifest(ctx: CommitContext, job: JobRecord, path: str, info: ObjectInfo) -> IntermediateManifest:
    if info.size_bytes > MAX_MANIFEST_BYTES:
        raise CorruptDataError("a manifest is too long for one task and is left as it is: report it", key=path)
    manifest = decode_intermediate_manifest(path, read_listed_file(ctx, path, "manifest"), url=ctx.url, job_id=job.job)
    if path != f"{manifests_dir(job)}/{manifest.task_id}{MANIFEST_SUFFIX}":
        raise CorruptDataError("a manifest belongs to another task and is left as it is: report it", key=path)
    return manifest


# --- renames ----------------------------------------------------------------------------------------------------------
def delete_replaced_files(measure: Measure, job: JobRecord, loaded: LoadedManifests) -> None:
    """Check that nothing blocks the job's files, then delete the files that the job replaces.

    Files at the job's own targets stay, because the renames replace them. So this function may be repeated after
    renames have started (C10).

    Raises:
        InvalidRequestError: a file is where the job needs a directory, or a directory where it needs a file.

    Crash: replaced data is deleted, in part or completely, and its replacement is still hidden (C9 does not hold).
    """
    ctx = measure.ctx
    partitions = {path.rpartition("/")[0]: path for path in loaded.files}
    chosen = {path for path in loaded.files if job_in_file_name(path) != job.job}
    as_renaming(ctx.store).check_targets([ctx.key(path) for path in sorted(chosen.union(partitions.values()))])
    if job.mode is SaveMode.OVERWRITE:
        delete_visible_files(ctx, lambda path: path not in loaded.files)
    elif job.mode is SaveMode.OVERWRITE_PARTITIONS:
        delete_visible_files(ctx, lambda path: path.rpartition("/")[0] in partitions and path not in loaded.files)


def rename_files(measure: Measure, job: JobRecord, loaded: LoadedManifests) -> None:
    """Rename every file to its target; stop at the first error.

    Guarantee: on return every file of every committed task is at its target. Idempotent: a file whose etag shows that
    it is already at its target is not touched.

    C4 does not hold: files appear one by one.

    Raises:
        NotFoundError: a file is neither at its source nor at its target.
        DestinationExistsError: another file exists at the target, and the mode does not allow replacing it.
        OutcomeUnknownError: the store did not say whether a file was renamed.

    Crash: some files are visible, the others are at their sources. `find_leftovers` finds out which files are visible,
    and recovery continues.
    """
    ctx = measure.ctx

    def commit_file(file: ManifestFile) -> None:
        # Hadoop's rename fails if the target exists, but Holdfast's replaces it, so the target is checked first. No
        # other job uses a name that carries the job's id.
        if job.mode not in REPLACING and job_in_file_name(file.dest) != job.job:
            _refuse_taken_target(ctx, file)
        _rename_file(measure, file)

    for done, _ in enumerate(ctx.runner.map(commit_file, loaded.files.values()), start=1):
        ctx.progress("files", done, len(loaded.files))


def _refuse_taken_target(ctx: CommitContext, file: ManifestFile) -> None:
    found = file_info(ctx, file.dest)
    if found is not None and not is_renamed_file(file, found):
        raise DestinationExistsError(
            f"a file with this name already exists: write under another name, {OR_OVERWRITE}",
            url=ctx.url,
            path=file.dest,
        )


def is_renamed_file(file: ManifestFile, found: ObjectInfo) -> bool:
    """Check whether `found` is the renamed `file`, with its size and etag. Without an etag, only sizes are compared."""
    return found.size_bytes == file.size_bytes and file.etag in ("", found.etag)


def _rename_file(measure: Measure, file: ManifestFile) -> None:
    """Rename one file, and check the effect if the store does not answer (paper 002, "Requirements of the Store").

    If the source does not exist, but a file with the same etag and size is at the target, then an earlier rename by
    this or another process has taken effect. If the file has no etag, the target is accepted only after this call has
    already tried the rename.
    """
    ctx = measure.ctx
    store = as_renaming(ctx.store)

    def move_to_target() -> None:
        with measure.recorder.time_block("commit_file_rename"):
            store.rename(ctx.key(file.source), ctx.key(file.dest))

    def has_arrived(is_retry: bool) -> bool:
        found = file_info(ctx, file.dest) if is_retry or file.etag else None
        return found is not None and is_renamed_file(file, found)

    if not ensure_file_moved(ctx, file.dest, move_to_target, has_arrived):
        raise NotFoundError(
            "a file of a committed task does not exist, so the job cannot be committed: run it again",
            source=file.source,
            dest=file.dest,
        )
