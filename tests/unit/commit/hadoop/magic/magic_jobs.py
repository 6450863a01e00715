"""Support the tests of `magic`: list its objects by kind, write files with it, find leftovers by job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.commit import COMMITTERS, JobRecord, TaskAttempt, TaskCommit
from holdfast.commit.context import CommitContext
from holdfast.commit.leftovers import Leftover
from holdfast.commit.recovery import UNKNOWN, find_leftovers
from holdfast.stores.base import Capabilities, iter_objects, iter_uploads
from holdfast.stores.memory import MemoryStore
from tests.unit.commit.attempts import HOME, open_attempt
from tests.unit.commit.committer_jobs import Bucket

__all__ = ["MAGIC", "WithoutMetadata", "hidden", "leftovers", "orphans", "run_tasks", "uploads", "write_attempt"]

MAGIC = COMMITTERS["magic"]


class WithoutMetadata(MemoryStore):
    """A store that reports to keep no metadata."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, metadata=False)


def hidden(bucket: Bucket, ending: str = "", home: str = HOME) -> list[str]:
    """Return the paths of all objects in magic directories of the destination, or of those with an ending."""
    keys = (info.key[len(home) :] for info in iter_objects(bucket.store, home))
    return [path for path in keys if path.startswith("__magic") and path.endswith(ending)]


def uploads(bucket: Bucket) -> list[str]:
    """Return the keys of all pending uploads in the bucket."""
    return [upload.key for upload in iter_uploads(bucket.store, "")]


def write_attempt(bucket: Bucket, ctx: CommitContext, job: JobRecord, task: int, name: str) -> TaskAttempt:
    """Return an attempt that has written and not committed: one file named by Holdfast, one of the caller's choice."""
    number = f"day=0/part-{task:05d}-{job.job}-c000.txt"
    return open_attempt(
        bucket, ctx, job, task, {number: f"{name}/{task}/0".encode(), f"blobs/{task}.tar": f"{name}/{task}/1".encode()}
    )


def run_tasks(bucket: Bucket, ctx: CommitContext, job: JobRecord, name: str, tasks: int = 2) -> list[TaskCommit]:
    """Run tasks that each write the two files of `write_attempt` and commit."""
    commits = []
    for task in range(tasks):
        with write_attempt(bucket, ctx, job, task, name) as attempt:
            commits.append(attempt.commit())
    return commits


def leftovers(ctx: CommitContext) -> Mapping[str, Leftover]:
    """Return the leftovers that `magic` finds, by job."""
    return {left.job: left for left in MAGIC.find_leftovers(ctx)}


def orphans(ctx: CommitContext) -> Mapping[str, Leftover]:
    """Return the jobs of which only uploads are left."""
    return {left.job: left for left in find_leftovers(ctx) if left.committer == UNKNOWN}
