"""Implement `direct`: tasks write to the final names, and the commits do nothing. For comparison only.

Spark once had such a committer, and removed it. These guarantees of ARCHITECTURE.md do not hold:

- C1, C3: the attempts of a task write to the same names. The last attempt to close a file wins, no matter which attempt
  the driver accepted.
- C2: an attempt that died leaves files, and its retry replaces only the files with the same names.
- C4: everything is visible as soon as it is written.
- C5: nothing is deleted when an attempt or a job aborts.
- C6: an attempt that is still running after the job's end continues to write.
- C8, C9: no decision is logged, and mode ``overwrite`` deletes data before the first task runs.

Source: paper 000, XII.A and Table V.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import final

from holdfast.commit.committer import MULTIPART, Committer, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.file_operations import open_uploaded_file
from holdfast.commit.hadoop_names import file_name
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.job_report import measured_abort, measured_commit, report_abort, report_commit
from holdfast.commit.job_setup import new_truncating_job
from holdfast.commit.job_success import has_succeeded, succeed
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.sinks import UploadSink
from holdfast.commit.task import TaskScope
from holdfast.commit.task_commits import check_messages, report_task, reported_totals


@final
class DirectCommitter(Committer):
    """Write to the final names; the commits do nothing."""

    name = "direct"
    summary = "tasks write to the final names; the commits do nothing"
    source = "paper 000 (XII.A, Table V)"
    needs = (MULTIPART,)
    modes = frozenset({SaveMode.APPEND, SaveMode.FAIL, SaveMode.IGNORE, SaveMode.OVERWRITE})
    unsafe = "tasks write straight into the destination, where failed and repeated attempts leave and replace files"
    leaves_records = False

    def setup_job(
        self, ctx: CommitContext, mode: SaveMode, details: Mapping[str, object] | None = None
    ) -> JobRecord | None:
        self.check_fit(ctx, mode)
        return new_truncating_job(ctx, self.name, mode, details or {})

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """Write ``_SUCCESS``, which names no files because the driver does not know them. Idempotent."""
        with measured_commit(ctx, self.name, job) as measure:
            present = check_messages(job, commits, tasks)
            outcome = succeed(measure, job, totals=reported_totals(present), tasks=len(present), paths=())
        return report_commit(ctx, measure, outcome)

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Do nothing: visible files stay (C5 does not hold)."""
        with measured_abort(ctx) as measure:
            outcome = JobOutcome(job=job.job, committed=has_succeeded(measure.ctx, job.job))
        return report_abort(ctx, measure, self.name, job, outcome)

    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        return iter(())

    def name_file(self, owner: FileOwner, number: int, extension: str) -> str:
        return file_name(owner, number, extension)

    def open_file(self, scope: TaskScope, path: str) -> UploadSink:
        return open_uploaded_file(scope, path, path)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        """Only return the attempt's report, because the files are already at their final paths."""
        return report_task(scope.owner, files)

    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        """Do nothing: the sinks have discarded unfinished files, and finished ones may now be another attempt's."""


DIRECT = DirectCommitter()
