"""The files of a job that is ready to commit, and what a committer that renames does with the same files."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.commit import TWO_PHASE, CommitContext, JobRecord, SaveMode, TaskCommit
from holdfast.stores.base import ObjectInfo, ObjectStore, batched_keys, iter_objects

__all__ = ["JobShape", "ReadyJob", "check_files", "commit_by_rename", "prepare_job", "put_temporary_files"]


@dataclass(frozen=True, kw_only=True)
class JobShape:
    """How many files a job has, and how they are spread."""

    tasks: int
    files_per_task: int
    file_bytes: int

    @property
    def files(self) -> int:
        return self.tasks * self.files_per_task


@dataclass(frozen=True, kw_only=True)
class ReadyJob:
    """A job whose tasks have committed: all that is left is the job commit."""

    record: JobRecord
    commits: list[TaskCommit]

    def commit(self, ctx: CommitContext) -> None:
        """The whole job commit, with ``_SUCCESS`` and clean-up."""
        outcome = TWO_PHASE.commit_job(ctx, self.record, self.commits, len(self.commits))
        assert outcome.finished, outcome.pending_reason


def prepare_job(ctx: CommitContext, shape: JobShape, data: bytes) -> ReadyJob:
    """Run the tasks: every file is a pending upload, every manifest is written."""
    record = TWO_PHASE.setup_job(ctx, SaveMode.APPEND, {})
    assert record is not None  # mode append always writes

    def run_task(task: int) -> TaskCommit:
        with TWO_PHASE.setup_task(ctx, record, task) as attempt:
            for _ in range(shape.files_per_task):
                path = attempt.file_name(".parquet")
                sink = attempt.open(path)
                sink.write(data)
                sink.close()
            return attempt.commit()

    return ReadyJob(record=record, commits=list(ctx.runner.map(run_task, range(shape.tasks))))


# --- rename -----------------------------------------------------------------------------------------------------------
_TEMPORARY = "_temporary/0/"


def put_temporary_files(ctx: CommitContext, shape: JobShape, data: bytes) -> None:
    """The same files as a rename committer finds them at job commit: below ``_temporary``, a folder a task."""
    keys = [
        ctx.key(f"{_TEMPORARY}task_{task:06d}/part-{task:05d}-{number:05d}.parquet")
        for task in range(shape.tasks)
        for number in range(shape.files_per_task)
    ]
    for _ in ctx.runner.map(lambda key: ctx.store.put(key, data), keys):
        pass


def commit_by_rename(ctx: CommitContext, *, bulk_delete: bool) -> None:
    """Job commit of a committer that renames, on a store without rename: list, copy and delete, with as many threads.

    Args:
        bulk_delete: delete by the thousand after all copies, as S3A does when it renames a directory; else each file
            after its copy, as when files are moved into a directory that exists.
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
    """Refuse to compare unless a plain listing shows every file of the job, whole, and nothing temporary."""
    found = [info for info in iter_objects(store, prefix) if info.key.endswith(".parquet")]
    assert len(found) == shape.files, (prefix, len(found), shape.files)
    assert all(info.size_bytes == shape.file_bytes and _TEMPORARY not in info.key for info in found), prefix
