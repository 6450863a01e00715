"""Run attempts of the committers without a log, with files of chosen names, and without a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from holdfast.commit import CommitContext, JobRecord, SaveMode, TaskAttempt, TaskCommit, recover
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.local.store import LocalStore
from tests.interceptors import Fault, Faulty, SimulatedCrash, crash_at
from tests.unit.commit.committer_jobs import Bucket

__all__ = ["HOME", "Before", "bucket_on_disk", "faulty_context", "open_attempt", "recovered_jobs", "run_attempt"]

T = TypeVar("T")

HOME = "out put/dataset1/"


class Before:
    """An interceptor that calls a function just before the first call of one kind."""

    def __init__(self, operation: StoreOperation, action: Callable[[], object]) -> None:
        self._operation = operation
        self._action = action
        self.fired = False

    def __call__(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is self._operation and not self.fired:
            self.fired = True
            self._action()
        return proceed()


def bucket_on_disk(committer: str, root: Path) -> Bucket:
    """Return a bucket whose destination is a directory of this machine."""
    bucket = Bucket(committer)
    bucket.store = LocalStore(str(root), ids=bucket.ids)
    return bucket


def open_attempt(
    bucket: Bucket, ctx: CommitContext, job: JobRecord, task: int, files: Mapping[str, bytes]
) -> TaskAttempt:
    """Return an attempt that has written and closed `files` (path to content) and has not committed."""
    attempt = bucket.value.setup_task(ctx, job, task)
    for path, content in files.items():
        sink = attempt.open(path)
        sink.write(content)
        sink.close()
    return attempt


def run_attempt(
    bucket: Bucket, ctx: CommitContext, job: JobRecord, task: int, files: Mapping[str, bytes]
) -> TaskCommit:
    """Run an attempt that writes `files` and commits."""
    with open_attempt(bucket, ctx, job, task, files) as attempt:
        return attempt.commit()


def faulty_context(bucket: Bucket, *faults: Fault) -> CommitContext:
    """Return the context of a process whose calls to the destination meet `faults`."""
    return bucket.context(store=InterceptedStore(bucket.store, Faulty(*faults)))


def recovered_jobs(
    committer: str, mode: SaveMode = SaveMode.APPEND, *, old: str = ""
) -> Iterator[tuple[Bucket, JobRecord, list[TaskCommit]]]:
    """Run a job whose driver dies in the job commit, at each store call in turn, and recover it; each in a new bucket.

    Args:
        old: the name of a job that is committed before; if empty, there is none.
    """
    for nth in range(1, 100):
        bucket = Bucket(committer)
        ctx = bucket.context()
        if old:
            bucket.run_job(ctx, old)
        job = bucket.start(ctx, mode)
        commits = [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(2)]
        try:
            bucket.commit(faulty_context(bucket, crash_at(nth)), job, commits)
        except SimulatedCrash:
            recover(ctx)
        else:
            return
        yield bucket, job, commits
