"""Implement `manifest`: tasks list the files to rename, and the job commit renames all of them in parallel."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import final

from holdfast.commit.committer import CONSISTENT_LISTING, RENAME, Committer, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop_names import file_name
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.job_report import measured_abort, measured_commit, report_abort, report_commit
from holdfast.commit.manifest.job import abort_job, commit_job, setup_job
from holdfast.commit.manifest.recovery import find_leftovers
from holdfast.commit.manifest.task import abort_task, commit_task, open_file
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.sinks import RenameSink
from holdfast.commit.task import TaskScope


@final
class ManifestCommitter(Committer):
    """Let each task list the files to rename; rename all of them in parallel in the job commit.

    Stores without atomic rename, such as S3, are refused, whatever the settings are (scenario 63).
    """

    name = "manifest"
    summary = "one manifest per task lists the files to rename, the job commit renames them all"
    source = "paper 002"
    needs = (RENAME, CONSISTENT_LISTING)
    modes = frozenset(SaveMode)

    def setup_job(
        self, ctx: CommitContext, mode: SaveMode, details: Mapping[str, object] | None = None
    ) -> JobRecord | None:
        self.check_fit(ctx, mode)
        return setup_job(ctx, self.name, mode, details or {})

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Rename the files of all committed tasks to their final names; see `holdfast.commit.manifest.job`."""
        with measured_commit(ctx, self.name, job) as measure:
            outcome = commit_job(measure, job, commits, tasks)
        return report_commit(ctx, measure, outcome)

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Delete the job's directory; may be called from any process, and repeatedly (scenarios 17 to 22)."""
        with measured_abort(ctx) as measure:
            outcome = abort_job(measure, job)
        return report_abort(ctx, measure, self.name, job, outcome)

    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        return find_leftovers(ctx)

    def name_file(self, owner: FileOwner, number: int, extension: str) -> str:
        return file_name(owner, number, extension)

    def open_file(self, scope: TaskScope, path: str) -> RenameSink:
        return open_file(scope, path)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        return commit_task(scope, files)

    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        abort_task(ctx, job, owner)


MANIFEST = ManifestCommitter()
