"""Define committers that work like another committer, except for the steps that a subclass changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from holdfast.commit.committer import Committer, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.task import TaskScope


class Variant(Committer):
    """A committer that delegates every step to `base`, except for the steps that a subclass changes.

    A variant has its own name. But the records of its jobs contain the base's name, so that the base's recovery finds
    them.
    """

    def __init__(self, base: Committer, suffix: str, summary: str) -> None:
        self.base = base
        self.name = f"{base.name}+{suffix}"
        self.summary = summary
        self.source = base.source
        self.needs = base.needs
        self.modes = base.modes
        self.unsafe = base.unsafe
        self.staging = base.staging
        self.keeps_log = base.keeps_log
        self.leaves_records = base.leaves_records
        self.adopts_uploads = base.adopts_uploads
        self.pins_attempts = base.pins_attempts

    def setup_job(
        self, ctx: CommitContext, mode: SaveMode, details: Mapping[str, object] | None = None
    ) -> JobRecord | None:
        self.check_fit(ctx, mode)
        return self.base.setup_job(ctx, mode, details)

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        return self.base.commit_job(ctx, job, commits, tasks)

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        return self.base.abort_job(ctx, job)

    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        return self.base.find_leftovers(ctx, recorded)

    def recorded_jobs(self, ctx: CommitContext) -> Collection[JobId]:
        return self.base.recorded_jobs(ctx)

    def name_file(self, owner: FileOwner, number: int, extension: str) -> str:
        return self.base.name_file(owner, number, extension)

    def open_file(self, scope: TaskScope, path: str) -> UploadSink | RenameSink:
        return self.base.open_file(scope, path)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        return self.base.commit_task(scope, files)

    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        self.base.abort_task(ctx, job, owner)
