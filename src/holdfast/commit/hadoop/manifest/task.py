"""Write, commit and abort a task attempt of `manifest`: it writes files to its own directory, then one manifest.

Source: paper 002, "Task Commit" and "The Intermediate Manifest"; Hadoop's TaskAttemptScanDirectoryStage and
SaveTaskManifestStage for the order of calls and the retries.
"""

from __future__ import annotations

from dataclasses import replace

from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.files import delete_dir, file_info, is_dir, list_files
from holdfast.commit.hadoop.manifest.format import (
    DirStatus,
    IntermediateManifest,
    ManifestDir,
    ManifestFile,
    encode_intermediate_manifest,
)
from holdfast.commit.hadoop.manifest.loading import attempt_dir, attempt_manifest, job_mark, task_manifest
from holdfast.commit.ids import FileOwner, attempt_name, task_name
from holdfast.commit.records import FileEntry, JobRecord, TaskCommit
from holdfast.commit.sinks import RenameSink
from holdfast.commit.task import TaskScope, totals_of
from holdfast.errors import ConflictError, InvalidRequestError, NotFoundError, OutcomeUnknownError, UnavailableError
from holdfast.stores.base import rename

_PAUSE_S = 0.5  # like Hadoop's pause; multiplied by the number of the failed attempt


def open_file(scope: TaskScope, path: str) -> RenameSink:
    """Open a file in the attempt's directory; the job commit renames it to `path`."""
    source = f"{attempt_dir(scope.job, scope.owner)}/{path}"
    return RenameSink(rename(scope.ctx.store), scope.ctx.key(source), source, path, background=scope.background)


# --- commit -----------------------------------------------------------------------------------------------------------
def commit_task(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Scan the attempt's directory and save the list of its files as the task's manifest.

    Guarantee: the manifest appears complete, in one step, and replaces the manifest of any other attempt at the task.
    So the task's result is exactly the files of the last attempt to commit (scenario 7). Nothing becomes visible.

    C3 does not hold: a partitioned attempt may replace the manifest of the attempt that the driver accepted.

    Raises:
        NotFoundError: the attempt's files or the job's directory do not exist: the job is over (scenarios 6, 10, 47).
        ConflictError: another process writes in the attempt's directory, because two attempts have the same id
            (scenario 32).
        UnavailableError, OutcomeUnknownError: the manifest could not be saved in `manifest_save_attempts` attempts.

    Crash: before the manifest is renamed, the attempt has not committed, and its files are deleted with the job's.
    After the rename, the attempt has committed.
    """
    ctx, job, owner = scope.ctx, scope.job, scope.owner
    with scope.measure.stage("task_stage_scan_directory"):
        found = _scan(ctx, job, owner, files)
        directories = _probe_directories(ctx, [file.dest for file in found])
    recorder, totals = scope.measure.recorder, totals_of(files)
    recorder.count("committer_task_directory_count", len(directories))
    recorder.count("committer_task_directory_depth", max((one.level for one in directories), default=0))
    recorder.count("committer_task_file_size", totals.size_bytes)
    manifest = IntermediateManifest(
        job_id=job.job,
        job_attempt=job.job_attempt,
        task_id=task_name(job.job, owner.task),
        task_attempt_id=attempt_name(owner),
        task_attempt_dir=attempt_dir(job, owner),
        files=found,
        directories=directories,
    )
    _save(scope, manifest)
    return TaskCommit(job=owner.job, task=owner.task, attempt=owner.attempt, totals=totals)


def _scan(
    ctx: CommitContext, job: JobRecord, owner: FileOwner, files: tuple[FileEntry, ...]
) -> tuple[ManifestFile, ...]:
    """List the attempt's directory, which must contain exactly the files that the attempt wrote.

    An attempt that wrote nothing has no directory. It may commit unless its job is over, as in Hadoop, where the
    directory that the set-up creates no longer exists then (scenarios 3, 47).
    """
    directory = attempt_dir(job, owner)
    written = {file.source: file for file in files}
    found = []
    for source, info in list_files(ctx, directory):
        file = written.pop(source, None)
        if file is None or file.size_bytes != info.size_bytes:
            raise ConflictError("another process writes in the attempt's directory: run the task again", path=source)
        found.append(
            ManifestFile(source=source, dest=file.path, size_bytes=info.size_bytes, etag=info.etag, rows=file.rows)
        )
    if written or (not found and file_info(ctx, job_mark(job)) is None):
        raise NotFoundError(
            "files of the task attempt do not exist, most likely because its job is over: run the job again",
            directory=directory,
            missing=sorted(written)[:3],
        )
    return tuple(found)


def _probe_directories(ctx: CommitContext, dests: list[str]) -> tuple[ManifestDir, ...]:
    """Return all directories that the files need, each with what exists at its path now; parents come first.

    Nothing exists below a path that is not a directory, so only children of existing directories are checked.
    """
    needed: dict[str, int] = {}
    for dest in dests:
        above = dest.rpartition("/")[0]
        while above and above not in needed:
            needed[above] = above.count("/") + 1
            above = above.rpartition("/")[0]
    status = {"": DirStatus.DIR}
    for level in range(1, max(needed.values(), default=0) + 1):
        paths = sorted(path for path, depth in needed.items() if depth == level)
        known = [path for path in paths if status[path.rpartition("/")[0]] is DirStatus.DIR]
        status.update(dict.fromkeys(paths, DirStatus.NOT_FOUND))
        status.update(zip(known, ctx.runner.map(lambda path: _status(ctx, path), known), strict=True))
    return tuple(ManifestDir(path=path, status=status[path], level=needed[path]) for path in status if path)


def _status(ctx: CommitContext, path: str) -> DirStatus:
    if is_dir(ctx, path):
        return DirStatus.DIR
    return DirStatus.NOT_FOUND if file_info(ctx, path) is None else DirStatus.FILE


# --- saving -----------------------------------------------------------------------------------------------------------
def _save(scope: TaskScope, manifest: IntermediateManifest) -> None:
    """Save the manifest, with retries if the store fails (scenarios 48 to 52; MAPREDUCE-7474).

    Each try starts from the beginning, no matter how far the previous one got. The saved manifest's statistics count
    the failed tries.
    """
    ctx = scope.ctx
    attempts = max(1, ctx.settings.hadoop.manifest_save_attempts)
    for attempt in range(1, attempts + 1):
        try:
            with scope.measure.stage("task_stage_save_task_manifest"):
                _save_once(scope, manifest)
            return
        except (UnavailableError, OutcomeUnknownError):
            if attempt == attempts:
                raise
            ctx.clock.sleep(_PAUSE_S * attempt)


def _save_once(scope: TaskScope, manifest: IntermediateManifest) -> None:
    ctx = scope.ctx
    draft, final = attempt_manifest(scope.job, scope.owner), task_manifest(scope.job, scope.owner.task)
    data = encode_intermediate_manifest(replace(manifest, statistics=scope.measure.statistics()), ctx.url)
    ctx.store.put(ctx.key(draft), data)
    ctx.store.delete(ctx.key(final))
    store = rename(ctx.store)
    try:
        store.rename(ctx.key(draft), ctx.key(final))
    except NotFoundError:
        # The store client may have repeated a rename whose reply was lost.
        if file_info(ctx, final) is None or ctx.store.get(ctx.key(final)) != data:
            raise
    except InvalidRequestError:
        # A directory exists at the target. Nobody created it there on purpose, so delete it (scenario 52).
        delete_dir(ctx, final)
        store.rename(ctx.key(draft), ctx.key(final))


# --- abort ------------------------------------------------------------------------------------------------------------
def abort_task(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """Delete the attempt's directory; the manifest of a committed attempt stays (scenarios 10, 16, 22)."""
    delete_dir(ctx, attempt_dir(job, owner))
    ctx.store.delete(ctx.key(attempt_manifest(job, owner)))
