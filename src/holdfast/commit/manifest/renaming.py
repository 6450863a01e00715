"""Delete the files that a job replaces, then rename its committed tasks' files to their final paths, in parallel.

Source: paper 002, "Job Commit"; Hadoop's CreateOutputDirectoriesStage, RenameFilesStage and ValidateRenamedFilesStage.
Directories are not created here: the store creates a target's directory when it renames.
"""

from __future__ import annotations

from holdfast.commit.context import CommitContext
from holdfast.commit.file_operations import delete_dir, delete_visible, file_info, is_dir, rename_until_known
from holdfast.commit.hadoop import DirStatus, ManifestFile
from holdfast.commit.hadoop_names import file_job
from holdfast.commit.manifest.loading import LoadedJob
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobRecord
from holdfast.commit.save_mode import SaveMode
from holdfast.errors import CorruptDataError, DestinationExistsError, NotFoundError
from holdfast.stores.base import ObjectInfo, rename

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
