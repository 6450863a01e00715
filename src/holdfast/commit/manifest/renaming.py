"""How the files of committed tasks get to their places: room is made, then all are renamed side by side.

Source: paper 002, "Job Commit"; Hadoop's CreateOutputDirectoriesStage, RenameFilesStage and
ValidateRenamedFilesStage. Directories are not made here: the store makes a target's directory when it renames.
"""

from __future__ import annotations

from holdfast.commit.attempt_names import file_job
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop import DirStatus, ManifestFile
from holdfast.commit.job_ends import delete_visible
from holdfast.commit.manifest.loading import LoadedJob
from holdfast.commit.measure import Measure
from holdfast.commit.moves import delete_dir, file_info, is_dir
from holdfast.commit.records import JobRecord, SaveMode
from holdfast.errors import CorruptDataError, DestinationExistsError, NotFoundError, OutcomeUnknownError
from holdfast.stores.base import ObjectInfo, rename

__all__ = ["REPLACING", "is_same_file", "make_room", "rename_files", "validate_files"]

_ATTEMPTS = 3
REPLACING = frozenset({SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS})
"""With these a file takes the place of whatever stands there."""


def make_room(measure: Measure, job: JobRecord, loaded: LoadedJob) -> None:
    """Delete what the job replaces, and files that stand where it needs directories (scenario 57).

    What stands at a target stays: the rename replaces it. So this may be run again when renames have begun (C10).
    What is in the way was seen when the tasks committed; what came since makes a rename fail.

    Crash: what was replaced is gone, in part or whole, and its replacement hidden still (C9 does not hold).
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
    """Rename every file to its place; the first error ends it (scenario 53).

    Guarantee: afterwards every file of every committed task is at its place. Again is harmless: a file that is there
    already, told by its etag, is left alone.

    C4 does not hold: files appear one after the other.

    Raises:
        NotFoundError: a file is neither where its task left it nor at its place (scenario 55).
        DestinationExistsError: something else is at its place, and neither the mode nor `delete_target_files` lets it
            go (scenario 56).
        OutcomeUnknownError: the store did not say whether a file was renamed.

    Crash: some files are visible, the others wait where they were: `leftovers` tells which, and goes on.
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
    """Whether something may stand at a file's place.

    A rename of ours replaces what is there, where one of Hadoop's fails, so somebody has to look. Names that carry the
    job's id are nobody else's, and in a directory that was not there when the tasks committed there is nothing: one
    request for each other file.
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
                "a file of this name is there already: write under another name, or set delete_target_files",
                url=ctx.url,
                path=file.dest,
            )
    elif found is None:
        if is_dir(ctx, file.dest):
            delete_dir(ctx, file.dest, unfinished=False)
    elif not is_same_file(file, found):
        ctx.store.delete(ctx.key(file.dest))


def is_same_file(file: ManifestFile, found: ObjectInfo) -> bool:
    """Whether `found` is `file`, wherever it is now: a rename keeps size and etag. By size alone if it has no etag."""
    return found.size_bytes == file.size_bytes and file.etag in ("", found.etag)


def _rename_file(measure: Measure, file: ManifestFile) -> None:
    """Rename one file, and find out what happened if the store does not say (paper 002, "Requirements of the Store").

    When the source is gone, the file with its etag and size at the target is taken for it: an earlier try, in this
    process or another, had its effect. Without etags only a try of this call counts as one.
    """
    ctx = measure.ctx
    store = rename(ctx.store)
    for attempt in range(_ATTEMPTS):
        if attempt:
            ctx.clock.sleep(0.2 * 2**attempt)
        try:
            with measure.recorder.timed("commit_file_rename"):
                store.rename(ctx.key(file.source), ctx.key(file.dest))
            return
        except OutcomeUnknownError:
            continue
        except NotFoundError as error:
            found = file_info(ctx, file.dest) if attempt or file.etag else None
            if found is None or not is_same_file(file, found):
                raise NotFoundError(
                    "a file of a committed task is gone, the job cannot be committed: run it again",
                    source=file.source,
                    dest=file.dest,
                ) from error
            measure.recorder.count("commit_file_rename_recovered")
            return
    raise OutcomeUnknownError("a rename was not confirmed: run holdfast recover", url=ctx.url, path=file.dest)


# --- validation -------------------------------------------------------------------------------------------------------
def validate_files(measure: Measure, loaded: LoadedJob) -> None:
    """Look whether every file is at its place, with its size and etag (scenario 59).

    Raises:
        NotFoundError: one is not there.
        CorruptDataError: one is another file.
    """
    ctx = measure.ctx

    def validate(file: ManifestFile) -> None:
        found = file_info(ctx, file.dest)
        if found is None:
            raise NotFoundError("a file of the job is not at its place: run the job again", url=ctx.url, path=file.dest)
        if not is_same_file(file, found):
            raise CorruptDataError(
                "a file of the job is not what its task wrote: keep it, and run the job again",
                url=ctx.url,
                path=file.dest,
                expected_bytes=file.size_bytes,
                found_bytes=found.size_bytes,
            )

    for _done in ctx.runner.map(validate, loaded.files()):
        pass
