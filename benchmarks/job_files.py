"""Prepare the files of a job for its commit, and commit the same files by renaming."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.commit import TWO_PHASE, CommitContext, JobRecord, SaveMode, TaskAttempt, TaskCommit
from holdfast.stores.base import ObjectInfo, ObjectStore, batched_keys, iter_objects

__all__ = [
    "JobShape",
    "ReadyJob",
    "check_files",
    "commit_by_rename",
    "prepare_job",
    "put_temporary_files",
    "write_files",
]


@dataclass(frozen=True, kw_only=True)
class JobShape:
    """The number of files of a job, their distribution over tasks, and their size."""

    tasks: int
    files_per_task: int
    file_bytes: int

    @property
    def files(self) -> int:
        return self.tasks * self.files_per_task


@dataclass(frozen=True, kw_only=True)
class ReadyJob:
    """A job whose tasks have committed: only the job commit is left."""

    record: JobRecord
    commits: list[TaskCommit]

    def commit(self, ctx: CommitContext) -> None:
        """Run the whole job commit, including ``_SUCCESS`` and clean-up."""
        outcome = TWO_PHASE.commit_job(ctx, self.record, self.commits, len(self.commits))
        assert outcome.finished, outcome.pending_reason


def prepare_job(ctx: CommitContext, shape: JobShape, data: bytes) -> ReadyJob:
    """Run the tasks: every file becomes a pending upload, every manifest is written."""
    record = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, {})
    assert record is not None  # mode append always writes

    def run_task(task: int) -> TaskCommit:
        with TWO_PHASE.setup_task(ctx, record, task) as attempt:
            write_files(attempt, shape, data)
            return attempt.commit()

    return ReadyJob(record=record, commits=list(ctx.runner.map(run_task, range(shape.tasks))))


def write_files(attempt: TaskAttempt, shape: JobShape, data: bytes) -> None:
    """Write the files of one task."""
    for _ in range(shape.files_per_task):
        sink = attempt.open(attempt.file_name(".parquet"))
        sink.write(data)
        sink.close()


# --- rename -----------------------------------------------------------------------------------------------------------
_TEMPORARY = "_temporary/0/"


def put_temporary_files(ctx: CommitContext, shape: JobShape, data: bytes) -> None:
    """Put the files where a rename committer expects them: below ``_temporary``, in one directory per task."""
    keys = [
        ctx.key(f"{_TEMPORARY}task_{task:06d}/part-{task:05d}-{number:05d}.parquet")
        for task in range(shape.tasks)
        for number in range(shape.files_per_task)
    ]
    for _ in ctx.runner.map(lambda key: ctx.store.put(key, data), keys):
        pass


def commit_by_rename(ctx: CommitContext, *, bulk_delete: bool) -> None:
    """Commit a job like a rename committer on a store without rename: list, copy and delete, with the same threads.

    Args:
        ctx: the context of the commit.
        bulk_delete: whether to delete a thousand files at a time after all copies, like S3A when it renames a
            directory. If not, each file is deleted after its copy, as when files are moved into an existing directory.
    """
    prefix = ctx.key(_TEMPORARY)

    def move(found: ObjectInfo) -> str:
        ctx.store.copy(found, ctx.key(found.key.rpartition("/")[2]))  # type: ignore[attr-defined]  # checked by the caller: capabilities.copy
        if not bulk_delete:
            ctx.store.delete(found.key)
        return found.key

    moved = list(ctx.runner.map(move, iter_objects(ctx.store, prefix)))
    if bulk_delete:
        for batch in batched_keys(moved):
            ctx.store.delete_many(batch)
    ctx.store.put(ctx.key("_SUCCESS"), b"")


def check_files(store: ObjectStore, prefix: str, shape: JobShape) -> None:
    """Check that a plain listing shows every file of the job, complete, and no temporary files."""
    found = [info for info in iter_objects(store, prefix) if info.key.endswith(".parquet")]
    assert len(found) == shape.files, (prefix, len(found), shape.files)
    assert all(info.size_bytes == shape.file_bytes and _TEMPORARY not in info.key for info in found), prefix
