"""A job of `magic` on an in-memory store, for tests that write into it through the filesystem."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from holdfast.commit import COMMITTERS, CommitContext, JobOutcome, JobRecord, SaveMode, TaskAttempt, open_context
from holdfast.commit.hadoop.magic.files import magic_work_path
from holdfast.commit.layout import iter_visible
from holdfast.fs import MagicFileSystem
from holdfast.stores.base import iter_objects, iter_uploads, multipart

_numbers = itertools.count()

__all__ = ["MagicJob"]


@dataclass
class MagicJob:
    """A job with one task and a running attempt."""

    name: str = field(default_factory=lambda: f"fs{next(_numbers)}")
    home: str = "out put/table"

    def __post_init__(self) -> None:
        self.ctx: CommitContext = open_context(f"memory://{self.name}/{self.home}")
        self.committer = COMMITTERS["magic"]
        job = self.committer.setup_job(self.ctx, SaveMode.APPEND)
        assert job is not None
        self.job: JobRecord = job
        self.attempt: TaskAttempt = self.committer.setup_task(self.ctx, job, 0)
        self.fs = MagicFileSystem()

    @property
    def work(self) -> str:
        """The url below which the task writes."""
        return f"{self.ctx.url}/{magic_work_path(self.attempt.owner)}"

    def finish(self) -> JobOutcome:
        """Commit the task and the job."""
        with self.attempt:
            commits = [self.attempt.commit()]
        return self.committer.commit_job(self.ctx, self.job, commits, 1)

    def visible(self) -> dict[str, bytes]:
        return {path: self.ctx.store.get(info.key) for path, info in iter_visible(self.ctx.store, self.ctx.prefix)}

    def uploads(self) -> list[str]:
        return [upload.key for upload in iter_uploads(multipart(self.ctx.store), "")]

    def hidden(self) -> list[str]:
        keys = [info.key for info in iter_objects(self.ctx.store, "")]
        return [key for key in keys if "/__magic" in key]
