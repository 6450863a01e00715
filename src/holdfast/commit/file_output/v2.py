"""Implement ``file-v2``, FileOutputCommitter's algorithm 2: a task commits by moving its files to their final paths.

These guarantees do not hold, as the papers describe:

- C4: the files of every committed task are visible while the job runs, and stay visible if it fails (C5).
- C2, C3: a task commit that fails or hangs halfway leaves some files visible. The next attempt replaces only the files
  with the same names, and a late attempt may replace some of them again.
- C6: a late attempt may replace files even after the job has committed.
- C7: a job deletes everything below ``_temporary``, including the work of other jobs.
- C9: the files of a task that died during its commit cannot be distinguished from files of committed tasks.

Sources: paper 000, III.C; paper 001, "v2 commit algorithm".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import final

from holdfast.commit.committer import CONSISTENT_LISTING, HIDDEN_WRITES, RENAME_OR_COPY, Committer, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.file_output.layout import (
    abort_attempt,
    attempt_dir,
    clean_up,
    open_attempt_file,
    require_attempt,
    require_job,
    start_file_job,
)
from holdfast.commit.file_output.merging import merge_paths_v2
from holdfast.commit.file_output.recovery import file_leftovers
from holdfast.commit.hadoop_names import file_name
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.job_report import measured_abort, measured_commit, report_abort, report_commit
from holdfast.commit.job_success import has_succeeded, succeed
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.sinks import RenameSink, UploadSink
from holdfast.commit.task import TaskScope
from holdfast.commit.task_commits import check_messages, report_task, reported_totals


@final
class FileV2Committer(Committer):
    """Rename files to their final names at each task commit."""

    name = "file-v2"
    summary = "files renamed to their final names at task commit, where readers see them before the job commits"
    source = "papers 000 (III.C) and 001 (v2 commit algorithm)"
    needs = (CONSISTENT_LISTING, RENAME_OR_COPY, HIDDEN_WRITES)
    modes = frozenset({SaveMode.APPEND, SaveMode.FAIL, SaveMode.IGNORE, SaveMode.OVERWRITE})

    def setup_job(
        self, ctx: CommitContext, mode: SaveMode, details: Mapping[str, object] | None = None
    ) -> JobRecord | None:
        self.check_fit(ctx, mode)
        return start_file_job(ctx, self.name, mode, details or {})

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Write ``_SUCCESS``, then delete ``_temporary``; the tasks have done the rest.

        ``_SUCCESS`` names no files, because the driver does not know them. While it names the job, the call is
        idempotent (scenario 8).

        Raises:
            NotFoundError: the job's record no longer exists, because the destination was renamed or deleted, or a job
                ended in it. Files of the tasks stay visible, wherever they are now.
        """
        with measured_commit(ctx, self.name, job) as measure:
            present = check_messages(job, commits, tasks)
            if not has_succeeded(measure.ctx, job.job):
                require_job(measure.ctx, job)
            outcome = succeed(measure, job, totals=reported_totals(present), tasks=len(present), paths=())
            outcome = clean_up(measure, job, outcome)
        return report_commit(ctx, measure, outcome)

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Delete ``_temporary``. The files of committed tasks stay visible (C5 does not hold)."""
        with measured_abort(ctx) as measure:
            committed = has_succeeded(measure.ctx, job.job)
            outcome = clean_up(measure, job, JobOutcome(job=job.job, committed=committed))
        return report_abort(ctx, measure, self.name, job, outcome)

    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        return file_leftovers(ctx, committer=self.name)

    def name_file(self, owner: FileOwner, number: int, extension: str) -> str:
        return file_name(owner, number, extension)

    def open_file(self, scope: TaskScope, path: str) -> UploadSink | RenameSink:
        return open_attempt_file(scope, path)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        """Merge the attempt's files into the destination, where they become visible immediately.

        Crash: some of the files are visible, and nothing ever deletes them.
        """
        if require_attempt(scope.ctx, scope.job, scope.owner, len(files)):
            with scope.measure.stage("task_stage_rename_files"):
                merge_paths_v2(scope.ctx, attempt_dir(scope.job, scope.owner))
        return report_task(scope.owner, files)

    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        abort_attempt(ctx, job, owner)


FILE_V2 = FileV2Committer()
