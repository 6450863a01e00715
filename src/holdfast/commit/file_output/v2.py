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

from collections.abc import Mapping
from functools import partial

from holdfast.commit.committer import CONSISTENT_LISTING, HIDDEN_WRITES, RENAME, Committer, TaskReports
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
from holdfast.commit.job_success import has_succeeded, succeed
from holdfast.commit.measure import Measure
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, TaskCommit
from holdfast.commit.task import TaskScope
from holdfast.commit.task_commits import report_task, reported_totals
from holdfast.guarantees import (
    BOTH_COMMIT,
    EMPTIED,
    IN_TASK_COMMIT,
    NO_RECORD,
    UNDONE_BY_HAND,
    UNKNOWN,
    Answer,
    no,
    yes,
)


def commit_job(measure: Measure, job: JobRecord, reports: TaskReports) -> JobOutcome:
    """Write ``_SUCCESS``, then delete ``_temporary``; the tasks have done the rest.

    ``_SUCCESS`` names no files, because the driver does not know them. While it names the job, the call is
    idempotent (scenario 8).

    Raises:
        NotFoundError: the job's record no longer exists, because the destination was renamed or deleted, or a job
            ended in it. Files of the tasks stay visible, wherever they are now.
    """
    present = reports.check(job)
    if not has_succeeded(measure.ctx, job.job):
        require_job(measure.ctx, job)
    outcome = succeed(measure, job, totals=reported_totals(present), tasks=len(present), paths=())
    return clean_up(measure, job, outcome)


def abort_job(measure: Measure, job: JobRecord) -> JobOutcome:
    """Delete ``_temporary``. The files of committed tasks stay visible (C5 does not hold)."""
    committed = has_succeeded(measure.ctx, job.job)
    return clean_up(measure, job, JobOutcome(job=job.job, committed=committed))


def commit_task(scope: TaskScope, files: tuple[FileEntry, ...]) -> TaskCommit:
    """Merge the attempt's files into the destination, where they become visible immediately.

    Crash: some of the files are visible, and nothing ever deletes them.
    """
    if require_attempt(scope.ctx, scope.job, scope.owner, len(files)):
        with scope.measure.stage("task_stage_rename_files"):
            merge_paths_v2(scope.ctx, attempt_dir(scope.job, scope.owner))
    return report_task(scope.owner, files)


_GUARANTEES: Mapping[str, Answer] = {
    "speculative-tasks": yes("each attempt has its own directory until it commits", unless=BOTH_COMMIT),
    "recoverable-job": yes("the output of committed tasks is in place"),
    "abortable-task": yes("its directory is deleted", unless=IN_TASK_COMMIT),
    "abortable-job": yes("its files can be deleted by hand, by their names", unless=UNDONE_BY_HAND),
    "uncommitted-output-observable": no("it is in a hidden directory", unless=IN_TASK_COMMIT),
    "committed-output-observable": yes("the task commit renames its files into the destination"),
    "atomic-task-commit": no("it renames one file after the other"),
    "atomic-job-commit": yes("it is one put of _SUCCESS"),
    "partitioned-executor": no("its task commit renames into the destination, even after the job's end"),
    "C1": no("a cleanup at the same time deletes files that a task commit has not renamed yet, unnoticed"),
    "C2": no("a task commit that dies leaves files that the next attempt may not replace"),
    "C3": no("files of two attempts that commit are mixed"),
    "C4": no("files appear with each task commit"),
    "C5": no("committed output stays, and a slow task may commit afterwards"),
    "C6": no("a slow task commit renames into the destination"),
    "C7": no("its cleanup deletes _temporary, including the work of other jobs"),
    "C8": no(NO_RECORD),
    "C9": no(UNKNOWN),
    "C10": no("a task commit that is run again fails, because its files are already renamed"),
    "replaced-data": no(EMPTIED),
}

FILE_V2 = Committer(
    name="file-v2",
    summary="files renamed to their final names at task commit, where readers see them before the job commits",
    source="papers 000 (III.C) and 001 (v2 commit algorithm)",
    needs=(CONSISTENT_LISTING, RENAME, HIDDEN_WRITES),
    guarantees=_GUARANTEES,
    setup=start_file_job,
    commit=commit_job,
    abort=abort_job,
    open_file=open_attempt_file,
    commit_task=commit_task,
    abort_task=abort_attempt,
    find_leftovers=partial(file_leftovers, committer="file-v2"),
)
