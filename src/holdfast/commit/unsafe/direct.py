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

from collections.abc import Collection, Sequence

from holdfast.commit.attempt_names import file_name
from holdfast.commit.committer import MULTIPART, Committer
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import FileOwner
from holdfast.commit.job_ends import report_task, reported_totals, start_over, succeed, succeeded
from holdfast.commit.measure import Measure
from holdfast.commit.moves import open_uploaded_file
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, SaveMode, TaskCommit
from holdfast.commit.sinks import UploadSink
from holdfast.commit.task import TaskScope, TaskSteps
from holdfast.commit.two_phase.manifests import check_messages

__all__ = ["DIRECT"]


def _open_file(scope: TaskScope, path: str) -> UploadSink:
    return open_uploaded_file(scope, path, path)


def _commit_task(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Nothing: the files are where they belong."""
    return report_task(scope.owner, files)


def _abort_task(ctx: CommitContext, job: JobRecord, owner: FileOwner) -> None:
    """Nothing: a file may be another attempt's by now. What was still being written has been dropped by its sink."""


def _commit_job(
    measure: Measure, job: JobRecord, commits: Sequence[TaskCommit | None], tasks: int | Collection[int]
) -> JobOutcome:
    """``_SUCCESS``, which names no files because the driver knows none. Can be repeated."""
    present = check_messages(job, commits, tasks)
    return succeed(measure, job, totals=reported_totals(present), tasks=len(present), paths=())


def _abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Nothing: what was written stays (C5 does not hold)."""
    return JobOutcome(job=job.job, committed=succeeded(measure.ctx, job.job))


DIRECT = Committer(
    name="direct",
    summary="tasks write to the final names; the commits do nothing",
    source="paper 000 (XII.A, Table V)",
    needs=(MULTIPART,),
    modes=frozenset({SaveMode.APPEND, SaveMode.FAIL, SaveMode.IGNORE, SaveMode.OVERWRITE}),
    start=start_over,
    task=TaskSteps(name_file=file_name, open_file=_open_file, commit=_commit_task, abort=_abort_task),
    commit=_commit_job,
    abort=_abort_job,
    unsafe="tasks write straight into the destination, where failed and repeated attempts leave and replace files",
)
