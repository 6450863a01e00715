"""Write, commit and abort a task attempt of `manifest`: it writes files to its own directory, then one manifest.

Source: paper 002, "Task Commit" and "The Intermediate Manifest"; Hadoop's TaskAttemptScanDirectoryStage and
SaveTaskManifestStage for the order of calls.
"""

from __future__ import annotations

from dataclasses import replace

from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.files import delete_dir, file_info, list_files
from holdfast.commit.hadoop.manifest.format import (
    IntermediateManifest,
    ManifestFile,
    attempt_dir,
    attempt_manifest_path,
    encode_intermediate_manifest,
    job_record_path,
    task_manifest_path,
)
from holdfast.commit.ids import FileOwner, make_hadoop_attempt_id, make_hadoop_task_id
from holdfast.commit.records import FileEntry, JobRecord, TaskCommit
from holdfast.commit.sinks import RenameSink
from holdfast.commit.task import AttemptContext, ensure_file_moved, make_totals_commit
from holdfast.errors import ConflictError, NotFoundError
from holdfast.stores.base import as_renaming


def open_file(scope: AttemptContext, path: str) -> RenameSink:
    """Open a new file in the attempt's directory; the job commit will rename it to `path`."""
    source = f"{attempt_dir(scope.job, scope.owner)}/{path}"
    return RenameSink(as_renaming(scope.ctx.store), scope.ctx.key(source), source, path, background=scope.background)


def commit_task(scope: AttemptContext, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Commit a task attempt: list its directory, and save the list of its files as the task's manifest.

    Guarantee: the manifest appears complete, in one step, and replaces the manifest of any other attempt at the task.
    So the task's result is exactly the files of the last attempt to commit. Nothing becomes visible.

    C3 does not hold: a partitioned attempt may replace the manifest of the attempt that the driver accepted.

    Raises:
        NotFoundError: the attempt's files or the job's directory do not exist: the job is over.
        ConflictError: another process writes in the attempt's directory, because two attempts have the same id.
        HoldfastError: the manifest could not be saved. The attempt has not committed.

    Crash: before the manifest is renamed, the attempt has not committed, and its files are deleted with the job's.
    After the rename, the attempt has committed.
    """
    job, owner = scope.job, scope.owner
    with scope.measure.stage("task_stage_scan_directory"):
        found = _scan_attempt_directory(scope.ctx, job, owner, files)
    manifest = IntermediateManifest(
        job_id=job.job,
        job_attempt=job.job_attempt,
        task_id=make_hadoop_task_id(job.job, owner.task),
        task_attempt_id=make_hadoop_attempt_id(owner),
        task_attempt_dir=attempt_dir(job, owner),
        files=found,
    )
    with scope.measure.stage("task_stage_save_task_manifest"):
        _save_manifest(scope, manifest)
    return make_totals_commit(owner, files)


def _scan_attempt_directory(
    ctx: CommitContext, job: JobRecord, owner: FileOwner, files: tuple[FileEntry, ...]
) -> tuple[ManifestFile, ...]:
    """List the attempt's directory, which must contain exactly the files that the attempt wrote.

    An attempt that wrote nothing has no directory. It may commit unless its job is over, as in Hadoop, where the
    directory that the set-up creates no longer exists then.
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
    if written or (not found and file_info(ctx, job_record_path(job)) is None):
        raise NotFoundError(
            "files of the task attempt do not exist, most likely because its job is over: run the job again",
            directory=directory,
            missing=sorted(written)[:3],
        )
    return tuple(found)


def _save_manifest(scope: AttemptContext, manifest: IntermediateManifest) -> None:
    """Save the manifest under a name of the attempt, delete that of an earlier attempt, and rename the new one."""
    ctx, store = scope.ctx, as_renaming(scope.ctx.store)
    draft, final = attempt_manifest_path(scope.job, scope.owner), task_manifest_path(scope.job, scope.owner.task)
    data = encode_intermediate_manifest(replace(manifest, statistics=scope.measure.statistics()), ctx.url)
    ctx.store.put(ctx.key(draft), data)
    ctx.store.delete(ctx.key(final))

    def has_arrived(is_retry: bool) -> bool:
        # The store's client may have repeated a rename whose reply was lost.
        return file_info(ctx, final) is not None and ctx.store.get(ctx.key(final)) == data

    if not ensure_file_moved(ctx, final, lambda: store.rename(ctx.key(draft), ctx.key(final)), has_arrived):
        raise NotFoundError("the manifest of the attempt was deleted, most likely because its job is over", path=draft)


def abort_task(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """Abort a task attempt: delete its directory. The manifest of a committed attempt stays."""
    delete_dir(ctx, attempt_dir(job, owner))
    ctx.store.delete(ctx.key(attempt_manifest_path(job, owner)))
