"""`direct`: tasks write to the final names, and the commits have nothing to do. Here for comparison.

Spark had such a committer and removed it. By the names of ARCHITECTURE.md it gives up:

- C1, C3: attempts at a task write to the same names; the last one to close a file wins, whoever it is.
- C2: an attempt that died leaves files, and its repetition replaces only those of the same names.
- C4: everything is visible as soon as it is written.
- C5: nothing is taken back, neither by the abort of an attempt nor by that of a job.
- C6: an attempt that goes on after the job's end goes on writing.
- C8, C9: nothing records a decision, and mode ``overwrite`` deletes before the first task runs.

Source: paper 000, XII.A and Table V.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import final

from holdfast.commit.attempt_names import file_name
from holdfast.commit.committer import MULTIPART, Committer, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.job_ends import report_task, reported_totals, start_over, succeed, succeeded
from holdfast.commit.job_report import measured_abort, measured_commit, report_abort, report_commit
from holdfast.commit.moves import open_uploaded_file
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, SaveMode, TaskCommit
from holdfast.commit.sinks import UploadSink
from holdfast.commit.task import TaskScope
from holdfast.commit.task_commits import check_messages

__all__ = ["DIRECT", "DirectCommitter"]


@final
class DirectCommitter(Committer):
    """Writes to the final names; the commits do nothing."""

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
        return start_over(ctx, self.name, mode, details or {})

    def commit_job(
        self,
        ctx: CommitContext,
        job: JobRecord,
        commits: Sequence[TaskCommit | None],
        tasks: int | Collection[int],
    ) -> JobOutcome:
        """``_SUCCESS``, which names no files because the driver knows none. Can be repeated."""
        with measured_commit(ctx, self.name, job) as measure:
            present = check_messages(job, commits, tasks)
            outcome = succeed(measure, job, totals=reported_totals(present), tasks=len(present), paths=())
        return report_commit(ctx, measure, outcome)

    def abort_job(self, ctx: CommitContext, job: JobRecord) -> JobOutcome:
        """Nothing: what was written stays (C5 does not hold)."""
        with measured_abort(ctx) as measure:
            outcome = JobOutcome(job=job.job, committed=succeeded(measure.ctx, job.job))
        return report_abort(ctx, measure, self.name, job, outcome)

    def find_leftovers(self, ctx: CommitContext, recorded: Collection[JobId] = ()) -> Iterator[Leftover]:
        return iter(())

    def name_file(self, owner: FileOwner, number: int, extension: str) -> str:
        return file_name(owner, number, extension)

    def open_file(self, scope: TaskScope, path: str) -> UploadSink:
        return open_uploaded_file(scope, path, path)

    def commit_task(self, scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
        """Nothing: the files are where they belong."""
        return report_task(scope.owner, files)

    def abort_task(self, ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
        """Do nothing: a file may be another attempt's by now, and the sinks have discarded what was being written."""


DIRECT = DirectCommitter()
